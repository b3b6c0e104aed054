#include "kernels/common/launch.h"

#include <algorithm>
#include <bit>

#include "kir/serial.h"

namespace tern::kernels {

namespace {

// Statements: what a device lacks is written out many times over.
constexpr uint32_t kBudget = 1500;
// Constant sizes up to this one become part of the kernel: heads, rows of tiles, strides between neighbours, which
// decide how memory is reached. Larger ones (widths of a model) are arguments, so that one kernel serves every model.
constexpr int64_t kFolded = 256;

kir::Access kir_access(Access a) {
  return a == Access::read ? kir::read : a == Access::write ? kir::write : kir::update;
}

}  // namespace

Launcher::Launcher(BuildCtx& ctx, const Problem& problem, std::string name, uint32_t lanes)
    : ctx_(ctx), problem_(problem), b_(std::move(name), lanes, ctx.asked.caps) {
  b_.node_budget(kBudget);
}

kir::V Launcher::size(Dim d, Place place) {
  if (const auto c = d.constant(); c && *c <= kFolded)
    return kir::constant(kir::u32, static_cast<double>(static_cast<uint32_t>(*c)));
  return argument(d, place);
}

kir::V Launcher::argument(Dim d, Place place) {
  for (const Argument& a : arguments_) {
    // What holds a symbol is one size wherever it stands.
    const bool here = a.line == place.line() && a.column == place.column() && a.file == place.file_name();
    if (a.size == d && (here || !d.constant())) return a.value;
  }
  const kir::V v = scalar(d);
  arguments_.push_back({d, place.file_name(), place.line(), place.column(), v});
  return v;
}

kir::V Launcher::scalar(Dim d) {
  const kir::V v = b_.dim("d" + std::to_string(scalars_.size()));
  scalars_.push_back(d);
  return v;
}

kir::Buffer Launcher::bind_operand(uint16_t index, bool streaming) {
  const Operand& o = problem_.operands[index];
  const auto type = kir::storage_type(o.type.dtype);
  if (!type) b_.fail(type.error().text);
  // Blocks and tiles are seen as words, and what the device has no type for; other views lie on the same binding.
  const bool lacks = type && kir::is_wide64(*type) && !storage_of(o.type, caps());
  const bool words = (o.layout && o.layout.def != &kDense) || !type || o.type.format || lacks;
  const kir::Buffer buffer =
      bind(ctx_.whole(index), "p" + std::to_string(index), words ? kir::u32 : *type, {1, streaming});
  operands_.emplace_back(index, buffer);
  return buffer;
}

kir::Buffer Launcher::operand(uint16_t index) {
  for (const auto& [known, buffer] : operands_) {
    if (known == index) return buffer;
  }
  return bind_operand(index, false);
}

void Launcher::stream(uint16_t index) {
  for (const auto& [known, buffer] : operands_) {
    if (known == index) return;
  }
  bind_operand(index, true);
}

kir::Buffer Launcher::bind(const Use& use, std::string_view name, kir::Type type, kir::BufferOptions options) {
  const Ref memory = memory_of(use.ref);
  for (size_t i = 0; i < uses_.size() && use.access == Access::read; ++i) {
    if (uses_[i].access == Access::read && memory_of(uses_[i].ref) == memory) return bound_[i].as(type, options.width);
  }
  uses_.push_back(use);
  bound_.push_back(b_.buffer(name, type, kir_access(use.access), options));
  return bound_.back();
}

// Operands that are one value in one layout are the same memory.
Ref Launcher::memory_of(Ref ref) const {
  const auto& operands = problem_.operands;
  if (ref.id >= operands.size() || operands[ref.id].alias >= ref.id) return ref;
  if (operands[operands[ref.id].alias].layout == operands[ref.id].layout) ref.id = operands[ref.id].alias;
  return ref;
}

Status Launcher::launch(Dim groups) {
  TERN_TRY(const kir::Kernel kernel, b_.finish());
  KernelDef def;
  def.name = kernel.name;
  def.kind = KernelDef::Kind::kir;
  def.code = kir::serialize(kernel);
  for (const kir::Binding& b : kernel.bindings) {
    def.sig.bindings.push_back(b.access == kir::read    ? Access::read
                               : b.access == kir::write ? Access::write
                                                        : Access::update);
  }
  def.sig.scalars = static_cast<uint32_t>(scalars_.size());
  def.hash = Hasher().text("kir").bytes(def.code).text(caps().isa).u64(static_cast<uint64_t>(caps().form)).done();
  Step step;
  step.what = Launch{ctx_.kernel(std::move(def)), groups, scalars_};
  step.uses = uses_;
  ctx_.step(std::move(step));
  return ok();
}

uint32_t floor_power_of_two(uint64_t v) {
  return v == 0 ? 1u : 1u << (std::bit_width(std::min<uint64_t>(v, 1u << 30)) - 1);
}

uint32_t stream_lanes(const Caps& caps, int64_t count) {
  uint32_t lanes = floor_power_of_two(std::min(caps.max_lanes, caps.lanes * 4));
  while (count >= 0 && lanes > 1 && static_cast<int64_t>(lanes / 2) >= count) lanes /= 2;
  return lanes;
}

int find_role(const Problem& problem, Role role, int nth) {
  for (size_t i = 0; i < problem.operands.size(); ++i) {
    if (problem.operands[i].role == role && nth-- == 0) return static_cast<int>(i);
  }
  return -1;
}

Hash numerics_tag(std::string_view name, std::initializer_list<int64_t> numbers, const Caps& caps,
                  std::string_view format) {
  Hasher h;
  h.text(name).text(format).text(caps.isa).u64(caps.lanes).u64(caps.fma);
  for (int64_t n : numbers) h.i64(n);
  return h.done();
}

double largest(const Asked& asked, const Problem& problem, Dim d) {
  return static_cast<double>(asked.dims.range(d, problem.bounds).second);
}

double bytes_of(const Operand& operand, const Layout& layout, const Problem& problem, const Asked& asked) {
  const auto bytes = layout.def->bytes(asked.dims, operand.type, layout.tile);
  return bytes ? largest(asked, problem, *bytes) : 0;
}

OrRefuse<Unit> check_bindings(const Problem& problem, const std::vector<Layout>& layouts, const Asked& asked,
                              std::initializer_list<int> windowed) {
  if (problem.operands.size() > asked.caps.max_bindings) {
    return refuse(std::to_string(problem.operands.size()) + " operands, the device binds " +
                  std::to_string(asked.caps.max_bindings));
  }
  for (size_t i = 0; i < problem.operands.size(); ++i) {
    const Operand& o = problem.operands[i];
    if (layouts[i].def == &kDense && !o.type.format && o.role != Role::index) {
      TERN_ACCEPT(const kir::Type type, storage_of(o.type, asked.caps));
      (void)type;
    }
    if (std::find(windowed.begin(), windowed.end(), static_cast<int>(i)) != windowed.end()) {
      TERN_ACCEPT(const int count, window_count(o, layouts[i], problem.bounds, asked));
      (void)count;
      continue;
    }
    TERN_ACCEPT(const Unit fit, fits_binding(static_cast<uint16_t>(i), o, layouts[i], problem.bounds, asked));
    (void)fit;
  }
  return Unit{};
}

OrRefuse<std::vector<Layout>> dense_layouts(const Problem& problem) {
  std::vector<Layout> out;
  for (size_t i = 0; i < problem.operands.size(); ++i) {
    const Operand& o = problem.operands[i];
    if (!is_dense(o.layout))
      return refuse("operand " + std::to_string(i) + " lies as " + std::string(o.layout.def->name) + ", wants dense");
    if (o.type.format)
      return refuse("operand " + std::to_string(i) + " is in blocks of " + std::string(o.type.format->name));
    out.push_back({&kDense, {}});
  }
  return out;
}

OrRefuse<kir::Type> storage_of(const TensorType& type, const Caps& caps) {
  const auto t = kir::storage_type(type.dtype);
  if (!t) return refuse("kernels have no values of " + std::string(dtype_name(type.dtype)));
  if ((*t == kir::i64 || *t == kir::u64) && !caps.i64) return refuse("the device has no 64-bit integers");
  if (*t == kir::f64 && !caps.f64) return refuse("the device has no f64");
  return *t;
}

}  // namespace tern::kernels
