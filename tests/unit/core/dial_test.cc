// SPDX-License-Identifier: Apache-2.0
#include "net/dial.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <vector>

#include "core/interrupt.h"

namespace memspan {
namespace {

sockaddr_in loopback(in_port_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = port;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// At 127.0.0.1. Whatever its handler of interrupts does happens while dial() waits.
class DialTest : public testing::Test {
 public:
  void SetUp() override { listen_at(0); }
  void TearDown() override {
    set_thread_interrupt_handler(nullptr);
    test_ = nullptr;
  }

  void listen_at(in_port_t port) {
    listener_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1;
    ASSERT_EQ(setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    address_ = loopback(port);
    ASSERT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address_), sizeof address_), 0);
    ASSERT_EQ(listen(listener_.get(), 0), 0);
    socklen_t length = sizeof address_;
    ASSERT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address_), &length), 0);
  }

  // From now on the kernel drops the first packet of a connection to the listener.
  void fill_queue() {
    for (int i = 0; i < 8; ++i) {
      Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const timeval most{.tv_sec = 0, .tv_usec = 50'000};
      ASSERT_EQ(setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most), 0);
      const int result =
          ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address_), sizeof address_);
      if (result != 0) return;
      waiting_.push_back(std::move(socket));
    }
    FAIL() << "the queue took " << waiting_.size() << " connections";
  }
  void empty_queue() {
    while (true) {
      const Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!socket.is_valid()) return;
    }
  }

  // Calls `step` with 1, 2, 3..., every 40 ms of a wait.
  void while_waiting(void (*step)(DialTest&, int)) {
    test_ = this;
    step_ = step;
    call_ = 0;
    set_thread_interrupt_handler([] {
      step_(*test_, ++call_);
      return 0;
    });
  }

  Dialled dial_within(std::chrono::milliseconds time) {
    return dial(SocketAddress::of(reinterpret_cast<const sockaddr&>(address_)),
                Deadline::after(time));
  }

  Fd listener_;
  sockaddr_in address_{};
  std::vector<Fd> waiting_;

 private:
  inline static DialTest* test_ = nullptr;
  inline static void (*step_)(DialTest&, int) = nullptr;
  inline static int call_ = 0;
};

TEST_F(DialTest, ConnectsToAListener) {
  const Dialled dialled = dial_within(std::chrono::seconds(10));
  EXPECT_EQ(dialled.error, 0);
  EXPECT_TRUE(dialled.socket.is_valid());
}

TEST_F(DialTest, APortWithoutAListenerRefuses) {
  listener_.reset();
  const Dialled dialled = dial_within(std::chrono::seconds(10));
  EXPECT_EQ(dialled.error, ECONNREFUSED);
  EXPECT_FALSE(dialled.socket.is_valid());
}

TEST_F(DialTest, EndsAtTheDeadline) {
  fill_queue();
  EXPECT_EQ(dial_within(std::chrono::milliseconds(600)).error, ETIMEDOUT);
}

TEST_F(DialTest, AnInterruptionEndsIt) {
  fill_queue();
  set_thread_interrupt_handler([] { return 1; });
  EXPECT_EQ(dial_within(std::chrono::seconds(60)).error, EINTR);
}

// The kernel sends a lost first packet again after a second; a socket that sent nothing twice is a
// further attempt. A machine that stalls for that long may let the first one win.
TEST_F(DialTest, AFurtherAttemptNeedNotWaitForTheKernel) {
  int sent_again = 1;
  for (int round = 0; round < 5 && sent_again != 0; ++round) {
    fill_queue();
    while_waiting([](DialTest& test, int call) {
      if (call == 1) test.empty_queue();
    });
    const Dialled dialled = dial_within(std::chrono::seconds(10));
    ASSERT_EQ(dialled.error, 0);
    tcp_info info{};
    socklen_t length = sizeof info;
    ASSERT_EQ(getsockopt(dialled.socket.get(), IPPROTO_TCP, TCP_INFO, &info, &length), 0);
    sent_again = static_cast<int>(info.tcpi_total_retrans);
  }
  EXPECT_EQ(sent_again, 0);
}

TEST_F(DialTest, AttemptsThatFailAreNotTheEndOfTheOthers) {
  fill_queue();
  while_waiting([](DialTest& test, int call) {
    if (call == 1) test.listener_.reset();
    if (call == 10) test.listen_at(test.address_.sin_port);
  });
  EXPECT_EQ(dial_within(std::chrono::seconds(10)).error, 0);
}

}  // namespace
}  // namespace memspan
