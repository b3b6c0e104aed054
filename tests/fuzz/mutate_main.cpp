// Runs a libFuzzer target without libFuzzer: seeded mutations of a corpus, built by any compiler, bounded by time or
// count. Input number i depends on the seed and i alone, so that "--seed S --only i" brings a failure back.
//
//   fuzz_gguf CORPUS... [--seed S] [--seconds T] [--runs N] [--only I] [--write FILE]
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace {

using Input = std::vector<uint8_t>;
constexpr size_t kMaxInput = 1u << 20;
constexpr double kMaxSeconds = 5;  // for one input

uint64_t current_seed, current_run;
bool in_corpus;

void tell_where() {
  if (in_corpus)
    std::fprintf(stderr, "fuzz: failed on corpus file %llu\n", static_cast<unsigned long long>(current_run));
  else
    std::fprintf(stderr, "fuzz: failed with --seed %llu --only %llu\n", static_cast<unsigned long long>(current_seed),
                 static_cast<unsigned long long>(current_run));
}
void on_signal(int number) {
  tell_where();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

class Random {  // splitmix64
 public:
  explicit Random(uint64_t state) : state_(state) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  size_t below(size_t n) { return n == 0 ? 0 : static_cast<size_t>(next() % n); }

 private:
  uint64_t state_;
};

// Numbers at which size arithmetic breaks, and sizes that just fit this input.
uint64_t interesting(Random& random, size_t size) {
  const uint64_t kValues[] = {0,          1,          2,          3,          7,
                              8,          12,         13,         31,         32,
                              33,         64,         255,        256,        65535,
                              65536,      0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
                              1ULL << 59, 1ULL << 60, 1ULL << 61, 1ULL << 62, 0x7fffffffffffffff,
                              1ULL << 63, ~0ULL,      ~0ULL - 31, size,       size - 1,
                              size + 1,   size / 2};
  return kValues[random.below(std::size(kValues))];
}

void overwrite(Random& random, Input& input, size_t width) {
  if (input.size() < width) return;
  const uint64_t value = interesting(random, input.size());
  std::memcpy(input.data() + random.below(input.size() - width + 1), &value, width);
}

void mutate_once(Random& random, Input& input, const std::vector<Input>& corpus) {
  const size_t at = random.below(input.size());
  const size_t length = std::min<size_t>(1 + random.below(64), input.size() - at);
  const auto here = [&] { return input.begin() + static_cast<std::ptrdiff_t>(at); };
  switch (input.empty() ? 8 : random.below(10)) {
    case 0: input[at] ^= static_cast<uint8_t>(1u << random.below(8)); break;
    case 1: input[at] = static_cast<uint8_t>(random.next()); break;
    case 2: overwrite(random, input, 1); break;
    case 3: overwrite(random, input, 4); break;
    case 4: overwrite(random, input, 8); break;
    case 5: input.resize(at); break;
    case 6: input.erase(here(), here() + static_cast<std::ptrdiff_t>(length)); break;
    case 7: {
      const Input piece(here(), here() + static_cast<std::ptrdiff_t>(length));
      input.insert(input.begin() + static_cast<std::ptrdiff_t>(random.below(input.size())), piece.begin(), piece.end());
      break;
    }
    case 8: {  // the tail of another input
      const Input& other = corpus[random.below(corpus.size())];
      const size_t from = random.below(other.size());
      input.resize(at);
      input.insert(input.end(), other.begin() + static_cast<std::ptrdiff_t>(from), other.end());
      break;
    }
    default: {  // small changes of small numbers: lengths off by a little
      input[at] = static_cast<uint8_t>(input[at] + static_cast<uint8_t>(random.below(9)) - 4);
      break;
    }
  }
}

Input make_input(uint64_t seed, uint64_t run, const std::vector<Input>& corpus) {
  Random random(seed * 0x9e3779b97f4a7c15ULL + run);
  Input input = corpus[random.below(corpus.size())];
  for (size_t i = 1 + random.below(6); i > 0; --i) mutate_once(random, input, corpus);
  if (input.size() > kMaxInput) input.resize(kMaxInput);
  return input;
}

void run_input(const Input& input) {
  const auto start = std::chrono::steady_clock::now();
  // An exact heap copy, so that ASan sees every byte past the end.
  uint8_t* copy = static_cast<uint8_t*>(std::malloc(input.empty() ? 1 : input.size()));
  if (!input.empty()) std::memcpy(copy, input.data(), input.size());
  LLVMFuzzerTestOneInput(copy, input.size());
  std::free(copy);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (seconds <= kMaxSeconds) return;
  std::fprintf(stderr, "fuzz: one input took %.1f s\n", seconds);
  std::abort();
}

std::vector<Input> read_corpus(const std::vector<std::string>& folders) {
  std::vector<std::string> names;
  for (const std::string& folder : folders)
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.is_regular_file()) names.push_back(entry.path().string());
  std::sort(names.begin(), names.end());
  std::vector<Input> corpus;
  for (const std::string& name : names) {
    std::ifstream in(name, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return corpus;
}

struct Options {
  std::vector<std::string> folders;
  uint64_t seed = 1, runs = UINT64_MAX;
  double seconds = 3;
  int64_t only = -1;
  std::string write;
};

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (!arg.starts_with("--")) {
      options.folders.push_back(arg);
      continue;
    }
    if (++i == argc) return false;
    if (arg == "--seed")
      options.seed = std::strtoull(argv[i], nullptr, 10);
    else if (arg == "--runs")
      options.runs = std::strtoull(argv[i], nullptr, 10);
    else if (arg == "--seconds")
      options.seconds = std::strtod(argv[i], nullptr);
    else if (arg == "--only")
      options.only = std::strtoll(argv[i], nullptr, 10);
    else if (arg == "--write")
      options.write = argv[i];
    else
      return false;
  }
  return !options.folders.empty();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr, "usage: %s CORPUS... [--seed S] [--seconds T] [--runs N] [--only I] [--write FILE]\n",
                 argv[0]);
    return 1;
  }
  const std::vector<Input> corpus = read_corpus(options.folders);
  if (corpus.empty()) {
    std::fprintf(stderr, "fuzz: no corpus\n");
    return 1;
  }
  if (__sanitizer_set_death_callback != nullptr)
    __sanitizer_set_death_callback(tell_where);
  else
    for (int number : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS}) std::signal(number, on_signal);
  current_seed = options.seed;
  if (options.only >= 0) {
    current_run = static_cast<uint64_t>(options.only);
    const Input input = make_input(options.seed, current_run, corpus);
    if (!options.write.empty())
      std::ofstream(options.write, std::ios::binary)
          .write(reinterpret_cast<const char*>(input.data()), static_cast<std::streamsize>(input.size()));
    run_input(input);
    return 0;
  }
  in_corpus = true;
  for (current_run = 0; current_run < corpus.size(); ++current_run) run_input(corpus[current_run]);
  in_corpus = false;
  const auto start = std::chrono::steady_clock::now();
  for (current_run = 0; current_run < options.runs; ++current_run) {
    if (current_run % 64 == 0 &&
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > options.seconds)
      break;
    run_input(make_input(options.seed, current_run, corpus));
  }
  std::printf("fuzz: %llu inputs of %zu corpus files, seed %llu, none failed\n",
              static_cast<unsigned long long>(current_run), corpus.size(),
              static_cast<unsigned long long>(options.seed));
  return 0;
}
