#include <cstring>
#include <new>

#include "backends/cpu/tiles/code.h"
#include "kir/eval.h"

namespace tern::cpu {
namespace {

constexpr size_t kAlign = 64;

// A thread's frame: kept between runs, grown where a program wants more.
class Frame {
 public:
  ~Frame() { release(); }
  std::byte* at_least(size_t bytes) {
    if (bytes <= bytes_) return data_;
    release();
    data_ = static_cast<std::byte*>(::operator new(bytes, std::align_val_t{kAlign}));
    bytes_ = bytes;
    return data_;
  }

 private:
  void release() {
    if (data_ != nullptr) ::operator delete(data_, std::align_val_t{kAlign});
    data_ = nullptr;
  }
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

void fill(std::byte* to, uint64_t bits, uint32_t bytes) {
  for (uint32_t l = 0; l < kBlockLanes; ++l) std::memcpy(to + size_t{l} * bytes, &bits, bytes);
}

class Run {
 public:
  Run(const TileProgram::Code& code, std::byte* frame, void* const* buffers)
      : c_(code), frame_(frame), buffers_(buffers) {}

  void group(uint32_t group) {
    fill(frame_ + c_.group, group, 4);
    mask_ = nullptr;
    block(0, static_cast<uint32_t>(c_.code.size()));
  }

 private:
  uint32_t word(uint32_t offset) const {
    uint32_t v;
    std::memcpy(&v, frame_ + offset, 4);
    return v;
  }

  void block(uint32_t at, uint32_t end) {
    while (at < end) {
      const TileIns& i = c_.code[at++];
      switch (i.kind) {
        case TileIns::Kind::pure: pure(i, i.pure); break;
        case TileIns::Kind::set:
          if (mask_ != nullptr && i.blend != nullptr)
            blend(i);
          else
            pure(i, i.pure);
          break;
        case TileIns::Kind::load: load(i); break;
        case TileIns::Kind::store: store(i); break;
        case TileIns::Kind::first: first(i); break;
        case TileIns::Kind::reduce: reduce(i); break;
        case TileIns::Kind::branch:
          branch(i, at);
          at = i.end;
          break;
        case TileIns::Kind::loop:
          loop(i, at);
          at = i.end;
          break;
      }
    }
  }

  void pure(const TileIns& i, PureFn f) {
    f({i.blocks,
       frame_ + i.out,
       {frame_ + i.in[0], frame_ + i.in[1], frame_ + i.in[2]},
       {i.stride[0], i.stride[1], i.stride[2]},
       i.low,
       i.high});
  }
  void blend(const TileIns& i) {
    i.blend({i.blocks,
             frame_ + i.out,
             {frame_ + i.in[0], reinterpret_cast<const std::byte*>(mask_), frame_},
             {i.stride[0], 1, 0},
             0,
             0});
  }

  MemoryArgs access(const TileIns& i, uint32_t index) {
    MemoryArgs g;
    g.lanes = c_.lanes;
    g.base = i.array ? frame_ + i.memory : static_cast<std::byte*>(buffers_[i.memory]);
    g.index = reinterpret_cast<const uint32_t*>(frame_ + index);
    g.mask = mask_;
    g.width = i.width;
    g.one = i.one;
    return g;
  }
  void load(const TileIns& i) {
    MemoryArgs g = access(i, i.in[0]);
    const size_t part = size_t{i.blocks} * kBlockLanes * (kir::type_bytes(i.type) == 8 ? 8 : 4);
    for (uint32_t p = 0; p < i.width; ++p) g.value[p] = frame_ + i.out + p * part;
    i.move(g);
  }
  void store(const TileIns& i) {
    MemoryArgs g = access(i, i.index);
    for (uint32_t p = 0; p < i.width; ++p) g.value[p] = frame_ + i.in[p], g.value_step[p] = i.stride[p];
    i.move(g);
  }

