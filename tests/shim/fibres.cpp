#include "shim/fibres.h"

#include <cstring>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif

// tern_fibre_switch(from, to) keeps what a call must keep on the stack, the stack's place in *from, and goes on at
// `to`.
#if defined(__x86_64__)
asm(R"(
.text
.type tern_fibre_switch,@function
tern_fibre_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tern_fibre_switch,.-tern_fibre_switch
)");
extern "C" void tern_fibre_switch(void** from, void* to);
#elif defined(__aarch64__)
asm(R"(
.text
.type tern_fibre_switch,%function
tern_fibre_switch:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x2, sp
  str x2, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size tern_fibre_switch,.-tern_fibre_switch
)");
extern "C" void tern_fibre_switch(void** from, void* to);
#endif

namespace tern::shim {

namespace {

// Not a power of two: lanes at equal depth would share one set of the cache.
constexpr size_t kStack = 48 * 1024 + 320;
constexpr uint64_t kEdge = 0x7465726e20656467;  // at the far end of each stack: overwritten, the stack was too small

thread_local Fibres* running = nullptr;
thread_local tern_shim::Host the_host;

#if defined(__x86_64__) || defined(__aarch64__)
void go(void** from, void* to) { tern_fibre_switch(from, to); }
void* ready_stack(std::byte* bottom, void (*enter)()) {
  const uintptr_t top = (reinterpret_cast<uintptr_t>(bottom) + kStack) / 16 * 16;
#if defined(__x86_64__)
  constexpr size_t kWords = 8, kEntry = 6;  // six registers, the entry, and the return address that it never uses
#else
  constexpr size_t kWords = 20, kEntry = 11;
#endif
  auto* words = reinterpret_cast<void**>(top) - kWords;
  std::fill_n(words, kWords, nullptr);
  words[kEntry] = reinterpret_cast<void*>(enter);
  return words;
}
#else
// Makes a system call each time, so it is ten times slower.
void go(void** from, void* to) {
  ucontext_t here;
  *from = &here;
  swapcontext(&here, static_cast<ucontext_t*>(to));
}
void* ready_stack(std::byte* bottom, void (*enter)()) {
  auto* context = new (bottom + 16) ucontext_t;
  getcontext(context);
  context->uc_stack.ss_sp = bottom + 16 + sizeof *context;
  context->uc_stack.ss_size = kStack - 16 - sizeof *context;
  context->uc_link = nullptr;
  makecontext(context, enter, 0);
  return context;
}
#endif

uint32_t below(uint64_t& seed, size_t n) {
  seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
  return static_cast<uint32_t>((seed >> 16) % n);
}

}  // namespace

tern_shim::Host& Fibres::host() { return the_host; }

Status Fibres::run(const Launch& launch, const std::function<void()>& body) {
  launch_ = launch, body_ = &body;
  launch_.seed = launch.seed * 0x9e3779b97f4a7c15ull + 1;
  const uint32_t n = launch.lanes;
  lanes_.assign(n, {});
  given_.assign(2 * n, 0);
  if (stacked_ < n) stacks_ = std::make_unique_for_overwrite<std::byte[]>(kStack * n), stacked_ = n;
  error_.clear();
  running = this;
  the_host = {0, n, 0, launch.groups, launch.subgroup, wait_at_barrier, wait_for_subgroup, stop};
  for (uint32_t g = 0; g < launch.groups && error_.empty(); ++g) {
    the_host.group = g;
    run_group();
    if (!error_.empty()) error_ = "group " + std::to_string(g) + ": " + error_;
  }
  running = nullptr;
  if (error_.empty()) return ok();
  return make_error(Code::invalid, error_);
}

void Fibres::run_group() {
  const uint32_t n = launch_.lanes;
  ready_.clear();
  in_subgroup_.assign((n + launch_.subgroup - 1) / launch_.subgroup, 0);
  at_barrier_ = 0;
  for (uint32_t i = 0; i < n; ++i) prepare(i), ready_.push_back(i);
  while (!ready_.empty() && error_.empty()) {
    const uint32_t pick = below(launch_.seed, ready_.size()), lane = ready_[pick];
    ready_[pick] = ready_.back(), ready_.pop_back();
    the_host.lane = lane;
    go(&home_, lanes_[lane].stack);
    arrived(lane);
  }
  if (!error_.empty()) return;
  for (const Lane& l : lanes_) {
    if (l.state != State::ended) return disagree(0, n);
  }
}

void Fibres::prepare(uint32_t lane) {
  std::byte* bottom = stacks_.get() + lane * kStack;
  std::memcpy(bottom, &kEdge, sizeof kEdge);
  lanes_[lane] = {};
  lanes_[lane].stack = ready_stack(bottom, enter);
}

void Fibres::arrived(uint32_t lane) {
  uint64_t edge;
  std::memcpy(&edge, stacks_.get() + lane * kStack, sizeof edge);
  if (edge != kEdge) error_ = "lane " + std::to_string(lane) + " needs more stack than fibres have; raise kStack";
  const uint32_t s = lane / launch_.subgroup, first = s * launch_.subgroup;
  const uint32_t count = std::min(launch_.subgroup, launch_.lanes - first);
  if (lanes_[lane].state == State::barrier && ++at_barrier_ == launch_.lanes) {
    at_barrier_ = 0;
    release(0, launch_.lanes);
  }
  if (lanes_[lane].state == State::gather && ++in_subgroup_[s] == count) {
    in_subgroup_[s] = 0;
    release(first, count);
  }
}

void Fibres::release(uint32_t first, uint32_t count) {
  for (uint32_t i = first; i < first + count; ++i) {
    if (lanes_[i].line != lanes_[first].line) return disagree(first, count);
  }
  for (uint32_t i = first; i < first + count; ++i) lanes_[i].state = State::ready, ready_.push_back(i);
}

std::string Fibres::where(uint32_t lane) const {
  const Lane& l = lanes_[lane];
  const std::string who = "lane " + std::to_string(lane), line = std::to_string(l.line);
  if (l.state == State::barrier) return who + " waits at the barrier in line " + line;
  if (l.state == State::gather) return who + " waits for its subgroup in line " + line;
  return who + " has ended";
}

void Fibres::disagree(uint32_t first, uint32_t count) {
  for (uint32_t i = first; i < first + count; ++i) {
    if (lanes_[i].state == lanes_[first].state && lanes_[i].line == lanes_[first].line) continue;
    error_ = where(first) + ", " + where(i) + ": all lanes must reach it";
    return;
  }
  error_ = where(first) + ", and so do all others, yet some lanes of its subgroup never come";
}

// ---- on the stack of a lane

void Fibres::leave(State state, uint32_t line) {
  Lane& l = lanes_[the_host.lane];
  l.state = state, l.line = line;
  go(&l.stack, home_);
}
void Fibres::enter() {
  (*running->body_)();
  running->leave(State::ended, 0);
}
void Fibres::wait_at_barrier(unsigned line) { running->leave(State::barrier, line); }
const unsigned long long* Fibres::wait_for_subgroup(unsigned long long mine, unsigned line) {
  Fibres& f = *running;
  const uint32_t lane = the_host.lane, bank = (f.lanes_[lane].bank ^= 1) * f.launch_.lanes;
  f.given_[bank + lane] = mine;
  f.leave(State::gather, line);
  return &f.given_[bank + lane / f.launch_.subgroup * f.launch_.subgroup];
}
void Fibres::stop(const char* why, unsigned which, unsigned line) {
  Fibres& f = *running;
  f.error_ = "lane " + std::to_string(the_host.lane) + " ";
  for (const char* c = why; *c != '\0'; ++c) f.error_ += *c == '$' ? std::to_string(which) : std::string(1, *c);
  f.error_ += ", in line " + std::to_string(line);
  f.leave(State::stopped, line);
}

}  // namespace tern::shim
