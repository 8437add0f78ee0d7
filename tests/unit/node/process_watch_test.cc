// SPDX-License-Identifier: Apache-2.0
#include "node/process_watch.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <future>
#include <vector>

#include "node/process.h"

namespace memspan {
namespace {

constexpr auto kLong = std::chrono::seconds(60);

// A process that lives until end() or the end of the test.
class Child {
 public:
  Child() : process_(fork()) {
    while (process_ == 0) pause();
    pidfd_ = open_pidfd(process_).value();
  }
  ~Child() {
    end();
    waitpid(process_, nullptr, 0);
  }
  void end() const { kill(process_, SIGKILL); }
  const Fd& pidfd() const { return pidfd_; }

 private:
  const pid_t process_;
  Fd pidfd_;
};

TEST(ProcessWatchTest, TellsTheEndOfAProcessOnce) {
  Child child;
  std::promise<ProcessWatch::Sign> ended;
  auto watch = ProcessWatch::start(child.pidfd().get(), -1,
                                   [&](ProcessWatch::Sign sign) { ended.set_value(sign); });
  ASSERT_TRUE(watch.is_ok()) << watch.status().to_string();
  auto future = ended.get_future();
  EXPECT_EQ(future.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  child.end();
  ASSERT_EQ(future.wait_for(kLong), std::future_status::ready);
  EXPECT_EQ(future.get(), ProcessWatch::Sign::kGone);
}

// One that is watched still ends later, so the other's end would have been told.
TEST(ProcessWatchTest, TellsNothingAfterItEnded) {
  auto forgotten = std::make_unique<Child>();
  const auto fail = [](ProcessWatch::Sign) { ADD_FAILURE(); };
  ASSERT_TRUE(ProcessWatch::start(forgotten->pidfd().get(), -1, fail).is_ok());
  Child witness;
  std::promise<void> ended;
  auto watch = ProcessWatch::start(witness.pidfd().get(), -1,
                                   [&](ProcessWatch::Sign) { ended.set_value(); });
  ASSERT_TRUE(watch.is_ok());
  forgotten.reset();
  witness.end();
  EXPECT_EQ(ended.get_future().wait_for(kLong), std::future_status::ready);
}

TEST(ProcessWatchTest, TellsThatAConnectionWasClosed) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  const Fd mine(ends[0]);
  Fd theirs(ends[1]);
  std::promise<ProcessWatch::Sign> ended;
  auto watch =
      ProcessWatch::start(-1, mine.get(), [&](ProcessWatch::Sign sign) { ended.set_value(sign); });
  ASSERT_TRUE(watch.is_ok());
  theirs.reset();
  EXPECT_EQ(ended.get_future().get(), ProcessWatch::Sign::kConnectionClosed);
}

class PeerWatchTest : public testing::Test {
 protected:
  PeerWatchTest() : segment_(NodeSegment::create(3, 1 << 20, false).value()) {
    for (int rank = 0; rank < 3; ++rank) segment_.peer(rank).state.store(PeerState::kJoined);
  }
  bool is_lost(int rank) const { return segment_.peer(rank).state.load() == PeerState::kLost; }
  static std::vector<PeerWatch::Watched> rank_1(const Child& child) {
    std::vector<PeerWatch::Watched> watched;
    watched.push_back({1, duplicate(child.pidfd().get()), Fd()});
    return watched;
  }

  NodeSegment segment_;
};

TEST_F(PeerWatchTest, NotesTheDeathOfAPeerThatItWatches) {
  Child child;
  auto watch = PeerWatch::start(segment_, rank_1(child));
  ASSERT_TRUE(watch.is_ok()) << watch.status().to_string();
  std::promise<std::pair<int, int>> noted;
  (*watch)->set_listener([&](int rank, int how) { noted.set_value({rank, how}); });
  child.end();
  auto future = noted.get_future();
  ASSERT_EQ(future.wait_for(kLong), std::future_status::ready);
  EXPECT_EQ(future.get(), std::pair(1, kUnseenEnd));
  EXPECT_TRUE(is_lost(1));
  EXPECT_FALSE(is_lost(2));
}

TEST_F(PeerWatchTest, NotesWhatOthersReportOnce) {
  auto watch = PeerWatch::start(segment_, {}).value();
  std::vector<int> noted;
  watch->set_listener([&](int rank, int) { noted.push_back(rank); });
  EXPECT_TRUE(watch->report(2, 9));
  EXPECT_FALSE(watch->report(2, kUnseenEnd));
  EXPECT_TRUE(is_lost(2));
  EXPECT_EQ(segment_.peer(2).wait_status.load(), 9);
  segment_.peer(1).state.store(PeerState::kLeft);
  EXPECT_FALSE(watch->report(1, kUnseenEnd)) << "who has left properly does not die";
  EXPECT_EQ(noted, std::vector{2});
}

TEST_F(PeerWatchTest, MayEndBeforeThePeersDo) {
  Child child;
  PeerWatch::start(segment_, rank_1(child)).value().reset();
  child.end();
  EXPECT_FALSE(is_lost(1));
}

}  // namespace
}  // namespace memspan
