// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "core/clock.h"
#include "transport/link.h"

namespace memspan {
namespace {

// Its operations are complete once the test says so.
class SlowLink final : public Link {
 public:
  void put_something(OperationContext& context) { context.use(*this); }
  void complete() { complete_.set_value(); }
  void await_quiets(int count) {
    const Deadline deadline = Deadline::after(std::chrono::seconds(10));
    while (begun_ < count && !deadline.has_passed()) std::this_thread::yield();
    EXPECT_GE(begun_, count);
  }
  int begun() const { return begun_; }

  std::uint64_t start_quiet(OperationContext&) override { return ++begun_; }
  Status finish_quiet(OperationContext&, std::uint64_t) override {
    completed_.wait();
    return result;
  }
  Status result;

  Status get_nbi(OperationContext&, void*, const RemotePlace&, std::size_t) override {
    return unused();
  }
  Status put_signal(OperationContext&, const RemotePlace&, const void*, std::size_t,
                    const RemotePlace&, std::uint64_t, SignalOp) override {
    return unused();
  }
  Status move(OperationContext&, MoveDirection, std::span<const MovePiece>) override {
    return unused();
  }
  Status atomic(OperationContext&, const AtomicOp&, const RemotePlace&, std::uint64_t*) override {
    return unused();
  }

 private:
  static Status unused() { return {Code::kInternal, "not part of this test"}; }

  std::promise<void> complete_;
  std::shared_future<void> completed_ = complete_.get_future().share();
  std::atomic<int> begun_{0};
};

TEST(OperationContext, TwoThreadsThatQuietAtOnceBothWait) {
  OperationContext context;
  SlowLink link;
  link.put_something(context);
  std::atomic<int> returned{0};
  const auto quiet = [&] {
    EXPECT_TRUE(context.quiet().is_ok());
    ++returned;
  };
  std::thread first(quiet);
  link.await_quiets(1);
  std::thread second(quiet);
  link.await_quiets(2);  // the second one asks, too
  EXPECT_EQ(returned, 0);
  link.complete();
  first.join();
  second.join();
  EXPECT_TRUE(context.quiet().is_ok());
  EXPECT_EQ(link.begun(), 2) << "nothing was outstanding any more";
}

TEST(OperationContext, AnOperationDuringAQuietIsTheNextOnes) {
  OperationContext context;
  SlowLink link;
  link.put_something(context);
  std::thread quiet([&] { EXPECT_TRUE(context.quiet().is_ok()); });
  link.await_quiets(1);
  link.put_something(context);
  link.complete();
  quiet.join();
  EXPECT_TRUE(context.quiet().is_ok());
  EXPECT_EQ(link.begun(), 2);
}

TEST(OperationContext, WhatTimedOutIsStillOutstanding) {
  OperationContext context;
  SlowLink link;
  link.put_something(context);
  link.complete();
  for (const Code code : {Code::kTimeout, Code::kSystem, Code::kPeerLost}) {
    link.result = Status(code, "");
    EXPECT_EQ(context.quiet().code(), code);
  }
  EXPECT_TRUE(context.quiet().is_ok());
  EXPECT_EQ(link.begun(), 3) << "a lost peer completes nothing any more";
}

}  // namespace
}  // namespace memspan
