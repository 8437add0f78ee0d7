// SPDX-License-Identifier: Apache-2.0
// Transfers to what the peer has not registered yet: they wait for it, or fail at once.
#include <memspan/transfer.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "fabric/trans.h"

namespace trans {
namespace {

constexpr std::size_t kBytes = 4096;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// A request for kBytes; nullptr, and a failed test, when it cannot be made.
memspan_transfer_t prepare_write(smem_trans_t handle, void* local, void* remote) {
  const std::size_t bytes = kBytes;
  memspan_transfer_t request = nullptr;
  EXPECT_EQ(memspan_transfer_prepare(handle, MEMSPAN_TRANSFER_WRITE, kTarget, &local, &remote,
                                     &bytes, 1, &request),
            SMEM_OK);
  return request;
}

// A target that registers its memory only when it has been told that a transfer has begun, and an
// initiator that has registered memory of its own, as programs do whose registering is a meeting.
// `initiate(endpoint, remote, begun)` calls begun() before a transfer that has to wait.
template <typename Initiate>
void with_late_target(Initiate initiate) {
  Store store;
  Wire wire;
  Side target([&] {
    const auto handle = create(store.url(), kTarget, SMEM_TRANS_RECEIVER);
    auto* memory = fresh_pages(kBytes, 7);
    say(wire.left(), memory);
    while (hear<char>(wire.left()) == 'b') {
      // Long enough for the initiator to be refused first, however it is scheduled.
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      EXPECT_EQ(smem_trans_register_mem(handle, memory, kBytes, 0), SMEM_OK);
    }
    smem_trans_destroy(handle, 0);
  });
  Side initiator([&] {
    const auto handle = create(store.url(), kInitiator, SMEM_TRANS_SENDER);
    auto* remote = hear<unsigned char*>(wire.right());
    initiate(handle, remote, [&] { say(wire.right(), 'b'); });
    smem_trans_destroy(handle, 0);
    say(wire.right(), 'd');
  });
  initiator.join();
  target.join();
}

TEST(TransWaitTest, AWriteAfterOnesOwnRegistrationWaitsForThePeers) {
  with_late_target([](smem_trans_t handle, unsigned char* remote, const auto& begun) {
    static unsigned char mine[kBytes];
    ASSERT_EQ(smem_trans_register_mem(handle, mine, kBytes, 0), SMEM_OK);
    begun();
    EXPECT_EQ(smem_trans_write(handle, mine, kTarget, remote, kBytes), SMEM_OK)
        << smem_get_last_err_msg();
    unsigned char byte = 1;
    EXPECT_EQ(smem_trans_read(handle, &byte, kTarget, remote, 1), SMEM_OK);
    EXPECT_EQ(byte, 0);
  });
}

TEST(TransWaitTest, SoDoesAPostedRequest) {
  with_late_target([](smem_trans_t handle, unsigned char* remote, const auto& begun) {
    static unsigned char mine[kBytes];
    ASSERT_EQ(smem_trans_register_mem(handle, mine, kBytes, 0), SMEM_OK);
    const memspan_transfer_t request = prepare_write(handle, mine, remote);
    // Asked to, it fails at once.
    EXPECT_EQ(memspan_transfer_set_patience(request, 0), SMEM_OK);
    ASSERT_EQ(memspan_transfer_post(request), SMEM_OK);
    EXPECT_EQ(memspan_transfer_wait(request, 5000), SMEM_NOT_EXIST);
    EXPECT_EQ(memspan_transfer_set_patience(request, 60'000), SMEM_OK);
    ASSERT_EQ(memspan_transfer_post(request), SMEM_OK);
    EXPECT_EQ(memspan_transfer_wait(request, 10), SMEM_TIMEOUT);
    begun();
    EXPECT_EQ(memspan_transfer_wait(request, 20'000), SMEM_OK) << smem_get_last_err_msg();
    EXPECT_EQ(memspan_transfer_destroy(request), SMEM_OK);
  });
}

// Nothing is pending after a cancellation or the endpoint's end, which do not wait for the peer.
TEST(TransWaitTest, AWaitingRequestCanBeCancelled) {
  with_late_target([](smem_trans_t handle, unsigned char* remote, const auto&) {
    const memspan_transfer_t request = prepare_write(handle, fresh_pages(kBytes, 1), remote);
    EXPECT_EQ(memspan_transfer_set_patience(request, 60'000), SMEM_OK);
    ASSERT_EQ(memspan_transfer_post(request), SMEM_OK);
    EXPECT_EQ(memspan_transfer_set_patience(request, 1), SMEM_NOT_STARTED);
    EXPECT_EQ(memspan_transfer_cancel(request), SMEM_OK);
    EXPECT_EQ(memspan_transfer_test(request), MEMSPAN_TRANSFER_CANCELLED);
    ASSERT_EQ(memspan_transfer_post(request), SMEM_OK);
  });
}

// Where nothing is to be expected: nothing of one's own was registered, somebody asked for it, or a
// wait was in vain before.
TEST(TransWaitTest, FailsAtOnceWhereNothingIsExpected) {
  setenv("MEMSPAN_TRANS_WAIT", "1", 1);
  with_late_target([](smem_trans_t handle, unsigned char* remote, const auto&) {
    static unsigned char mine[kBytes];
    auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(smem_trans_write(handle, mine, kTarget, remote, 1), SMEM_NOT_EXIST);
    EXPECT_LT(seconds_since(begin), 0.9);
    ASSERT_EQ(smem_trans_register_mem(handle, mine, kBytes, 0), SMEM_OK);
    begin = std::chrono::steady_clock::now();
    EXPECT_EQ(smem_trans_write(handle, mine, kTarget, remote, 1), SMEM_NOT_EXIST);
    EXPECT_GE(seconds_since(begin), 1.0);
    begin = std::chrono::steady_clock::now();
    EXPECT_EQ(smem_trans_write(handle, mine, kTarget, remote, 1), SMEM_NOT_EXIST);
    EXPECT_LT(seconds_since(begin), 0.9);
    EXPECT_TRUE(says("are not entirely in what endpoint"));
  });
  setenv("MEMSPAN_TRANS_WAIT", "0", 1);
  with_late_target([](smem_trans_t handle, unsigned char* remote, const auto&) {
    static unsigned char mine[kBytes];
    ASSERT_EQ(smem_trans_register_mem(handle, mine, kBytes, 0), SMEM_OK);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(smem_trans_write(handle, mine, kTarget, remote, 1), SMEM_NOT_EXIST);
    EXPECT_LT(seconds_since(begin), 0.9);
  });
  unsetenv("MEMSPAN_TRANS_WAIT");
}

TEST(TransWaitTest, EndsWithItsPeerOrItsEndpoint) {
  Store store;
  Wire wire;
  Side target([&] {
    create(store.url(), kTarget);
    meet(wire.left());
    hear<char>(wire.left());
    _exit(0);
  });
  Side initiator([&] {
    const auto handle = create(store.url(), kInitiator);
    static unsigned char mine[kBytes];
    ASSERT_EQ(smem_trans_register_mem(handle, mine, kBytes, 0), SMEM_OK);
    meet(wire.right());
    ASSERT_EQ(memspan_transfer_reach(handle, kTarget), SMEM_OK) << smem_get_last_err_msg();
    const auto begin = std::chrono::steady_clock::now();
    std::thread ender([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      say(wire.right(), 'e');
    });
    EXPECT_EQ(smem_trans_write(handle, mine, kTarget, mine, 1), SMEM_NOT_CONNECTED)
        << smem_get_last_err_msg();
    EXPECT_LT(seconds_since(begin), 6);
    ender.join();
    std::thread destroyer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      smem_trans_destroy(handle, 0);
    });
    const auto other = create(store.url(), kTarget);
    EXPECT_EQ(smem_trans_write(handle, mine, kTarget, mine, 1), SMEM_NOT_STARTED)
        << smem_get_last_err_msg();
    destroyer.join();
    smem_trans_destroy(other, 0);
  });
  initiator.join();
}

TEST(TransWaitTest, RefusesWhatIsNoNumberOfSeconds) {
  setenv("MEMSPAN_TRANS_WAIT", "soon", 1);
  Store store;
  Side alone([&] {
    smem_trans_config_t config;
    EXPECT_EQ(smem_trans_config_init(&config), SMEM_OK);
    EXPECT_EQ(smem_trans_init(&config), SMEM_OK);
    EXPECT_EQ(smem_trans_create(store.url(), kTarget, &config), nullptr);
    EXPECT_TRUE(says("MEMSPAN_TRANS_WAIT") && says("soon"));
  });
  unsetenv("MEMSPAN_TRANS_WAIT");
  alone.join();
}

}  // namespace
}  // namespace trans
