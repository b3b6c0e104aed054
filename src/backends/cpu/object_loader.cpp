#include "backends/cpu/object_loader.h"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

namespace tern::cpu {

struct LoadedObject::Impl {
  std::byte* base = nullptr;
  size_t bytes = 0;
  std::unordered_map<std::string, void*> symbols;
  ~Impl() {
    if (base != nullptr) munmap(base, bytes);
  }
};

LoadedObject::LoadedObject(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LoadedObject::~LoadedObject() = default;

Result<void*> LoadedObject::symbol(std::string_view name) const {
  const auto it = impl_->symbols.find(std::string(name));
  if (it == impl_->symbols.end()) {
    return make_error(Code::malformed, "kernel object defines no symbol '" + std::string(name) + "'");
  }
  return it->second;
}

namespace {

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#else
constexpr uint16_t kMachine = EM_NONE;
#endif

Error damaged(const std::string& what) { return make_error(Code::malformed, "damaged kernel object: " + what); }

class Reader {
 public:
  explicit Reader(std::span<const std::byte> data) : data_(data) {}

  template <class T>
  Result<T> at(uint64_t offset) const {
    if (offset > data_.size() || sizeof(T) > data_.size() - offset) return damaged("a record lies past its end");
    T value;
    std::memcpy(&value, data_.data() + offset, sizeof(T));
    return value;
  }
  Result<std::span<const std::byte>> range(uint64_t offset, uint64_t bytes) const {
    if (offset > data_.size() || bytes > data_.size() - offset) return damaged("a section lies past its end");
    return data_.subspan(offset, bytes);
  }

 private:
  std::span<const std::byte> data_;
};

struct Section {
  Elf64_Shdr header;
  uint64_t placed = 0;  // offset in the image
  bool in_image = false;
};

struct Image {
  std::vector<Section> sections;
  uint64_t bytes = 0;
};

Result<Image> lay_out(const Reader& in) {
  TERN_TRY(const Elf64_Ehdr eh, in.at<Elf64_Ehdr>(0));
  if (std::memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 || eh.e_ident[EI_CLASS] != ELFCLASS64)
    return damaged("no ELF64 header");
  if (eh.e_type != ET_REL) return damaged("not relocatable");
  if (eh.e_machine != kMachine)
    return make_error(Code::unsupported, "kernel object is for another processor architecture");
  Image image;
  for (uint16_t i = 0; i < eh.e_shnum; ++i) {
    Section s;
    TERN_TRY(s.header, in.at<Elf64_Shdr>(eh.e_shoff + uint64_t{i} * sizeof(Elf64_Shdr)));
    if ((s.header.sh_flags & SHF_ALLOC) != 0 && s.header.sh_size > 0) {
      if ((s.header.sh_flags & SHF_WRITE) != 0) return damaged("a kernel has no writable data");
      const uint64_t align = std::max<uint64_t>(16, s.header.sh_addralign);
      if (align > 4096 || (align & (align - 1)) != 0) return damaged("alignment of a section");
      if (s.header.sh_size > (uint64_t{1} << 30)) return damaged("size of a section");
      image.bytes = (image.bytes + align - 1) / align * align;
      s.placed = image.bytes;
      s.in_image = true;
      image.bytes += s.header.sh_size;
    }
    image.sections.push_back(s);
  }
  if (image.bytes == 0) return damaged("no code");
  return image;
}

Result<std::string> string_at(std::span<const std::byte> table, uint64_t offset) {
  if (offset >= table.size()) return damaged("a name lies past its table");
  const auto* first = reinterpret_cast<const char*>(table.data()) + offset;
  const void* end = std::memchr(first, 0, table.size() - offset);
  if (end == nullptr) return damaged("a name without end");
  return std::string(first, static_cast<const char*>(end));
}

struct Symbols {
  std::vector<uint64_t> address;  // offset in the image; ~0: undefined
  std::vector<std::string> names;
};

Result<Symbols> read_symbols(const Reader& in, const Image& image) {
  Symbols out;
  for (const Section& s : image.sections) {
    if (s.header.sh_type != SHT_SYMTAB) continue;
    if (s.header.sh_link >= image.sections.size()) return damaged("symbol table without names");
    const Elf64_Shdr& str = image.sections[s.header.sh_link].header;
    TERN_TRY(const std::span<const std::byte> names, in.range(str.sh_offset, str.sh_size));
    TERN_OK(in.range(s.header.sh_offset, s.header.sh_size));
    for (uint64_t i = 0; i < s.header.sh_size / sizeof(Elf64_Sym); ++i) {
      TERN_TRY(const Elf64_Sym sym, in.at<Elf64_Sym>(s.header.sh_offset + i * sizeof(Elf64_Sym)));
      uint64_t address = ~uint64_t{0};
      if (sym.st_shndx != SHN_UNDEF && sym.st_shndx < image.sections.size() && image.sections[sym.st_shndx].in_image) {
        const Section& home = image.sections[sym.st_shndx];
        if (sym.st_value > home.header.sh_size) return damaged("a symbol lies past its section");
        address = home.placed + sym.st_value;
      }
      TERN_TRY(std::string name, string_at(names, sym.st_name));
      out.address.push_back(address);
      out.names.push_back(std::move(name));
    }
  }
  return out;
}

template <class T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

Status fits32(int64_t v) {
  if (v < INT32_MIN || v > INT32_MAX) return damaged("a relocation does not fit 32 bits");
  return ok();
}

Status relocate_x86(uint32_t type, std::byte* at, uint64_t room, uint64_t place, uint64_t target, int64_t addend) {
  const auto value = static_cast<int64_t>(target) + addend;
  switch (type) {
    case R_X86_64_NONE: return ok();
    case R_X86_64_64:
      if (room < 8) return damaged("a relocation lies past its section");
      put(at, value);
      return ok();
    case R_X86_64_PC64:
      if (room < 8) return damaged("a relocation lies past its section");
      put(at, value - static_cast<int64_t>(place));
      return ok();
    case R_X86_64_PC32:
    case R_X86_64_PLT32: {
      if (room < 4) return damaged("a relocation lies past its section");
      const int64_t relative = value - static_cast<int64_t>(place);
      TERN_OK(fits32(relative));
      put(at, static_cast<int32_t>(relative));
      return ok();
    }
    default: return make_error(Code::unsupported, "kernel object uses relocation type " + std::to_string(type));
  }
}

// ADRP + ADD/LDR pairs, direct branches and absolute words: all that position-independent kernels use.
Status relocate_arm(uint32_t type, std::byte* at, uint64_t room, uint64_t place, uint64_t target, int64_t addend) {
  const uint64_t value = target + static_cast<uint64_t>(addend);
  if (type == R_AARCH64_ABS64) {
    if (room < 8) return damaged("a relocation lies past its section");
    put(at, value);
    return ok();
  }
  if (room < 4) return damaged("a relocation lies past its section");
  uint32_t word;
  std::memcpy(&word, at, 4);
  const auto lo12 = [&](unsigned shift) -> Status {
    if ((value & ((1u << shift) - 1)) != 0) return damaged("a relocation does not point at a whole element");
    word = (word & ~(0xfffu << 10)) | (static_cast<uint32_t>((value & 0xfff) >> shift) << 10);
    return ok();
  };
  const auto within = [](int64_t v, unsigned bits) { return v >= -(int64_t{1} << (bits - 1)) && v >> (bits - 1) <= 0; };
  switch (type) {
    case R_AARCH64_NONE: return ok();
    case R_AARCH64_ADR_PREL_PG_HI21: {
      const int64_t pages = static_cast<int64_t>((value & ~uint64_t{0xfff}) - (place & ~uint64_t{0xfff})) >> 12;
      if (!within(pages, 21)) return damaged("a relocation does not fit 21 bits");
      word = (word & ~0x60ffffe0u) | (static_cast<uint32_t>(pages & 3) << 29) |
             (static_cast<uint32_t>((pages >> 2) & 0x7ffff) << 5);
      break;
    }
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC: TERN_OK(lo12(0)); break;
    case R_AARCH64_LDST16_ABS_LO12_NC: TERN_OK(lo12(1)); break;
    case R_AARCH64_LDST32_ABS_LO12_NC: TERN_OK(lo12(2)); break;
    case R_AARCH64_LDST64_ABS_LO12_NC: TERN_OK(lo12(3)); break;
    case R_AARCH64_LDST128_ABS_LO12_NC: TERN_OK(lo12(4)); break;
    case R_AARCH64_CALL26:
    case R_AARCH64_JUMP26: {
      const auto distance = static_cast<int64_t>(value - place);
      if (!within(distance, 28) || distance % 4 != 0) return damaged("a relocation does not fit a branch");
      word = (word & 0xfc000000u) | static_cast<uint32_t>((distance >> 2) & 0x3ffffff);
      break;
    }
    case R_AARCH64_PREL32: {
      const int64_t relative = static_cast<int64_t>(value) - static_cast<int64_t>(place);
      TERN_OK(fits32(relative));
      word = static_cast<uint32_t>(relative);
      break;
    }
    default: return make_error(Code::unsupported, "kernel object uses relocation type " + std::to_string(type));
  }
  put(at, word);
  return ok();
}

Status apply_relocations(const Reader& in, const Image& image, const Symbols& symbols, std::byte* base) {
  for (const Section& s : image.sections) {
    if (s.header.sh_type != SHT_RELA || s.header.sh_info >= image.sections.size()) continue;
    const Section& home = image.sections[s.header.sh_info];
    if (!home.in_image) continue;  // debug information, unwind tables
    for (uint64_t i = 0; i < s.header.sh_size / sizeof(Elf64_Rela); ++i) {
      TERN_TRY(const Elf64_Rela r, in.at<Elf64_Rela>(s.header.sh_offset + i * sizeof(Elf64_Rela)));
      const uint64_t index = ELF64_R_SYM(r.r_info);
      if (index >= symbols.address.size() || r.r_offset > home.header.sh_size)
        return damaged("a relocation points nowhere");
      if (symbols.address[index] == ~uint64_t{0}) {
        return make_error(Code::unsupported, "kernel object wants the outside symbol '" + symbols.names[index] + "'");
      }
      const auto start = reinterpret_cast<uint64_t>(base);
      const auto relocate = kMachine == EM_AARCH64 ? relocate_arm : relocate_x86;
      TERN_OK(relocate(static_cast<uint32_t>(ELF64_R_TYPE(r.r_info)), base + home.placed + r.r_offset,
                       home.header.sh_size - r.r_offset, start + home.placed + r.r_offset,
                       start + symbols.address[index], r.r_addend));
    }
  }
  return ok();
}

}  // namespace

Result<std::unique_ptr<LoadedObject>> load_object(std::span<const std::byte> object) {
  const Reader in(object);
  TERN_TRY(const Image image, lay_out(in));
  TERN_TRY(const Symbols symbols, read_symbols(in, image));
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  auto impl = std::make_unique<LoadedObject::Impl>();
  impl->bytes = (image.bytes + page - 1) / page * page;
  void* memory = mmap(nullptr, impl->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return Error{Code::out_of_memory, "no memory for a kernel's code", {}, impl->bytes, 0};
  }
  impl->base = static_cast<std::byte*>(memory);
  for (const Section& s : image.sections) {
    if (!s.in_image || s.header.sh_type == SHT_NOBITS) continue;
    TERN_TRY(const std::span<const std::byte> data, in.range(s.header.sh_offset, s.header.sh_size));
    std::memcpy(impl->base + s.placed, data.data(), data.size());
  }
  TERN_OK(apply_relocations(in, image, symbols, impl->base));
  for (size_t i = 0; i < symbols.address.size(); ++i) {
    if (symbols.address[i] != ~uint64_t{0} && !symbols.names[i].empty()) {
      impl->symbols.emplace(symbols.names[i], impl->base + symbols.address[i]);
    }
  }
  if (mprotect(impl->base, impl->bytes, PROT_READ | PROT_EXEC) != 0) {
    return make_error(Code::unsupported,
                      "this system refuses executable memory; allow it for the process (mprotect PROT_EXEC)");
  }
  __builtin___clear_cache(reinterpret_cast<char*>(impl->base), reinterpret_cast<char*>(impl->base + impl->bytes));
  return std::unique_ptr<LoadedObject>(new LoadedObject(std::move(impl)));
}

}  // namespace tern::cpu
