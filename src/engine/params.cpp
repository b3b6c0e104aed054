#include "engine/params.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "base/cpu.h"
#include "base/platform/thread.h"
#include "base/platform/within_memory.h"
#include "tern/weights.h"

namespace tern {
namespace {

// Packed in pieces of about this many source bytes, so that pages behind the reader can go and threads share large
// values.
constexpr uint64_t kPieceBytes = uint64_t{4} << 20;

Result<std::vector<int64_t>> constant_shape(const TensorType& type, const std::string& name) {
  std::vector<int64_t> shape;
  for (const Dim d : type.shape) {
    const auto c = d.constant();
    if (!c)
      return make_error(Code::unsupported,
                        "parameter '" + name + "' has a symbolic shape; parameters have constant shapes", name);
    shape.push_back(*c);
  }
  return shape;
}

std::string type_text(DType dtype, const Format* format, std::span<const int64_t> shape) {
  std::string text = std::string(format != nullptr ? format->name : dtype_name(dtype)) + "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

Status check_type(const IoDef& io, DType dtype, const Format* format, std::span<const int64_t> shape,
                  const std::string& where) {
  TERN_TRY(const std::vector<int64_t> want, constant_shape(io.type, io.name));
  if (dtype == io.type.dtype && format == io.type.format &&
      std::equal(want.begin(), want.end(), shape.begin(), shape.end()))
    return ok();
  return make_error(Code::invalid,
                    "parameter '" + io.name + "' is " + type_text(dtype, format, shape) + ", the program wants " +
                        type_text(io.type.dtype, io.type.format, want),
                    where);
}

const IoDef* find_param(const Program& program, std::string_view name) {
  for (const IoDef& io : program.io.io) {
    if (io.kind == IoDef::Kind::param && io.name == name) return &io;
  }
  return nullptr;
}

struct Piece {
  const IoDef* io;
  const WeightInfo* info;
  int64_t row, rows;
  uint64_t first_byte, bytes;
};

// Whether 16- or 32-bit floats hold a NaN: all bits of the exponent and some of the fraction.
template <class Bits>
bool has_nan(std::span<const std::byte> data, Bits exponent) {
  constexpr Bits kMagnitude = static_cast<Bits>(~Bits{0}) >> 1;
  bool found = false;
  for (size_t i = 0; i + sizeof(Bits) <= data.size(); i += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, data.data() + i, sizeof bits);
    found |= static_cast<Bits>(bits & kMagnitude) > exponent;
  }
  return found;
}

// A NaN in a weight would vanish where activations are quantised, and the answer would be fluent and wrong.
Status check_floats(const Piece& piece, const Planes& planes) {
  const TensorType& type = piece.info->type;
  if (type.format != nullptr) return ok();  // layouts look at the scales of blocks
  if (piece.first_byte + piece.bytes > planes.p[0].size()) return ok();
  const auto data = planes.p[0].subspan(piece.first_byte, piece.bytes);
  const bool bad = type.dtype == DType::f32    ? has_nan<uint32_t>(data, 0x7f800000u)
                   : type.dtype == DType::f16  ? has_nan<uint16_t>(data, 0x7c00)
                   : type.dtype == DType::bf16 ? has_nan<uint16_t>(data, 0x7f80)
                                               : false;
  return bad ? Status(make_error(Code::malformed, "a value is not a number (NaN)")) : ok();
}

// Rows of one piece: a multiple of every layout's window unit.
int64_t piece_rows(const Program& program, const IoDef& io, int64_t rows, uint64_t row_bytes) {
  int64_t unit = 1;
  for (const BufferId id : io.buffers) {
    const Layout& layout = program.buffers[id].layout;
    if (layout.def->window_axis < 0) return rows;
    unit = std::max<int64_t>(unit, layout.def->window_unit(layout.tile));
  }
  const int64_t fit = static_cast<int64_t>(kPieceBytes / std::max<uint64_t>(1, row_bytes)) / unit * unit;
  return std::clamp<int64_t>(fit, std::min(unit, rows), rows);
}

}  // namespace

namespace engine {
Result<int64_t> row_count(const TensorType& type, const std::string& name) {
  TERN_TRY(const std::vector<int64_t> shape, constant_shape(type, name));
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  return rows;
}
}  // namespace engine

Status Params::Impl::allocate(const IoDef& io) {
  for (const BufferId id : io.buffers) {
    if (buffers[id]) continue;
    const BufferDef& def = loaded->program.buffers[id];
    const auto bytes = def.bytes.constant();
    if (!bytes) return make_error(Code::internal, "a parameter's size is symbolic", io.name);
    TERN_TRY(std::unique_ptr<hal::Buffer> buffer,
             loaded->device->allocate(static_cast<uint64_t>(*bytes), hal::MemoryKind::device));
    buffers[id] = std::move(buffer);
  }
  return ok();
}

Status Params::Impl::pack_rows(const IoDef& io, const Planes& planes, int64_t row, int64_t rows) {
  for (const BufferId id : io.buffers) {
    const BufferDef& def = loaded->program.buffers[id];
    if (def.layout.def->pack == nullptr)
      return make_error(Code::internal, "parameters cannot be packed into this layout", io.name);
    hal::Buffer& buffer = *buffers[id];
    if (!buffer.host().empty() || buffer.size() == 0) {
      TERN_OK(def.layout.def->pack(io.type, planes, def.layout.tile, row, rows, buffer.host().data()));
      continue;
    }
    // Packed into host memory, then sent: only the part that these rows fill.
    std::vector<std::byte> staging(buffer.size());
    TERN_OK(def.layout.def->pack(io.type, planes, def.layout.tile, row, rows, staging.data()));
    TERN_TRY(const int64_t all, engine::row_count(io.type, io.name));
    uint64_t first = 0, end = buffer.size();
    if (rows < all) {
      const auto unit = static_cast<int64_t>(def.layout.def->window_unit(def.layout.tile));
      DimTable dims;
      const auto unit_bytes = def.layout.def->unit_bytes(dims, io.type, def.layout.tile);
      if (!unit_bytes) return make_error(Code::internal, unit_bytes.why(), io.name);
      const auto bytes = static_cast<uint64_t>(*unit_bytes->constant());
      first = static_cast<uint64_t>(row / unit) * bytes;
      end = std::min<uint64_t>(end, static_cast<uint64_t>((row + rows + unit - 1) / unit) * bytes);
    }
    TERN_TRY(std::unique_ptr<hal::Queue> queue, loaded->device->queue());
    TERN_TRY(const hal::Ticket ticket, queue->upload(std::span(staging).subspan(first, end - first), buffer, first));
    TERN_OK(queue->wait(ticket, -1));
  }
  return ok();
}

Status Params::set(std::string_view name, const TensorView& value) try {
  const IoDef* io = find_param(impl_->loaded->program, name);
  if (io == nullptr) return make_error(Code::not_found, "the program has no parameter '" + std::string(name) + "'");
  TERN_OK(check_type(*io, value.dtype, value.format, value.shape, {}));
  TERN_TRY(const int64_t rows, engine::row_count(io->type, io->name));
  TERN_TRY(const uint64_t bytes, dense_bytes(value.dtype, value.format, value.shape));
  if (value.data.size() != bytes) {
    return Error{
        Code::invalid, "parameter '" + io->name + "' has the wrong number of bytes", {}, bytes, value.data.size()};
  }
  TERN_OK(impl_->allocate(*io));
  Planes planes;
  planes.p[0] = value.data;
  ++impl_->changes;
  TERN_OK(impl_->pack_rows(*io, planes, 0, rows));
  impl_->set[static_cast<size_t>(io - impl_->loaded->program.io.io.data())] = true;
  return ok();
} catch (const std::bad_alloc&) {
  return memory_ended();
}

Status Params::set_rows(std::string_view name, int64_t first, const TensorView& value) try {
  const IoDef* io = find_param(impl_->loaded->program, name);
  if (io == nullptr) return make_error(Code::not_found, "the program has no parameter '" + std::string(name) + "'");
  const size_t index = static_cast<size_t>(io - impl_->loaded->program.io.io.data());
  if (!impl_->set[index])
    return make_error(Code::invalid, "parameter '" + io->name + "' has no value yet; set it whole first");
  TERN_TRY(std::vector<int64_t> want, constant_shape(io->type, io->name));
  if (want.empty() || value.shape.empty() || first < 0 || value.shape[0] < 0 || first > want[0] - value.shape[0]) {
    return make_error(Code::invalid, "rows lie outside parameter '" + io->name + "'");
  }
  IoDef part = *io;
  part.type.shape[0] = value.shape[0];
  TERN_OK(check_type(part, value.dtype, value.format, value.shape, {}));
  TERN_TRY(const uint64_t bytes, dense_bytes(value.dtype, value.format, value.shape));
  if (value.data.size() != bytes)
    return Error{Code::invalid, "rows of '" + io->name + "' have the wrong size", {}, bytes, value.data.size()};
  int64_t inner = 1;
  for (size_t i = 1; i + 1 < want.size(); ++i) inner *= want[i];
  if (want.size() == 1) return make_error(Code::unsupported, "parameter '" + io->name + "' is a vector; set it whole");
  for (const BufferId id : io->buffers) {
    const Layout& layout = impl_->loaded->program.buffers[id].layout;
    const int64_t unit = layout.def->window_axis < 0 ? want[0] * inner : layout.def->window_unit(layout.tile);
    const bool whole_end = first + value.shape[0] == want[0];
    if (first * inner % unit != 0 || (!whole_end && value.shape[0] * inner % unit != 0)) {
      return make_error(Code::unsupported, "rows of '" + io->name + "' are packed in groups of " +
                                               std::to_string(unit) + "; give whole groups");
    }
  }
  // pack() reads planes by absolute block, so the rows are seen as a value that starts `first` rows earlier.
  TERN_TRY(const uint64_t row_bytes,
           dense_bytes(value.dtype, value.format, std::span(value.shape).subspan(value.shape.size() - 1)));
  std::vector<std::byte> whole(static_cast<uint64_t>((first + value.shape[0]) * inner) * row_bytes);
  std::copy(value.data.begin(), value.data.end(), whole.end() - static_cast<std::ptrdiff_t>(value.data.size()));
  Planes planes;
  planes.p[0] = whole;
  ++impl_->changes;
  return impl_->pack_rows(*io, planes, first * inner, value.shape[0] * inner);
} catch (const std::bad_alloc&) {
  return memory_ended();
}

Status Params::load(const WeightSource& source, const Progress& progress) try {
  const Program& program = impl_->loaded->program;
  std::vector<Piece> pieces;
  uint64_t total = 0;
  for (const IoDef& io : program.io.io) {
    if (io.kind != IoDef::Kind::param) continue;
    const WeightInfo* info = source.find(io.name);
    if (info == nullptr) return make_error(Code::not_found, "the model has no tensor '" + io.name + "'", io.name);
    TERN_TRY(const std::vector<int64_t> shape, constant_shape(info->type, io.name));
    TERN_OK(check_type(io, info->type.dtype, info->type.format, shape, info->where));
    TERN_OK(impl_->allocate(io));
    TERN_TRY(const int64_t rows, engine::row_count(io.type, io.name));
    const uint64_t row_bytes = rows > 0 ? info->bytes / static_cast<uint64_t>(rows) : 0;
    const int64_t step = std::max<int64_t>(1, piece_rows(program, io, rows, row_bytes));
    for (int64_t row = 0; row < rows; row += step) {
      const int64_t n = std::min(step, rows - row);
      pieces.push_back(
          {&io, info, row, n, static_cast<uint64_t>(row) * row_bytes, static_cast<uint64_t>(n) * row_bytes});
    }
    total += info->bytes;
  }
  ++impl_->changes;
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  Status first_failure = ok();
  uint64_t done = 0;
  const auto work = [&] {
    for (size_t i = next++; i < pieces.size() && !failed; i = next++) {
      const Piece& piece = pieces[i];
      Status status = [&]() -> Status {
        TERN_TRY(const Planes planes, source.planes(*piece.info));
        TERN_OK(check_floats(piece, planes));
        return impl_->pack_rows(*piece.io, planes, piece.row, piece.rows);
      }();
      if (!status && status.error().code == Code::malformed) {
        status =
            make_error(Code::malformed, "the tensor '" + piece.info->name + "' cannot be used: " + status.error().text,
                       piece.info->where);
      }
      source.drop(*piece.info, piece.first_byte, piece.bytes);
      const std::lock_guard lock(mutex);
      if (!status && !failed.exchange(true)) first_failure = std::move(status);
      done += piece.bytes;
      if (progress) progress(done, total);
    }
  };
  work_on_threads(static_cast<unsigned>(std::min<size_t>(allowed_cores(), pieces.size())), work);
  if (!first_failure) return first_failure;
  for (size_t i = 0; i < program.io.io.size(); ++i) {
    if (program.io.io[i].kind == IoDef::Kind::param) impl_->set[i] = true;
  }
  return ok();
} catch (const std::bad_alloc&) {
  return memory_ended();
}

std::vector<std::string> Params::missing() const {
  std::vector<std::string> out;
  const auto& io = impl_->loaded->program.io.io;
  for (size_t i = 0; i < io.size(); ++i) {
    if (io[i].kind == IoDef::Kind::param && !impl_->set[i]) out.push_back(io[i].name);
  }
  return out;
}

uint64_t Params::bytes() const {
  uint64_t sum = 0;
  for (const auto& buffer : impl_->buffers) sum += buffer ? buffer->size() : 0;
  return sum;
}

}  // namespace tern
