// The lanes of a workgroup as fibres of one thread, resumed in an order that a seed makes.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "shim/words/host.h"
#include "tern/result.h"

namespace tern::shim {

struct Launch {
  uint32_t lanes = 1, groups = 1;
  uint32_t subgroup = 1;  // 1 to 64
  uint64_t seed = 1;
};

class Fibres {
 public:
  // What modules get in their tern_host. One run at a time in a thread; the body of a lane asks through this.
  static tern_shim::Host& host();
  // Runs `body` once for each lane of each group. An error names the group, the lanes that do not meet, and the line
  // where each of them waits; or what a lane stopped for.
  Status run(const Launch& launch, const std::function<void()>& body);

 private:
  enum class State : uint8_t { ready, barrier, gather, ended, stopped };
  struct Lane {
    void* stack = nullptr;  // where it goes on
    State state = State::ready;
    uint32_t line = 0;
    uint32_t bank = 0;
  };
  static void enter();
  static void wait_at_barrier(unsigned line);
  static const unsigned long long* wait_for_subgroup(unsigned long long mine, unsigned line);
  static void stop(const char* why, unsigned which, unsigned line);
  void leave(State state, uint32_t line);
  void prepare(uint32_t lane);
  void run_group();
  void arrived(uint32_t lane);
  void release(uint32_t first, uint32_t count);
  void disagree(uint32_t first, uint32_t count);
  std::string where(uint32_t lane) const;

  Launch launch_;
  const std::function<void()>* body_ = nullptr;
  std::vector<Lane> lanes_;
  std::vector<uint32_t> ready_, in_subgroup_;
  std::vector<unsigned long long> given_;  // two banks: a lane may give again before another one has looked
  std::unique_ptr<std::byte[]> stacks_;
  size_t stacked_ = 0;
  uint32_t at_barrier_ = 0;
  void* home_ = nullptr;
  std::string error_;
};

}  // namespace tern::shim
