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

#include "base/mmap.h"
#include "base/platform/thread.h"

namespace tern {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr size_t kPassBytes = 64 * kMiB;
constexpr size_t kWordsOfBlock = 2048;  // what a thread reads before it looks at its place again

// "32768K", "2M"
uint64_t parse_size(const char* text) {
  char* end = nullptr;
  const uint64_t value = std::strtoull(text, &end, 10);
  return value * (*end == 'K' ? 1024 : *end == 'M' ? kMiB : 1);
}

// Eight independent sums of vectors, so that the adds wait for memory and not for each other; vectors by type, so that
// a build without optimisation reads as fast.
uint64_t read_block(const uint64_t* at) {
  using Vector [[gnu::vector_size(16)]] = uint64_t;
  Vector sum[8] = {};
  const auto* from = reinterpret_cast<const Vector*>(at);
  for (size_t i = 0; i < kWordsOfBlock / 2; i += 8) {
    sum[0] += from[i];
    sum[1] += from[i + 1];
    sum[2] += from[i + 2];
    sum[3] += from[i + 3];
    sum[4] += from[i + 4];
    sum[5] += from[i + 5];
    sum[6] += from[i + 6];
    sum[7] += from[i + 7];
  }
  uint64_t all = 0;
  for (const Vector& s : sum) all += s[0] + s[1];
  return all;
}

template <class Work>
void on_threads(unsigned threads, const Work& work) {
  std::vector<std::thread> others;
  for (unsigned t = 1; t < threads; ++t) {
    std::thread thread;
    if (start_thread(thread, [&work, t] { work(t); }))
      others.push_back(std::move(thread));
    else
      work(t);  // its share is read all the same
  }
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
  // In huge pages, as weights are: small ones would make the roof too low.
  constexpr uint64_t kHuge = 2 * kMiB;
  data_ = static_cast<uint64_t*>(std::aligned_alloc(kHuge, (words_ * sizeof(uint64_t) + kHuge - 1) / kHuge * kHuge));
  if (data_ == nullptr) {
    words_ = 0;
    return;
  }
  advise_huge_pages(data_, words_ * sizeof(uint64_t));
  // Written by the thread that reads it: on machines with several memories a page lies near its first writer.
  const size_t part = words_ / threads_;
  on_threads(threads_, [&](unsigned t) { std::fill_n(data_ + t * part, part, uint64_t{t} + 1); });
}

ReadBandwidth::~ReadBandwidth() { std::free(data_); }

double ReadBandwidth::once() {
  if (words_ == 0) return 0;
  using Clock = std::chrono::steady_clock;
  // A stretch of the buffer, the next one each time: short enough that a shared machine leaves some passes alone, and
  // what was read before has left the caches by the time its turn comes again.
  const size_t part = words_ / threads_, blocks = part / kWordsOfBlock;
  const size_t length =
      std::max<size_t>(1, std::min(blocks, kPassBytes / (kWordsOfBlock * sizeof(uint64_t)) / threads_));
  if (next_ + length > blocks) next_ = 0;
  const size_t first_word = next_ * kWordsOfBlock, count = length * kWordsOfBlock;
  next_ += length;
  std::atomic<unsigned> ready{0};
  std::vector<std::pair<Clock::time_point, Clock::time_point>> times(threads_);
  std::atomic<uint64_t> sink{0};
  on_threads(threads_, [&](unsigned t) {
    ready.fetch_add(1);
    while (ready.load() < threads_) std::this_thread::yield();
    times[t].first = Clock::now();
    uint64_t sum = 0;
    const uint64_t* const begin = data_ + t * part + first_word;
    for (const uint64_t* at = begin; at < begin + count; at += kWordsOfBlock) sum += read_block(at);
    times[t].second = Clock::now();
    sink.fetch_add(sum);  // the sums are used: no compiler may leave the reading out
  });
  auto first = times[0].first, last = times[0].second;
  for (const auto& [start, stop] : times) first = std::min(first, start), last = std::max(last, stop);
  const double seconds = std::chrono::duration<double>(last - first).count();
  return sink.load() != 0 && seconds > 0 ? static_cast<double>(count * threads_ * sizeof(uint64_t)) / seconds : 0;
}

double ReadBandwidth::best(unsigned passes) {
  double best = 0;
  for (unsigned i = 0; i < passes; ++i) best = std::max(best, once());
  return best;
}

}  // namespace tern
