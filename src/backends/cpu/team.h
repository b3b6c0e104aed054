// The thread team of the CPU device: threads that walk a recorded list together, one spin barrier a phase.
//
// Runs of several callers follow each other; the calling thread is member 0.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tern/result.h"

namespace tern::cpu {

class Team {
 public:
  explicit Team(unsigned threads);
  // Starts the members; before the first run.
  Status start();
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  unsigned size() const { return size_; }
  // body(member) on every member, member 0 on the calling thread; returns when all are done.
  void run(const std::function<void(unsigned member)>& body);
  // Called by every member inside run(): nobody goes on before all have arrived.
  void barrier();

 private:
  void member_loop(unsigned member);

  unsigned size_;
  std::mutex running_;
  std::vector<std::thread> threads_;
  const std::function<void(unsigned)>* body_ = nullptr;
  alignas(64) std::atomic<uint32_t> generation_{
      0};  // a new value starts the members; the lowest bit asks them to leave
  alignas(64) std::atomic<uint32_t> working_{0};
  alignas(64) std::atomic<uint32_t> arrived_{0};
  alignas(64) std::atomic<uint32_t> epoch_{0};
};

}  // namespace tern::cpu