  // Equal in all lanes, though computed in each.
  void first(const TileIns& i) {
    const uint32_t bytes = kir::type_bytes(i.type) == 8 ? 8 : 4;
    uint64_t bits = 0;
    std::memcpy(&bits, frame_ + i.in[0], bytes);
    fill(frame_ + i.out, bits, bytes);
  }

  // Upper half onto lower half until one lane is left: the order that kir/ir.h states. in[1] is room to work in.
  void reduce(const TileIns& i) {
    const uint32_t bytes = kir::type_bytes(i.type) == 8 ? 8 : 4;
    std::byte* v = frame_ + i.in[1];
    for (uint32_t l = 0; l < c_.lanes; ++l)
      std::memcpy(v + size_t{l} * bytes, frame_ + i.in[0] + size_t{l} * i.stride[0] * bytes, bytes);
    for (uint32_t left = c_.lanes; left > 1; left = (left + 1) / 2) {
      const uint32_t half = (left + 1) / 2;
      std::byte* upper = v + size_t{half} * bytes;
      if (left % (2 * kBlockLanes) == 0) {
        i.pure({half / kBlockLanes, v, {v, upper, v}, {1, 1, 0}, 0, 0});
        continue;
      }
      for (uint32_t l = 0; l < left - half; ++l) {
        uint64_t a = 0, b = 0, r = 0;
        std::memcpy(&a, v + size_t{l} * bytes, bytes);
        std::memcpy(&b, upper + size_t{l} * bytes, bytes);
        kir::eval(i.op, i.type, i.type, a, b, 0, &r);
        std::memcpy(v + size_t{l} * bytes, &r, bytes);
      }
    }
    uint64_t bits = 0;
    std::memcpy(&bits, v, bytes);
    fill(frame_ + i.out, bits, bytes);
  }

  void branch(const TileIns& i, uint32_t body) {
    if (i.one) {
      if (word(i.in[0]) != 0) block(body, i.end);
      return;
    }
    const auto* cond = reinterpret_cast<const uint32_t*>(frame_ + i.in[0]);
    const auto* live = reinterpret_cast<const uint32_t*>(frame_ + c_.live);
    auto* inner = reinterpret_cast<uint32_t*>(frame_ + i.out);
    const uint32_t* outer = mask_ != nullptr ? mask_ : live;
    uint32_t any = 0, missing = 0;
    for (uint32_t l = 0; l < i.blocks * kBlockLanes; ++l) {
      inner[l] = cond[l] & outer[l];
      any |= inner[l];
      missing |= inner[l] ^ live[l];
    }
    if (any == 0) return;
    const uint32_t* before = mask_;
    mask_ = missing == 0 ? nullptr : inner;
    block(body, i.end);
    mask_ = before;
  }

  void loop(const TileIns& i, uint32_t body) {
    const uint32_t lo = word(i.in[0]), hi = word(i.in[1]);
    const bool sign = i.type == kir::i32;
    const int64_t from = sign ? int64_t{static_cast<int32_t>(lo)} : int64_t{lo};
    const int64_t to = sign ? int64_t{static_cast<int32_t>(hi)} : int64_t{hi};
    for (int64_t n = from; n < to; ++n) {
      fill(frame_ + i.out, static_cast<uint32_t>(n), 4);
      block(body, i.end);
    }
  }

  const TileProgram::Code& c_;
  std::byte* frame_;
  void* const* buffers_;
  const uint32_t* mask_ = nullptr;  // null: all lanes
};

}  // namespace

void TileProgram::run(void* const* buffers, const uint32_t* dims, uint32_t first, uint32_t end) const {
  thread_local Frame frames;
  const Code& c = *code_;
  std::byte* frame = frames.at_least(c.frame);
  std::memcpy(frame, c.image.data(), c.image.size());
  for (const Code::Scalar& s : c.dims) fill(frame + s.offset, dims[s.dim], 4);
  Run run(c, frame, buffers);
  for (uint32_t g = first; g < end; ++g) run.group(g);
}

uint32_t TileProgram::frame_bytes() const { return code_->frame; }

}  // namespace tern::cpu
