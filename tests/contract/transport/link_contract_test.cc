// SPDX-License-Identifier: Apache-2.0
// What every Link promises. The peer's side is a second mapping of the same pages, looked at
// directly; the link is only told the descriptor.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "contract/transport/fixture.h"

namespace memspan::contract {
namespace {

constexpr std::size_t kBytes = 1 << 20;

class LinkContract : public testing::Test {
 protected:
  LinkContract()
      : pages_(Pages::create(2 * kBytes, "contract").value()),
        here_(Reservation::make(kBytes, nullptr).value()),
        there_(Reservation::make(kBytes, nullptr).value()),
        transport_(make_transport(here_)) {
    EXPECT_TRUE(there_.map(0, pages_, kBytes, kBytes).is_ok());
    link_ = transport_->connect(PeerSegment{1, &pages_, kBytes, kBytes, 0}).value();
  }
  template <typename T>
  T& peer(std::size_t offset) {
    return *reinterpret_cast<T*>(there_.base() + offset);
  }

  Pages pages_;
  Reservation here_;
  Reservation there_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Link> link_;
};

TEST_F(LinkContract, IsViableAndNamed) {
  EXPECT_TRUE(transport_->viable().is_ok());
  EXPECT_FALSE(transport_->name().empty());
  EXPECT_FALSE(transport_->domain().empty());
}

TEST_F(LinkContract, APutIsThereAfterQuiet) {
  std::vector<char> bytes(kBytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31);
  for (std::size_t size : {std::size_t{1}, std::size_t{8}, std::size_t{4097}, kBytes}) {
    std::memset(there_.base(), 0, kBytes);
    ASSERT_TRUE(link_->put(kBytes - size, bytes.data(), size).is_ok());
    ASSERT_TRUE(link_->quiet().is_ok());
    EXPECT_EQ(std::memcmp(&peer<char>(kBytes - size), bytes.data(), size), 0) << size;
  }
}

TEST_F(LinkContract, TheSourceMayChangeWhenPutReturns) {
  std::uint64_t value = 1;
  ASSERT_TRUE(link_->put(64, &value, sizeof value).is_ok());
  value = 2;
  ASSERT_TRUE(link_->quiet().is_ok());
  EXPECT_EQ(peer<std::uint64_t>(64), 1u);
}

TEST_F(LinkContract, AGetSeesWhatThisLinkPut) {
  std::uint64_t sent = 42;
  std::uint64_t got = 0;
  ASSERT_TRUE(link_->put(0, &sent, sizeof sent).is_ok());
  ASSERT_TRUE(link_->quiet().is_ok());
  ASSERT_TRUE(link_->get(&got, 0, sizeof got).is_ok());
  EXPECT_EQ(got, 42u);
}

TEST_F(LinkContract, FenceOrdersTwoPutsToOnePlace) {
  for (std::uint64_t value : {1, 2, 3}) {
    ASSERT_TRUE(link_->put(8, &value, sizeof value).is_ok());
    ASSERT_TRUE(link_->fence().is_ok());
  }
  ASSERT_TRUE(link_->quiet().is_ok());
  EXPECT_EQ(peer<std::uint64_t>(8), 3u);
}

TEST_F(LinkContract, EveryAtomicGivesTheValueBeforeAndAppliesTheNew) {
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
      ASSERT_TRUE(link_->atomic(one.op, 16, &before).is_ok());
      EXPECT_EQ(before, kStart) << static_cast<int>(one.op.kind);
      ASSERT_TRUE(link_->quiet().is_ok());
      EXPECT_EQ(peer<std::uint64_t>(16), one.after) << static_cast<int>(one.op.kind);
    }
  }
}

TEST_F(LinkContract, AtomicsOfManyThreadsAreNotLost) {
  constexpr int kThreads = 4;
  constexpr int kEach = 10'000;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([this] {
      for (int n = 0; n < kEach; ++n)
        ASSERT_TRUE(link_->atomic({AtomicKind::kAdd, 8, 1, 0}, 24, nullptr).is_ok());
    });
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(link_->quiet().is_ok());
  EXPECT_EQ(peer<std::uint64_t>(24), std::uint64_t{kThreads} * kEach);
}

TEST_F(LinkContract, AnAccessThatLeavesTheSegmentTouchesNothing) {
  std::uint64_t value = 1;
  for (std::uint64_t offset :
       {std::uint64_t{kBytes}, std::uint64_t{kBytes - 4}, UINT64_MAX, UINT64_MAX - 7}) {
    Status status = link_->put(offset, &value, sizeof value);
    if (status.is_ok()) status = link_->quiet();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << offset;
    EXPECT_EQ(link_->get(&value, offset, sizeof value).code(), Code::kInvalidArgument) << offset;
    EXPECT_EQ(link_->atomic({AtomicKind::kAdd, 8, 1, 0}, offset, nullptr).code(),
              Code::kInvalidArgument)
        << offset;
  }
  EXPECT_EQ(peer<std::uint32_t>(kBytes - 4), 0u);
}

TEST_F(LinkContract, AtomicsNeedAnAlignedWordOfFourOrEight) {
  EXPECT_EQ(link_->atomic({AtomicKind::kAdd, 8, 1, 0}, 4, nullptr).code(), Code::kInvalidArgument);
  EXPECT_EQ(link_->atomic({AtomicKind::kAdd, 2, 1, 0}, 4, nullptr).code(), Code::kInvalidArgument);
}

TEST_F(LinkContract, DirectIsTheSegmentOrNothing) {
  std::byte* direct = link_->direct(100);
  EXPECT_EQ(direct != nullptr, transport_->capabilities().direct);
  if (direct != nullptr) {
    *direct = std::byte{77};
    EXPECT_EQ(peer<std::byte>(100), std::byte{77});
    EXPECT_EQ(link_->direct(kBytes), nullptr);
  }
}

}  // namespace
}  // namespace memspan::contract
