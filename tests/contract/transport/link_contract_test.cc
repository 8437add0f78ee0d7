// SPDX-License-Identifier: Apache-2.0
// What every Link promises. The owner of the memory is another process, which sleeps all the time.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "contract/transport/owner_process.h"

namespace memspan::contract {
namespace {

class LinkContract : public testing::TestWithParam<Backend> {
 protected:
  LinkContract() : owner_(GetParam()) {
    transport_ = make();
    link_ = transport_->connect(owner_.address());
    region_ = owner_.region();
  }
  std::unique_ptr<MessageTransport> make() {
    return MessageTransport::make(message_options(GetParam(), 0)).value();
  }
  template <typename T>
  T& peer(std::size_t offset) {
    return owner_.memory<T>(offset);
  }
  Status put(std::uint64_t offset, const void* from, std::size_t bytes) {
    return link_->put(context_, {region_, offset}, from, bytes);
  }
  Status get(void* to, std::uint64_t offset, std::size_t bytes) {
    return link_->get(context_, to, {region_, offset}, bytes);
  }
  Status quiet() { return link_->quiet(context_); }
  static std::vector<char> pattern(std::size_t bytes, int seed) {
    std::vector<char> all(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
      all[i] = static_cast<char>(i * 31 + i / 4093 + static_cast<std::size_t>(seed));
    return all;
  }

  OwnerProcess owner_;
  std::unique_ptr<MessageTransport> transport_;
  std::unique_ptr<Link> link_;
  RemoteRegion region_;
  OperationContext context_;
};

TEST_P(LinkContract, IsNamed) {}

TEST_P(LinkContract, APutIsThereAfterQuiet) {
  const std::vector<char> bytes = pattern(kBytes, 1);
  for (std::size_t size : {std::size_t{1}, std::size_t{8}, std::size_t{4097}, std::size_t{70'000},
                           kBytes - 1, kBytes}) {
    std::memset(owner_.base(), 0, kBytes);
    ASSERT_TRUE(put(kBytes - size, bytes.data(), size).is_ok());
    ASSERT_TRUE(quiet().is_ok());
    EXPECT_EQ(std::memcmp(&peer<char>(kBytes - size), bytes.data(), size), 0) << size;
    if (size < kBytes) {
      EXPECT_EQ(peer<char>(kBytes - size - 1), 0) << size;
    }
  }
}

TEST_P(LinkContract, AGetBringsEveryByte) {
  const std::vector<char> bytes = pattern(kBytes, 2);
  std::memcpy(owner_.base(), bytes.data(), kBytes);
  for (std::size_t size : {std::size_t{1}, std::size_t{8}, std::size_t{4097}, std::size_t{70'000},
                           kBytes - 1, kBytes}) {
    std::vector<char> got(size + 1, 'x');
    ASSERT_TRUE(get(got.data(), kBytes - size, size).is_ok());
    EXPECT_EQ(std::memcmp(got.data(), bytes.data() + (kBytes - size), size), 0) << size;
    EXPECT_EQ(got[size], 'x');
  }
}

TEST_P(LinkContract, TheSourceMayChangeWhenPutReturns) {
  std::uint64_t value = 1;
  ASSERT_TRUE(put(64, &value, sizeof value).is_ok());
  value = 2;
  ASSERT_TRUE(quiet().is_ok());
  EXPECT_EQ(peer<std::uint64_t>(64), 1u);
}

TEST_P(LinkContract, NonBlockingFormsAreDoneAfterQuiet) {
  const std::vector<char> bytes = pattern(kBytes / 2, 3);
  std::vector<char> got(kBytes / 2);
  ASSERT_TRUE(link_->put(context_, {region_, 0}, bytes.data(), bytes.size()).is_ok());
  ASSERT_TRUE(link_->get_nbi(context_, got.data(), {region_, 0}, 1000).is_ok());
  ASSERT_TRUE(
      link_->get_nbi(context_, got.data() + 1000, {region_, 1000}, got.size() - 1000).is_ok());
  ASSERT_TRUE(context_.quiet().is_ok());
  EXPECT_EQ(std::memcmp(owner_.base(), bytes.data(), bytes.size()), 0);
  EXPECT_EQ(got, bytes);
}

TEST_P(LinkContract, AGetSeesWhatThisLinkPut) {
  std::uint64_t sent = 42;
  std::uint64_t got = 0;
  ASSERT_TRUE(put(0, &sent, sizeof sent).is_ok());
  ASSERT_TRUE(quiet().is_ok());
  ASSERT_TRUE(get(&got, 0, sizeof got).is_ok());
  EXPECT_EQ(got, 42u);
}

TEST_P(LinkContract, ALinkOrdersPutsToOnePlace) {
  for (std::uint64_t value : {1, 2, 3}) ASSERT_TRUE(put(8, &value, sizeof value).is_ok());
  ASSERT_TRUE(quiet().is_ok());
  EXPECT_EQ(peer<std::uint64_t>(8), 3u);
}

TEST_P(LinkContract, WhoSeesTheSignalSeesTheData) {
  const std::vector<char> bytes = pattern(kBytes / 2, 4);
  auto& signal = peer<std::atomic<std::uint64_t>>(kBytes);  // in the second region
  for (std::uint64_t round = 1; round <= 5; ++round) {
    std::memset(owner_.base(), 0, bytes.size());
    ASSERT_TRUE(link_
                    ->put_signal(context_, {region_, 0}, bytes.data(), bytes.size(),
                                 {owner_.small_region(), 0}, 1, SignalOp::kAdd)
                    .is_ok());
    const auto deadline = Deadline::after(std::chrono::seconds(20));
    while (signal.load(std::memory_order_acquire) != round && !deadline.has_passed())
      std::this_thread::yield();
    ASSERT_EQ(std::memcmp(owner_.base(), bytes.data(), bytes.size()), 0) << round;
  }
  ASSERT_TRUE(link_
                  ->put_signal(context_, {region_, 0}, nullptr, 0, {owner_.small_region(), 0}, 77,
                               SignalOp::kSet)
                  .is_ok());
  ASSERT_TRUE(quiet().is_ok());
  EXPECT_EQ(signal.load(), 77u);
}

TEST_P(LinkContract, AVectorOfPiecesGoesBothWays) {
  constexpr std::size_t kPieces = 300;
  const std::vector<char> bytes = pattern(kPieces * 100, 5);
  std::vector<char> here = bytes;
  std::vector<MovePiece> pieces;
  for (std::size_t i = 0; i < kPieces; ++i)
    pieces.push_back({reinterpret_cast<std::byte*>(here.data()) + i * 100, &region_,
                      (kPieces - 1 - i) * 128, 100});
  ASSERT_TRUE(link_->move(context_, MoveDirection::kPut, pieces).is_ok());
  ASSERT_TRUE(quiet().is_ok());
  for (std::size_t i = 0; i < kPieces; ++i)
    ASSERT_EQ(std::memcmp(&peer<char>((kPieces - 1 - i) * 128), bytes.data() + i * 100, 100), 0);
  std::fill(here.begin(), here.end(), 0);
  ASSERT_TRUE(link_->move(context_, MoveDirection::kGet, pieces).is_ok());
  EXPECT_EQ(here, bytes);
}

TEST_P(LinkContract, EveryAtomicGivesTheValueBeforeAndAppliesTheNew) {
  struct Case {
    AtomicOp op;
    std::uint64_t after;
  };
  constexpr std::uint64_t kStart = 0b1100;
  for (std::uint8_t width : {std::uint8_t{4}, std::uint8_t{8}}) {
    const Case cases[] = {
        {{AtomicKind::kFetch, width, 7, 0}, kStart},
        {{AtomicKind::kSet, width, 7, 0}, 7},
        {{AtomicKind::kSwap, width, 9, 0}, 9},
        {{AtomicKind::kCompareSwap, width, 5, kStart}, 5},
        {{AtomicKind::kCompareSwap, width, 5, 1}, kStart},
        {{AtomicKind::kAdd, width, 3, 0}, kStart + 3},
        {{AtomicKind::kAnd, width, 0b0110, 0}, 0b0100},
        {{AtomicKind::kOr, width, 0b0011, 0}, 0b1111},
        {{AtomicKind::kXor, width, 0b1111, 0}, 0b0011},
    };
    for (const Case& one : cases) {
      peer<std::uint64_t>(16) = kStart;
      std::uint64_t before = 0;
      ASSERT_TRUE(link_->atomic(context_, one.op, {region_, 16}, &before).is_ok());
      EXPECT_EQ(before, kStart) << static_cast<int>(one.op.kind);
      EXPECT_EQ(peer<std::uint64_t>(16), one.after) << static_cast<int>(one.op.kind);
      peer<std::uint64_t>(16) = kStart;
      ASSERT_TRUE(link_->atomic(context_, one.op, {region_, 16}, nullptr).is_ok());
      ASSERT_TRUE(quiet().is_ok());
      EXPECT_EQ(peer<std::uint64_t>(16), one.after) << static_cast<int>(one.op.kind);
    }
  }
}

TEST_P(LinkContract, AtomicsOfManyThreadsAreNotLost) {
  constexpr int kThreads = 4;
  constexpr int kEach = 2'000;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([this, i] {
      std::uint64_t before = 0;
      for (int n = 0; n < kEach; ++n)
        ASSERT_TRUE(link_
                        ->atomic(context_, {AtomicKind::kAdd, 8, 1, 0}, {region_, 24},
                                 i % 2 == 0 ? nullptr : &before)
                        .is_ok());
    });
  for (int n = 0; n < kEach; ++n) __atomic_fetch_add(&peer<std::uint64_t>(24), 1, __ATOMIC_SEQ_CST);
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(quiet().is_ok());
  EXPECT_EQ(peer<std::uint64_t>(24), std::uint64_t{kThreads + 1} * kEach);
}

TEST_P(LinkContract, ThreadsMovePiecesOfTheirOwn) {
  constexpr std::size_t kEach = kBytes / 4;
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([this, thread] {
      OperationContext mine;
      for (int round = 0; round < 5; ++round) {
        const std::vector<char> bytes = pattern(kEach, static_cast<int>(thread) * 10 + round);
        std::vector<char> got(kEach);
        ASSERT_TRUE(link_->put(mine, {region_, thread * kEach}, bytes.data(), kEach).is_ok());
        ASSERT_TRUE(link_->get(mine, got.data(), {region_, thread * kEach}, kEach).is_ok());
        ASSERT_EQ(got, bytes);
        ASSERT_TRUE(mine.quiet().is_ok());
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_P(LinkContract, AnAccessThatLeavesTheRegionTouchesNothing) {
  std::uint64_t value = 1;
  for (std::uint64_t offset :
       {std::uint64_t{kBytes}, std::uint64_t{kBytes - 4}, UINT64_MAX, UINT64_MAX - 7}) {
    Status status = put(offset, &value, sizeof value);
    if (status.is_ok()) status = quiet();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << offset;
    EXPECT_EQ(get(&value, offset, sizeof value).code(), Code::kInvalidArgument) << offset;
    EXPECT_EQ(
        link_->atomic(context_, {AtomicKind::kAdd, 8, 1, 0}, {region_, offset}, nullptr).code(),
        Code::kInvalidArgument)
        << offset;
  }
  EXPECT_EQ(peer<std::uint32_t>(kBytes - 4), 0u);
  EXPECT_EQ(peer<std::uint32_t>(kBytes), 0u);
}

TEST_P(LinkContract, AnotherGenerationIsStale) {
  RemoteRegion stale = owner_.region();
  ++stale.id.generation;
  std::uint64_t value = 1;
  EXPECT_EQ(link_->get(context_, &value, {stale, 0}, 8).code(), Code::kStale);
  Status status = link_->put(context_, {stale, 0}, &value, 8);
  if (status.is_ok()) status = quiet();
  EXPECT_EQ(status.code(), Code::kStale);
  EXPECT_EQ(peer<std::uint64_t>(0), 0u);
  RemoteRegion none = owner_.region();
  none.id.number = 99;
  EXPECT_EQ(link_->get(context_, &value, {none, 0}, 8).code(), Code::kNotFound);
}

TEST_P(LinkContract, AtomicsNeedAnAlignedWordOfFourOrEight) {
  for (const AtomicOp& op :
       {AtomicOp{AtomicKind::kAdd, 8, 1, 0}, AtomicOp{AtomicKind::kAdd, 2, 1, 0}})
    EXPECT_EQ(link_->atomic(context_, op, {region_, 4}, nullptr).code(), Code::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Transports, LinkContract,
                         testing::Values(Backend::kMessageUnix, Backend::kMessageTcp,
                                         Backend::kMessageTls, Backend::kMessageUcx),
                         [](const auto& one) { return std::string(name_of(one.param)); });

}  // namespace
}  // namespace memspan::contract
