#include <algorithm>

#include "lower/fuse/fuse.h"

namespace tern::lowering {

Uses::Uses(const FuseState& s) : reach_(s.groups.size(), std::vector<uint64_t>((s.groups.size() + 63) / 64)) {
  const auto count = static_cast<uint32_t>(s.groups.size());
  for (uint32_t g = 0; g < count; ++g) {
    for (size_t i = 0; i < s.groups[g].values.size(); ++i) {
      const Value v = s.groups[g].values[i];
      const Access access = s.groups[g].problem.operands[i].access;
      auto note = [&](Map& map) {
        auto& list = map[v];
        if (list.empty() || list.back() != g) list.push_back(g);
      };
      if (access != Access::write) note(readers_);
      if (access == Access::write) note(writers_);  // what an update starts from, others made
    }
  }
  // Depth first, without recursion: a graph may be deep.
  std::vector<std::vector<uint32_t>> before(count);
  for (uint32_t g = 0; g < count; ++g) {
    for (size_t i = 0; i < s.groups[g].values.size(); ++i) {
      if (s.groups[g].problem.operands[i].access == Access::write) continue;
      for (const uint32_t w : writers(s.groups[g].values[i])) {
        if (w != g) before[g].push_back(w);
      }
    }
    for (const Value v : s.waits_for(s.groups[g])) {
      for (const uint32_t w : writers(v)) {
        if (w != g) before[g].push_back(w), late_.emplace(g, w);
      }
    }
  }
  std::vector<uint8_t> mark(count);
  std::vector<uint32_t> stack;
  for (uint32_t root = 0; root < count; ++root) {
    if (mark[root] == 0) stack.push_back(root);
    while (!stack.empty()) {
      const uint32_t g = stack.back();
      if (mark[g] == 0) {
        mark[g] = 1;
        for (const uint32_t w : before[g]) {
          if (mark[w] == 0) stack.push_back(w);
        }
        continue;
      }
      stack.pop_back();
      if (mark[g] == 2) continue;
      mark[g] = 2;
      for (const uint32_t w : before[g]) {
        reach_[g][w / 64] |= uint64_t{1} << (w % 64);
        for (size_t word = 0; word < reach_[g].size(); ++word) reach_[g][word] |= reach_[w][word];
      }
    }
  }
  for (uint32_t g = 0; g < count; ++g) {
    if (s.groups[g].problem.family != Family::store || s.groups[g].values.empty()) continue;
    for (const uint32_t r : readers(s.groups[g].values[0])) {
      if (r != g && !depends(r, g) && !depends(g, r)) order(r, g);
    }
  }
}

bool Uses::between(uint32_t from, uint32_t to) const {
  if (late_.contains({to, from})) return true;
  for (uint32_t g = 0; g < reach_.size(); ++g) {
    if (g != from && g != to && depends(to, g) && depends(g, from)) return true;
  }
  return false;
}

void Uses::order(uint32_t before, uint32_t after) {
  std::vector<uint64_t> more = reach_[before];
  more[before / 64] |= uint64_t{1} << (before % 64);
  for (uint32_t g = 0; g < reach_.size(); ++g) {
    if (g != after && !depends(g, after)) continue;
    for (size_t word = 0; word < more.size(); ++word) reach_[g][word] |= more[word];
  }
}

void Uses::join(uint32_t a, uint32_t b) {
  for (const auto& [to, from] : std::vector(late_.begin(), late_.end())) {
    for (const uint32_t t : {to, to == a ? b : to == b ? a : to}) {
      for (const uint32_t f : {from, from == a ? b : from == b ? a : from}) late_.emplace(t, f);
    }
  }
  std::vector<uint64_t> both = reach_[a];
  for (size_t word = 0; word < both.size(); ++word) both[word] |= reach_[b][word];
  const auto clear = [&](uint32_t g) { both[g / 64] &= ~(uint64_t{1} << (g % 64)); };
  clear(a), clear(b);
  reach_[a] = reach_[b] = both;
  const auto has = [](const std::vector<uint64_t>& r, uint32_t g) { return (r[g / 64] >> (g % 64)) & 1; };
  for (uint32_t g = 0; g < reach_.size(); ++g) {
    std::vector<uint64_t>& r = reach_[g];
    if (g == a || g == b || !(has(r, a) || has(r, b))) continue;
    for (size_t word = 0; word < r.size(); ++word) r[word] |= both[word];
    r[a / 64] |= uint64_t{1} << (a % 64);
    r[b / 64] |= uint64_t{1} << (b % 64);
  }
}

}  // namespace tern::lowering
