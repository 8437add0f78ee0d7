// SPDX-License-Identifier: Apache-2.0
#include "net/unix_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/random.h"

namespace memspan {
namespace {

Deadline soon() {
  return Deadline::after(std::chrono::seconds(10));
}

struct Pair {
  Fd left;
  Fd right;
};

Pair connected_pair() {
  std::string name = "memspan-test-" + random_hex(16);
  Fd listener = unix_listen(name).value();
  Fd left = unix_connect_now(name).value();
  return {std::move(left), unix_accept(listener, soon()).value()};
}

TEST(UnixSocketTest, CarriesBytesAndDescriptors) {
  Pair pair = connected_pair();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  ASSERT_TRUE(unix_send(pair.left, "take this", {write_end.get()}).is_ok());
  UnixMessage message = unix_receive(pair.right, soon()).value();
  EXPECT_EQ(message.bytes, "take this");
  ASSERT_EQ(message.descriptors.size(), 1u);
  EXPECT_EQ(fcntl(message.descriptors[0].get(), F_GETFD), FD_CLOEXEC);
  ASSERT_EQ(write(message.descriptors[0].get(), "x", 1), 1);
  char got = 0;
  EXPECT_EQ(read(read_end.get(), &got, 1), 1);
  EXPECT_EQ(got, 'x');
}

TEST(UnixSocketTest, TellsTheUserAtTheOtherEnd) {
  Pair pair = connected_pair();
  EXPECT_EQ(unix_peer(pair.right).value().uid, geteuid());
}

TEST(UnixSocketTest, AClosedEndIsUnavailable) {
  Pair pair = connected_pair();
  pair.left.reset();
  EXPECT_EQ(unix_receive(pair.right, soon()).code(), Code::kUnavailable);
}

TEST(UnixSocketTest, WaitingEndsAtTheDeadline) {
  Pair pair = connected_pair();
  EXPECT_EQ(unix_receive(pair.right, Deadline::after(std::chrono::milliseconds(1))).code(),
            Code::kTimeout);
}

TEST(UnixSocketTest, RefusesNamesThatDoNotFitAndNamesNobodyHas) {
  EXPECT_EQ(unix_listen(std::string(200, 'n')).code(), Code::kInvalidArgument);
  EXPECT_EQ(unix_listen("").code(), Code::kInvalidArgument);
  EXPECT_EQ(unix_connect_now("memspan-test-" + random_hex(16)).code(), Code::kSystem);
}

}  // namespace
}  // namespace memspan
