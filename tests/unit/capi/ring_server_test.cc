// SPDX-License-Identifier: Apache-2.0
// Both sides of a ring of <memspan/kernel_state.h>: threads that ask, and the one that answers.
#include "capi/kernel/ring_server.h"

#include <gtest/gtest.h>
// Before what stands on it.
#include "support/emulated_device.h"

#include <memspan/kernel_ring.h>

#include <atomic>
#include <thread>
#include <vector>

namespace memspan::capi {
namespace {

namespace device = kernel::device;

constexpr std::size_t kSlots = 4;

class RingServerTest : public testing::Test {
 protected:
  RingServerTest() : slots_(kSlots) {
    kernel::this_units_state = {};
    kernel::this_units_state.stop = &stop_;
    kernel::this_units_state.requests = {&tickets_, slots_.data(), kSlots};
    for (auto& distance : kernel::this_units_state.distances) distance = MEMSPAN_KERNEL_FAR;
  }
  void serve(RingServer::Perform perform) {
    auto started = RingServer::start(slots_.data(), kSlots, std::move(perform),
                                     [this] { looks_.fetch_add(1); });
    ASSERT_TRUE(started.is_ok()) << started.status().message();
    server_ = std::move(started).value();
  }
  static std::uint64_t ask(std::uint64_t operand, bool is_posted) {
    memspan_kernel_question question{};
    question.is_posted = is_posted ? 1 : 0;
    question.operand = operand;
    return device::ask("test", kernel::this_units_state.requests, question);
  }

  std::vector<memspan_kernel_request> slots_;
  std::uint64_t tickets_ = 0;
  std::uint32_t stop_ = 0;
  std::atomic<int> looks_{0};
  std::unique_ptr<RingServer> server_;
};
using RingServerDeathTest = RingServerTest;

TEST_F(RingServerTest, AnswersEachWhoAsks) {
  serve([](memspan_kernel_request& request) { return request.question.operand * 2 + 1; });
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (std::uint64_t i = 0; i < 8; ++i)
    threads.emplace_back([i, &wrong] {
      for (std::uint64_t j = 0; j < 200; ++j)
        if (const std::uint64_t value = i << 32 | j; ask(value, false) != value * 2 + 1) ++wrong;
    });
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(tickets_, 8u * 200);
}

// A question that is answered comes after all that its thread posted before; nothing is lost or
// done twice where the ring is full all the time.
TEST_F(RingServerTest, KeepsTheOrderOfEachThread) {
  constexpr std::uint64_t kThreads = 6;
  std::vector<std::uint64_t> done(kThreads);
  std::atomic<int> wrong{0};
  serve([&](memspan_kernel_request& request) {
    const std::uint64_t thread = request.question.operand >> 32;
    const std::uint64_t number = request.question.operand & 0xffffffff;
    if (number != done[thread] + 1) ++wrong;
    done[thread] = number;
    return done[thread];
  });
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < kThreads; ++i)
    threads.emplace_back([i, &wrong] {
      for (std::uint64_t j = 1; j <= 300; ++j) {
        const bool is_posted = j % 10 != 0;
        const std::uint64_t answer = ask(i << 32 | j, is_posted);
        if (answer != (is_posted ? 0 : j)) ++wrong;
      }
    });
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(wrong, 0);
}

// Nobody serves: the first four go in, the fifth waits until one has been taken.
TEST_F(RingServerTest, AFullRingHoldsItsCallerBack) {
  RingReader reader(slots_.data(), kSlots);
  EXPECT_EQ(reader.next(), nullptr);
  for (std::uint64_t i = 0; i < kSlots; ++i) ask(i, true);
  std::atomic<bool> is_in{false};
  std::thread fifth([&is_in] {
    ask(4, true);
    is_in = true;
  });
  for (std::uint64_t i = 0; i < kSlots; ++i) {
    if (i == 0) {
      EXPECT_FALSE(is_in);
    }
    memspan_kernel_request* const request = reader.next();
    ASSERT_NE(request, nullptr);
    EXPECT_EQ(request->question.operand, i);
    reader.finish(*request, 0);
  }
  fifth.join();
  ASSERT_NE(reader.next(), nullptr);
  EXPECT_EQ(reader.next()->question.operand, 4u);
}

TEST_F(RingServerTest, FinishesWhatWasPosted) {
  std::atomic<std::uint64_t> done{0};
  serve([&](memspan_kernel_request&) { return done.fetch_add(1); });
  for (std::uint64_t i = 1; i <= 100; ++i) {
    ask(i, true);
    if (i % 10 != 0) continue;
    server_->finish();
    EXPECT_EQ(done, i);
  }
}

TEST_F(RingServerTest, ItLooksAroundWhileNobodyAsks) {
  serve([](memspan_kernel_request&) { return std::uint64_t{0}; });
  const int before = looks_;
  while (looks_ < before + 100) std::this_thread::yield();
  server_.reset();
  const int after = looks_;
  std::this_thread::yield();
  EXPECT_EQ(looks_, after);
}

TEST_F(RingServerDeathTest, AWaitEndsWhenAPeerHasDied) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        stop_ = MEMSPAN_KERNEL_PEER_DIED;
        device::wait_until("test", MEMSPAN_KERNEL_PEER_DIED, [] { return false; });
      },
      testing::ExitedWithCode(3), "test: a peer has died");
}

TEST_F(RingServerDeathTest, WhoAsksWaitsForTheHostUntilTheJobEnds) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        stop_ = MEMSPAN_KERNEL_NOT_SERVED;
        ask(1, false);
      },
      testing::ExitedWithCode(3), "test: the job has ended");
}

TEST_F(RingServerDeathTest, InNoJobNothingIsAsked) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        kernel::this_units_state = {};
        ask(1, false);
      },
      testing::ExitedWithCode(3), "test: called in no job");
}

}  // namespace
}  // namespace memspan::capi
