// What every kernel of this room is written with: a kernel under construction together with the launch that runs it.
#pragma once

#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "kir/builder.h"
#include "program/candidate.h"

namespace tern::kernels {

// One kernel and one launch of it. Sizes and buffers are named once and become dims and bindings of the kernel and
// scalars and uses of the step, in the same order.
class Launcher {
 public:
  Launcher(BuildCtx& ctx, const Problem& problem, std::string name, uint32_t lanes);

  kir::B& b() { return b_; }
  const Caps& caps() const { return ctx_.asked.caps; }
  DimTable& dims() { return ctx_.asked.dims; }
  const Problem& problem() const { return problem_; }

  using Place = std::source_location;
  // A size as a u32: folded where it is constant and small, else one dim of the kernel.
  kir::V size(Dim d, Place place = Place::current());
  // A size that is never part of the kernel, so that one kernel serves them all. Each place of the source has arguments
  // of its own: sizes that are equal by chance in one model make no kernel of their own.
  kir::V argument(Dim d, Place place = Place::current());
  // A constant of the launch that must not be folded: windows of one kernel differ in it.
  kir::V scalar(Dim d);
  // The whole operand, bound once; other views come from Buffer::as.
  kir::Buffer operand(uint16_t index);
  // Binds an output whose stores go past the caches.
  void stream(uint16_t index);
  // A window of an operand, or scratch, bound as it is; what is read twice is bound once and seen in two ways.
  kir::Buffer bind(const Use& use, std::string_view name, kir::Type type, kir::BufferOptions options = {});

  // Closes the kernel and adds the step.
  Status launch(Dim groups);

 private:
  Ref memory_of(Ref ref) const;
  kir::Buffer bind_operand(uint16_t index, bool streaming);

  BuildCtx& ctx_;
  const Problem& problem_;
  kir::B b_;
  struct Argument {
    Dim size;
    std::string_view file;
    uint32_t line, column;
    kir::V value;
  };
  std::vector<Argument> arguments_;
  std::vector<Dim> scalars_;
  std::vector<Use> uses_;
  std::vector<kir::Buffer> bound_;  // the same
  std::vector<std::pair<uint16_t, kir::Buffer>> operands_;
};

// Lanes of a streaming kernel over `count` elements (negative: unknown): about four registers, never more than there
// is.
uint32_t stream_lanes(const Caps& caps, int64_t count);
uint32_t floor_power_of_two(uint64_t v);

// Operands by role; -1: none.
int find_role(const Problem& problem, Role role, int nth = 0);
// The numerics tag: a kernel's name and version, and what its order depends on.
Hash numerics_tag(std::string_view name, std::initializer_list<int64_t> numbers, const Caps& caps,
                  std::string_view format = {});

// Bytes of an operand in a layout at the range's upper bounds; saturates.
double bytes_of(const Operand& operand, const Layout& layout, const Problem& problem, const Asked& asked);
double largest(const Asked& asked, const Problem& problem, Dim d);
// Why operands cannot be bound: too many, or one larger than a binding. Operands named in `windowed` are cut.
OrRefuse<Unit> check_bindings(const Problem& problem, const std::vector<Layout>& layouts, const Asked& asked,
                              std::initializer_list<int> windowed = {});
// Every operand dense; those that already have a layout must have that one.
OrRefuse<std::vector<Layout>> dense_layouts(const Problem& problem);
inline bool is_dense(const Layout& l) { return !l || l.def == &kDense; }

// The storage type of a dense operand, or a refusal: what kir has no view of, or the device does not compute.
OrRefuse<kir::Type> storage_of(const TensorType& type, const Caps& caps);

}  // namespace tern::kernels
