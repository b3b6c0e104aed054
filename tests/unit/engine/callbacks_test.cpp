// What callbacks may do, and what tickets tell afterwards.
#include <future>
#include <memory>

#include "tern/ops/elementwise.h"
#include "unit/engine/harness.h"

namespace tern::test {
namespace {

class CallbacksTest : public OnDevice {
 protected:
  std::shared_ptr<Session> doubled() {
    Builder b;
    const Value x = b.input("x", DType::f32, {4});
    b.output("y", add(b, x, x));
    return std::make_shared<Session>(opened(b));
  }
  Floats data_ = {1, 2, 3, 4}, out_ = Floats(4), more_ = Floats(4);
  std::vector<IoBinding> io(Floats& out) const {
    return {in(id("x"), data_, {4}), {id("y"), mutable_view<float>(out, {4})}};
  }
};

TEST_P(CallbacksTest, MayHoldTheLastOfASession) {
  std::shared_ptr<Session> session = doubled();
  const std::weak_ptr<Session> there = session;
  const auto ticket = session->submit(io(out_));
  ASSERT_TRUE(ticket) << ticket.error().message();
  std::promise<bool> called;
  Session* const plain = session.get();
  plain->then(*ticket, [session = std::move(session), &called](const Status& s) { called.set_value(s.ok()); });
  EXPECT_TRUE(called.get_future().get());
  for (int i = 0; i < 2000 && !there.expired(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(there.expired());
  EXPECT_EQ(out_, (Floats{2, 4, 6, 8}));
}

TEST_P(CallbacksTest, MayEndTheirSessionWithWorkBehindThem) {
  std::shared_ptr<Session> session = doubled();
  const auto first = session->submit(io(out_));
  ASSERT_TRUE(first) << first.error().message();
  std::promise<bool> ended;
  session->then(*first, [&](const Status&) {
    const bool more = session->submit(io(more_)).ok();
    session.reset();
    ended.set_value(more);
  });
  EXPECT_TRUE(ended.get_future().get());
  EXPECT_EQ(session, nullptr);
  EXPECT_EQ(more_, (Floats{2, 4, 6, 8}));
}

TEST_P(CallbacksTest, MayWaitForLaterWork) {
  std::shared_ptr<Session> session = doubled();
  const auto first = session->submit(io(out_));
  ASSERT_TRUE(first) << first.error().message();
  std::promise<Status> waited;
  session->then(*first, [&](const Status&) {
    const auto later = session->submit(io(more_));
    waited.set_value(later ? session->wait(*later) : Status(later.error()));
  });
  const Status status = waited.get_future().get();
  EXPECT_TRUE(status.ok()) << status.error().message();
  EXPECT_EQ(more_, (Floats{2, 4, 6, 8}));
}

TEST_P(CallbacksTest, OlderTicketsTellOfTheirOwnRun) {
  std::shared_ptr<Session> session = doubled();
  CancelToken cancelled;
  cancelled.cancel();
  const auto first = session->submit(io(out_), {}, &cancelled);
  ASSERT_TRUE(first) << first.error().message();
  const auto second = session->submit(io(more_));
  ASSERT_TRUE(second) << second.error().message();
  const Status status = session->wait(*first);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::cancelled);
  std::promise<Status> told;
  session->then(*first, [&](Status s) { told.set_value(std::move(s)); });
  EXPECT_FALSE(told.get_future().get().ok());
  EXPECT_TRUE(session->wait(*second).ok());
  EXPECT_EQ(more_, (Floats{2, 4, 6, 8}));
}

INSTANTIATE_TEST_SUITE_P(Devices, CallbacksTest, testing::Values("cpu", "mean"));

}  // namespace
}  // namespace tern::test
