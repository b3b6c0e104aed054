// The Program: what lower makes and every device runs. Plain data with a versioned serial form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/hash.h"
#include "program/layout.h"
#include "program/problem.h"

namespace tern {

using BufferId = uint32_t;
using KernelId = uint32_t;
using LibraryId = uint32_t;
using DeviceId = uint32_t;
inline constexpr uint32_t kNone = ~0u;

// A window of a buffer, in bytes; where the buffer lies is the slot table's matter.
struct Ref {
  BufferId id = kNone;
  Dim offset, bytes;
  bool operator==(const Ref&) const = default;
};
struct Use {
  Ref ref;
  Access access = Access::read;
};

struct Signature {
  std::vector<Access> bindings;
  uint32_t scalars = 0;  // u32 dims
  bool operator==(const Signature&) const = default;
};
struct KernelDef {
  enum class Kind : uint8_t { kir, text, binary, native };
  std::string name;
  Hash hash;  // of content, form and caps
  Kind kind = Kind::kir;
  std::vector<std::byte> code;  // kir: kir/serial.h; binary: a relocatable object, or SPIR-V; text: source
  std::string entry;            // text, SPIR-V: of the code; no two kernels of a program have the same
  uint32_t work_items = 0;      // text, SPIR-V: of a workgroup, as the language counts them
  Signature sig;
  uint32_t problem = kNone;
  int16_t part = -1;  // native: code is empty; the name and the Problem (or one part of it) say all
};

// uses = bindings in order; groups are linear. scalars: u32 arguments after the bindings.
struct Launch {
  KernelId kernel = kNone;
  Dim groups;
  std::vector<Dim> scalars;
};
struct Call {
  LibraryId lib = kNone;
  std::vector<Dim> scalars;
};
struct Copy {};  // uses[0] -> uses[1]
struct Fill {    // uses[0]
  uint32_t word = 0;
};
struct Bind {  // uses[0]: the value; the dims block is evaluated again from here on
  uint32_t late_symbol = kNone;
};
struct Branch {  // uses[0]: condition
  uint32_t then_list = kNone, else_list = kNone;
};
struct Loop {
  uint32_t body_list = kNone;
  int64_t max_trips = 0;
};
struct Delegate {
  uint32_t subgraph = kNone;
};
struct Collective {
  uint32_t kind = 0;
};

struct Step {
  std::variant<Launch, Call, Copy, Fill, Bind, Branch, Loop, Delegate, Collective> what;
  std::vector<Use> uses;     // the only list of what is read and written; hazards follow from it
  uint32_t problem = kNone;  // writes of steps of one problem (its windows) are disjoint
  DeviceId on = 0;
  uint32_t phase = 0;  // steps of one phase have no hazard: no barrier between them; set before memory is planned
  std::string label;   // "blk.3.attn_q": for profile and explain
};

struct BufferDef {
  std::string name;  // of the port, or of the node that makes it
  Origin origin = Origin::temp;
  TensorType type;
  Layout layout;
  Dim bytes;
};
struct RangeDef {
  Bounds when;  // empty: any
  uint32_t list = kNone;
  // Where the list binds late sizes: the lists of the steps before, between and after its binds, which run one after
  // the other. Memory is planned for the whole list. Empty: it has none.
  std::vector<uint32_t> parts = {};
};

struct IoDef {
  std::string name;
  enum class Kind : uint8_t { input, output, param, state } kind = Kind::input;
  TensorType type;
  std::vector<BufferId> buffers;  // a param may be stored in several layouts; others have exactly one
  bool optional_read = false;     // outputs: a session may leave it unread
};
// Contents of a buffer of origin param that the graph itself holds.
struct ConstantDef {
  BufferId buffer = kNone;
  Const value;
};
struct Manifest {
  std::vector<IoDef> io;  // index = IoId
};

// Why a candidate did not take a Problem; kept for explain.
struct Choice {
  uint32_t problem = kNone;
  std::string candidate, variant;
  Hash numerics;
  double bytes = 0, flop = 0, seconds = 0;
  std::vector<std::pair<std::string, std::string>> refusals;  // candidate, reason
};

struct Program {
  std::shared_ptr<DimTable> dims;
  std::vector<Guard> guards;
  std::vector<Dim> block;  // what the dims block holds, evaluated at bind; every Dim of a step is here or constant
  std::vector<BufferDef> buffers;
  std::vector<KernelDef> kernels;
  std::vector<Problem> problems;
  std::vector<Choice> choices;
  std::vector<std::vector<Step>> lists;
  std::vector<RangeDef> ranges;   // the first that holds is taken
  uint32_t prepare_list = kNone;  // what depends on params only
  Manifest io;
  std::vector<ConstantDef> constants;
};

// Two uses conflict when their windows of one buffer may overlap and one of them writes.
bool may_conflict(const Program& program, const Use& a, const Use& b);
// Sets Step::phase of a list: the fewest barriers that respect every hazard in order. A bind stands alone in its phase:
// sizes before it are not those behind it.
void assign_phases(Program& program, uint32_t list);
// Sets RangeDef::parts of every range, from the final lists.
void split_at_binds(Program& program);

struct MemoryPlan {
  std::vector<uint64_t> offset;  // per buffer; temps: in the arena; others: 0
  std::vector<uint64_t> bytes;   // per buffer
  uint64_t arena = 0;
};
// The most that each buffer takes at any sizes within the bounds (a size may fall as a symbol grows). Code::limit where
// a size has no bound that 63 bits hold.
Result<std::vector<uint64_t>> most_buffer_bytes(const Program& program, const Bounds& bounds);
// Of one list, for buffers of these bytes. Liveness counts phases.
Result<MemoryPlan> plan_memory(const Program& program, uint32_t list, std::vector<uint64_t> bytes,
                               uint32_t alignment = 64);
// The same for every size within the bounds.
Result<MemoryPlan> plan_range(const Program& program, uint32_t list, const Bounds& bounds, uint32_t alignment);
// Replays the list at these symbol values against the plan; shares no code with it.
Status check_memory(const Program& program, uint32_t list, const MemoryPlan& plan, std::span<const int64_t> symbols);

// Versioned serial form. Layouts and formats travel by name, dims as text; equal Programs give equal bytes.
std::vector<std::byte> serialize(const Program& program);
// Malformed bytes, an unknown version, format or layout are errors; every id is within its table in what comes back.
// The dims belong to a table of their own.
Result<Program> deserialize_program(std::span<const std::byte> bytes);
// Text for people and goldens: lists, steps, phases, buffers.
std::string program_text(const Program& program);

}  // namespace tern
