#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "sample.h"

namespace tern {
namespace {

using test::buffer;
using test::copy;

TEST(Phases, OneBarrierAHazard) {
  Program p = test::empty_program();
  const BufferId x = buffer(p, "x", 64, Origin::io), y = buffer(p, "y", 64, Origin::io);
  const BufferId a = buffer(p, "a", 64), b = buffer(p, "b", 64), c = buffer(p, "c", 64);
  p.lists[0] = {copy(p, x, a, "0"), copy(p, a, c, "1"), copy(p, x, b, "2"), copy(p, b, y, "3"), copy(p, c, b, "4")};
  assign_phases(p, 0);
  std::vector<std::pair<std::string, uint32_t>> got;
  for (const Step& s : p.lists[0]) got.emplace_back(s.label, s.phase);
  // 2 joins the first phase; 4 overwrites what 3 reads.
  EXPECT_EQ(got, (std::vector<std::pair<std::string, uint32_t>>{{"0", 0}, {"2", 0}, {"1", 1}, {"3", 1}, {"4", 2}}));
}

TEST(Phases, WindowsThatDoNotMeetShareAPhase) {
  Program p = test::empty_program();
  const BufferId x = buffer(p, "x", 64, Origin::io), a = buffer(p, "a", 64);
  const auto write = [&](Dim offset, Dim bytes) {
    Step s = copy(p, x, a);
    s.uses[1].ref = {a, offset, bytes};
    return s;
  };
  p.lists[0] = {write(0, 32), write(32, 32), write(16, 32)};
  assign_phases(p, 0);
  EXPECT_EQ(p.lists[0][0].phase, 0u);
  EXPECT_EQ(p.lists[0][1].phase, 0u);
  EXPECT_EQ(p.lists[0][2].phase, 1u);
}

TEST(Phases, SymbolicWindowsAreProvedByTheirBounds) {
  Program p = test::empty_program();
  const Dim t = *p.dims->symbol({"T", 0, 8, 1, false});
  const BufferId a = buffer(p, "a", 64);
  const Use low{{a, 0, p.dims->mul(t, 4)}, Access::write}, high{{a, 32, 32}, Access::write},
      mid{{a, 31, 4}, Access::read};
  EXPECT_FALSE(may_conflict(p, low, high));
  EXPECT_TRUE(may_conflict(p, low, mid));
  EXPECT_FALSE(may_conflict(p, {low.ref, Access::read}, mid));
}

TEST(Memory, ReusesWhatIsDead) {
  Program p = test::empty_program();
  const BufferId x = buffer(p, "x", 1000, Origin::io);
  BufferId last = x;
  for (int i = 0; i < 20; ++i) {
    const BufferId next = buffer(p, "t" + std::to_string(i), 1000);
    p.lists[0].push_back(copy(p, last, next));
    last = next;
  }
  assign_phases(p, 0);
  const auto plan = plan_memory(p, 0, *most_buffer_bytes(p, {}));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->arena, 2048u);  // two at a time, each of 1024 with its alignment
  EXPECT_TRUE(check_memory(p, 0, *plan, {}).ok());
}

TEST(Memory, CheckerFindsWhatIsWrong) {
  Program p = test::empty_program();
  const BufferId x = buffer(p, "x", 64, Origin::io), a = buffer(p, "a", 64), b = buffer(p, "b", 64),
                 y = buffer(p, "y", 64, Origin::io);
  p.lists[0] = {copy(p, x, a), copy(p, x, b), copy(p, a, y)};
  p.lists[0][1].phase = 1;
  p.lists[0][2].phase = 2;
  MemoryPlan plan = *plan_memory(p, 0, *most_buffer_bytes(p, {}));
  ASSERT_TRUE(check_memory(p, 0, plan, {}).ok());
  MemoryPlan wrong = plan;
  wrong.offset[b] = wrong.offset[a];
  EXPECT_FALSE(check_memory(p, 0, wrong, {}).ok());
  wrong = plan;
  wrong.offset[b] = wrong.offset[a] + 60;
  wrong.arena = 256;
  EXPECT_FALSE(check_memory(p, 0, wrong, {}).ok());
  wrong = plan;
  wrong.arena = 32;
  EXPECT_FALSE(check_memory(p, 0, wrong, {}).ok());
  Program unread = p;
  unread.lists[0].erase(unread.lists[0].begin());
  EXPECT_FALSE(check_memory(unread, 0, plan, {}).ok());
  Program past = p;
  past.lists[0][0].uses[1].ref.bytes = 65;
  EXPECT_FALSE(check_memory(past, 0, plan, {}).ok());
}

// Runs a list on real bytes, phase by phase, in the arena of the plan; memory is poisoned first and the steps of a
// phase run in any order. A copy here mixes its operands into its result.
using Bytes = std::vector<uint8_t>;
std::vector<Bytes> replay(const Program& p, const std::vector<Step>& steps, const MemoryPlan* plan, std::mt19937& rng) {
  std::vector<Bytes> own(p.buffers.size());
  for (size_t i = 0; i < own.size(); ++i)
    own[i].assign(static_cast<size_t>(*p.buffers[i].bytes.constant()), static_cast<uint8_t>(i * 37 + 1));
  Bytes arena(plan != nullptr ? plan->arena : 0, 0xff);
  const auto at = [&](BufferId id) {
    return plan != nullptr && p.buffers[id].origin == Origin::temp ? arena.data() + plan->offset[id] : own[id].data();
  };
  std::vector<const Step*> order;
  for (const Step& s : steps) order.push_back(&s);
  if (plan != nullptr) {
    std::shuffle(order.begin(), order.end(), rng);
    std::stable_sort(order.begin(), order.end(), [](const Step* a, const Step* b) { return a->phase < b->phase; });
  }
  for (const Step* s : order) {
    const Use& out = s->uses.back();
    const auto n = static_cast<size_t>(*out.ref.bytes.constant());
    for (size_t i = 0; i < n; ++i) {
      auto h = static_cast<uint32_t>(s->label.size()) + static_cast<uint32_t>(i) * 7;
      for (size_t u = 0; u + 1 < s->uses.size(); ++u) {
        const Ref& r = s->uses[u].ref;
        h = h * 31 + at(r.id)[static_cast<size_t>(*r.offset.constant()) + i % static_cast<size_t>(*r.bytes.constant())];
      }
      at(out.ref.id)[static_cast<size_t>(*out.ref.offset.constant()) + i] = static_cast<uint8_t>(h ^ (h >> 8));
    }
  }
  return own;
}

TEST(Memory, RandomListsGiveTheSameBytesInTheArena) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 rng(seed);
    const auto pick = [&](size_t n) {
      return static_cast<size_t>(std::uniform_int_distribution<size_t>(0, n - 1)(rng));
    };
    Program p = test::empty_program();
    std::vector<BufferId> ready = {buffer(p, "x", 96, Origin::io), buffer(p, "s", 64, Origin::state)};
    for (int i = 0; i < 60; ++i) {
      Step s;
      s.what = Copy{};
      s.label.assign(1 + pick(9), 'l');
      for (size_t n = 1 + pick(3); n > 0; --n) {
        const BufferId from = ready[ready.size() - 1 - pick(std::min<size_t>(ready.size(), 6))];
        s.uses.push_back(test::use(p, from, Access::read));
      }
      const size_t kind = pick(8);
      const auto temp =
          std::find_if(ready.begin(), ready.end(), [&](BufferId b) { return p.buffers[b].origin == Origin::temp; });
      BufferId to;
      if (kind == 0 || kind == 1) {
        to = buffer(p, "o" + std::to_string(i), static_cast<int64_t>(8 + pick(100)),
                    kind == 0 ? Origin::io : Origin::state);
      } else if (kind == 2 && temp != ready.end()) {
        to = *temp;  // written again
      } else {
        to = buffer(p, "t" + std::to_string(i), static_cast<int64_t>(1 + pick(300)));
      }
      if (std::any_of(s.uses.begin(), s.uses.end(), [&](const Use& u) { return u.ref.id == to; })) continue;
      s.uses.push_back(test::use(p, to, Access::write));
      p.lists[0].push_back(s);
      ready.push_back(to);
    }
    const std::vector<Step> as_written = p.lists[0];
    assign_phases(p, 0);
    const auto plan = plan_memory(p, 0, *most_buffer_bytes(p, {}));
    ASSERT_TRUE(plan.ok());
    const auto checked = check_memory(p, 0, *plan, {});
    ASSERT_TRUE(checked.ok()) << checked.error().message();
    const auto want = replay(p, as_written, nullptr, rng), got = replay(p, p.lists[0], &*plan, rng);
    for (size_t b = 0; b < p.buffers.size(); ++b) {
      if (p.buffers[b].origin == Origin::temp) continue;
      ASSERT_EQ(want[b], got[b]) << "seed " << seed << " buffer " << p.buffers[b].name;
    }
    // Whatever the checker lets pass must give the right bytes: move one temp somewhere else.
    for (int tries = 0; tries < 20; ++tries) {
      MemoryPlan moved = *plan;
      const size_t b = pick(p.buffers.size());
      if (p.buffers[b].origin != Origin::temp || plan->bytes[b] > plan->arena) continue;
      moved.offset[b] = pick(plan->arena - plan->bytes[b] + 1);
      const bool passes = check_memory(p, 0, moved, {}).ok();
      if (!passes) continue;
      const auto bytes = replay(p, p.lists[0], &moved, rng);
      for (size_t i = 0; i < p.buffers.size(); ++i) {
        if (p.buffers[i].origin == Origin::temp) continue;
        ASSERT_EQ(want[i], bytes[i]) << "seed " << seed << " moved " << p.buffers[b].name;
      }
    }
  }
}

}  // namespace
}  // namespace tern
