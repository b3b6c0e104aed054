#include "base/measure/bandwidth.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tern {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr size_t kLine = 64;            // bytes
constexpr size_t kWordsOfBlock = 2048;  // what a thread reads before it looks at its place again

// "32768K", "2M"
uint64_t parse_size(const char* text) {
  char* end = nullptr;
  const uint64_t value = std::strtoull(text, &end, 10);
  return value * (*end == 'K' ? 1024 : *end == 'M' ? kMiB : 1);
}

// Sixteen independent sums, so that the adds wait for memory and not for each other.
uint64_t read_block(const uint64_t* at) {
  uint64_t sum[16] = {};
  for (size_t i = 0; i < kWordsOfBlock; i += 16) {
    for (size_t k = 0; k < 16; ++k) sum[k] += at[i + k];
  }
  uint64_t all = 0;
  for (const uint64_t s : sum) all += s;
  return all;
}

template <class Work>
void on_threads(unsigned threads, const Work& work) {
  std::vector<std::thread> others;
  for (unsigned t = 1; t < threads; ++t) others.emplace_back([&work, t] { work(t); });
  work(0);
  for (std::thread& other : others) other.join();
}

}  // namespace

uint64_t last_level_cache_bytes() {
  uint64_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    const std::string path = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size";
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "r"), std::fclose);
    char text[32] = {};
    if (file && std::fgets(text, sizeof text, file.get()) != nullptr) largest = std::max(largest, parse_size(text));
  }
  return largest != 0 ? largest : 32 * kMiB;
}

ReadBandwidth::ReadBandwidth(unsigned threads, uint64_t bytes) : threads_(std::max(1u, threads)) {
  if (bytes == 0) bytes = std::clamp(4 * last_level_cache_bytes(), 256 * kMiB, 1024 * kMiB);
  const size_t unit = kWordsOfBlock * threads_;  // every thread reads whole blocks
  words_ = (std::max<size_t>(bytes / sizeof(uint64_t), unit) / unit) * unit;
  data_ = static_cast<uint64_t*>(std::aligned_alloc(kLine, words_ * sizeof(uint64_t)));
  if (data_ == nullptr) {
    words_ = 0;
    return;
  }
  // Written by the thread that reads it: on machines with several memories a page lies near its first writer.
  const size_t part = words_ / threads_;
  on_threads(threads_, [&](unsigned t) { std::fill_n(data_ + t * part, part, uint64_t{t} + 1); });
}

ReadBandwidth::~ReadBandwidth() { std::free(data_); }

double ReadBandwidth::once() {
  if (words_ == 0) return 0;
  using Clock = std::chrono::steady_clock;
  const size_t part = words_ / threads_;
  std::atomic<unsigned> ready{0};
  std::vector<std::pair<Clock::time_point, Clock::time_point>> times(threads_);
  std::atomic<uint64_t> sink{0};
  on_threads(threads_, [&](unsigned t) {
    ready.fetch_add(1);
    while (ready.load() < threads_) std::this_thread::yield();
    times[t].first = Clock::now();
    uint64_t sum = 0;
    const uint64_t* const end = data_ + (t + 1) * part;
    for (const uint64_t* at = data_ + t * part; at < end; at += kWordsOfBlock) sum += read_block(at);
    times[t].second = Clock::now();
    sink.fetch_add(sum);  // the sums are used: no compiler may leave the reading out
  });
  auto first = times[0].first, last = times[0].second;
  for (const auto& [start, stop] : times) first = std::min(first, start), last = std::max(last, stop);
  const double seconds = std::chrono::duration<double>(last - first).count();
  return sink.load() != 0 && seconds > 0 ? static_cast<double>(bytes()) / seconds : 0;
}

double ReadBandwidth::best(unsigned passes) {
  double best = 0;
  for (unsigned i = 0; i < passes; ++i) best = std::max(best, once());
  return best;
}

}  // namespace tern
