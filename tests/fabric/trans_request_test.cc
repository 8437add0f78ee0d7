// SPDX-License-Identifier: Apache-2.0
// Requests: every way to complete them, what follows the data, and what ends them early.
#include <memspan/transfer.h>
#include <poll.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fabric/trans.h"

namespace trans {
namespace {

constexpr std::size_t kBytes = std::size_t{8} << 20;
constexpr std::uint32_t kLong = 30'000;  // milliseconds

// A target with kBytes registered, and an initiator with as many.
template <typename Target, typename Initiate>
void with_both(Target target_runs, Initiate initiator_runs) {
  Store store;
  Wire wire;
  Side target([&] {
    const auto handle = create(store.url(), kTarget);
    auto* memory = offer_pages(handle, kBytes, wire.left());
    target_runs(handle, memory, wire.left());
    meet(wire.left());
    smem_trans_destroy(handle, 0);
  });
  Side initiator([&] {
    const auto handle = create(store.url(), kInitiator);
    auto* memory = fresh_pages(kBytes, 0);
    for (std::size_t i = 0; i < kBytes; ++i) memory[i] = static_cast<unsigned char>(i % 251);
    auto* remote = hear<unsigned char*>(wire.right());
    initiator_runs(handle, memory, remote, wire.right());
    meet(wire.right());
    smem_trans_destroy(handle, 0);
  });
  initiator.join();
  target.join();
}

void no_target(smem_trans_t, unsigned char*, int) {}

memspan_transfer_t one_piece(smem_trans_t handle, memspan_transfer_direction_t direction,
                             void* local, void* remote, std::size_t bytes,
                             const char* peer = kTarget) {
  memspan_transfer_t request = nullptr;
  EXPECT_EQ(memspan_transfer_prepare(handle, direction, peer, &local, &remote, &bytes, 1, &request),
            SMEM_OK)
      << smem_get_last_err_msg();
  return request;
}

memspan_transfer_t write_request(smem_trans_t handle, void* local, void* remote, std::size_t bytes,
                                 const char* peer = kTarget) {
  return one_piece(handle, MEMSPAN_TRANSFER_WRITE, local, remote, bytes, peer);
}

memspan_transfer_result_t result_of(memspan_transfer_t request) {
  memspan_transfer_result_t result{-1, 0};
  EXPECT_EQ(memspan_transfer_result(request, &result), SMEM_OK);
  return result;
}

TEST(TransRequestTest, MovesBothWaysAndAgain) {
  with_both(no_target, [](smem_trans_t handle, unsigned char* memory, unsigned char* remote, int) {
    auto* back = fresh_pages(kBytes, 0);
    const auto write = write_request(handle, memory, remote, kBytes);
    const auto read = one_piece(handle, MEMSPAN_TRANSFER_READ, back, remote, kBytes);
    EXPECT_EQ(memspan_transfer_test(write), MEMSPAN_TRANSFER_PENDING);
    EXPECT_EQ(memspan_transfer_wait(write, 0), SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("never posted"));
    for (int round = 0; round < 3; ++round) {
      memory[0] = static_cast<unsigned char>(100 + round);
      ASSERT_EQ(memspan_transfer_post(write), SMEM_OK);
      ASSERT_EQ(memspan_transfer_wait(write, kLong), SMEM_OK) << smem_get_last_err_msg();
      EXPECT_EQ(memspan_transfer_test(write), SMEM_OK);
      ASSERT_EQ(memspan_transfer_post(read), SMEM_OK);
      ASSERT_EQ(memspan_transfer_wait(read, MEMSPAN_TRANSFER_FOREVER), SMEM_OK);
      EXPECT_EQ(std::memcmp(memory, back, kBytes), 0);
      EXPECT_EQ(result_of(read).pieces, 1u);
    }
    EXPECT_EQ(memspan_transfer_destroy(write), SMEM_OK);
    EXPECT_EQ(memspan_transfer_post(write), SMEM_NOT_EXIST);
    EXPECT_EQ(memspan_transfer_destroy(write), SMEM_NOT_EXIST);
    EXPECT_EQ(memspan_transfer_destroy(nullptr), SMEM_INVALID_PARAM);
    EXPECT_EQ(memspan_transfer_destroy(read), SMEM_OK);
  });
}

TEST(TransRequestTest, MovesBlocksAndPages) {
  with_both(no_target, [](smem_trans_t handle, unsigned char* memory, unsigned char* remote, int) {
    memspan_transfer_t request = nullptr;
    auto* back = fresh_pages(kBytes, 0);
    // 4 blocks of 300 bytes here, 12 of 100 there, which are laid backwards.
    const memspan_transfer_blocks_t local{memory + 1, 1000, 300, 4};
    const memspan_transfer_blocks_t there{remote + 11 * 128, -128, 100, 12};
    ASSERT_EQ(memspan_transfer_prepare_blocks(handle, MEMSPAN_TRANSFER_WRITE, kTarget, &local,
                                              &there, &request),
              SMEM_OK);
    ASSERT_EQ(memspan_transfer_post(request), SMEM_OK);
    ASSERT_EQ(memspan_transfer_wait(request, kLong), SMEM_OK) << smem_get_last_err_msg();
    EXPECT_EQ(result_of(request).pieces, 12u);
    ASSERT_EQ(smem_trans_read(handle, back, kTarget, remote, 12 * 128), SMEM_OK);
    for (int piece = 0; piece < 12; ++piece) {
      const unsigned char* from = memory + 1 + piece / 3 * 1000 + piece % 3 * 100;
      EXPECT_EQ(std::memcmp(back + (11 - piece) * 128, from, 100), 0) << piece;
      EXPECT_TRUE(all_are(back + (11 - piece) * 128 + 100, 28, 7)) << piece;
    }
    const std::uint32_t here_pages[] = {5, 0, 2};
    const std::uint32_t there_pages[] = {1, 9, 3};
    const memspan_transfer_pages_t here{memory, here_pages};
    const memspan_transfer_pages_t over_there{remote + 8192, there_pages};
    memspan_transfer_t pages = nullptr;
    ASSERT_EQ(memspan_transfer_prepare_pages(handle, MEMSPAN_TRANSFER_WRITE, kTarget, &here,
                                             &over_there, 512, 3, &pages),
              SMEM_OK);
    ASSERT_EQ(memspan_transfer_post(pages), SMEM_OK);
    ASSERT_EQ(memspan_transfer_wait(pages, kLong), SMEM_OK) << smem_get_last_err_msg();
    ASSERT_EQ(smem_trans_read(handle, back, kTarget, remote + 8192, 512 * 11), SMEM_OK);
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(std::memcmp(back + 512 * there_pages[i], memory + 512 * here_pages[i], 512), 0);
    EXPECT_TRUE(all_are(back, 512, 7) && all_are(back + 1024, 512, 7));
    EXPECT_EQ(memspan_transfer_prepare_pages(handle, MEMSPAN_TRANSFER_WRITE, kTarget, &here,
                                             &over_there, 512, 0, &pages),
              SMEM_INVALID_PARAM);
    EXPECT_EQ(memspan_transfer_prepare_pages(handle, MEMSPAN_TRANSFER_WRITE, kTarget, &here,
                                             nullptr, 512, 3, &pages),
              SMEM_INVALID_PARAM);
    EXPECT_EQ(memspan_transfer_prepare_pages(handle, MEMSPAN_TRANSFER_WRITE, nullptr, &here,
                                             &over_there, 512, 3, &pages),
              SMEM_INVALID_PARAM);
    const memspan_transfer_blocks_t other{remote, 128, 90, 12};
    EXPECT_EQ(memspan_transfer_prepare_blocks(handle, MEMSPAN_TRANSFER_WRITE, kTarget, &local,
                                              &other, &request),
              SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("4 blocks of 300"));
  });
}

TEST(TransRequestTest, AWaitThatTimesOutChangesNothing) {
  with_both(
      [](smem_trans_t handle, unsigned char*, int wire) {
        meet(wire);  // the mailbox is full
        memspan_transfer_message_t message;
        EXPECT_EQ(memspan_transfer_receive(handle, &message, kLong), SMEM_OK);
        meet(wire);
        int count = 1;
        while (memspan_transfer_receive(handle, &message, 0) == SMEM_OK) ++count;
        EXPECT_GE(count, 100);
        meet(wire);
        EXPECT_EQ(memspan_transfer_receive(handle, &message, kLong), SMEM_OK);
        EXPECT_EQ(message.bytes, 1u);
      },
      [](smem_trans_t handle, unsigned char* memory, unsigned char* remote, int wire) {
        const auto request = write_request(handle, memory, remote, 8);
        ASSERT_EQ(memspan_transfer_set_message(request, "x", 1), SMEM_OK);
        int code = SMEM_OK;
        do {
          ASSERT_EQ(memspan_transfer_post(request), SMEM_OK);
          code = memspan_transfer_wait(request, 300);
        } while (code == SMEM_OK);
        EXPECT_EQ(code, SMEM_TIMEOUT) << smem_get_last_err_msg();
        EXPECT_EQ(memspan_transfer_test(request), MEMSPAN_TRANSFER_PENDING);
        EXPECT_EQ(memspan_transfer_post(request), SMEM_NOT_STARTED);
        EXPECT_EQ(memspan_transfer_set_message(request, "y", 1), SMEM_NOT_STARTED);
        EXPECT_EQ(result_of(request).pieces, 1u);
        // Another one is not held up, and a full mailbox is cancelled at once.
        const auto other = write_request(handle, memory, remote + 100, 8);
        ASSERT_EQ(memspan_transfer_post(other), SMEM_OK);
        EXPECT_EQ(memspan_transfer_wait(other, kLong), SMEM_OK);
        EXPECT_EQ(memspan_transfer_cancel(request), SMEM_OK);
        EXPECT_EQ(memspan_transfer_test(request), MEMSPAN_TRANSFER_CANCELLED);
        EXPECT_EQ(memspan_transfer_wait(request, kLong), MEMSPAN_TRANSFER_CANCELLED);
        meet(wire);
        meet(wire);
        meet(wire);
        ASSERT_EQ(memspan_transfer_post(request), SMEM_OK);
        EXPECT_EQ(memspan_transfer_wait(request, kLong), SMEM_OK) << smem_get_last_err_msg();
      });
}

struct Calls {
  std::atomic<int> count{0};
  std::atomic<int> code{99};
  memspan_transfer_t destroy = nullptr;
  std::promise<void> last;
  int most = 1;
};

void count_call(memspan_transfer_t request, std::int32_t code, void* user) {
  auto* calls = static_cast<Calls*>(user);
  calls->code = code;
  if (++calls->count < calls->most) {
    EXPECT_EQ(memspan_transfer_post(request), SMEM_OK);
    return;
  }
  if (calls->destroy != nullptr) {
    EXPECT_EQ(memspan_transfer_destroy(request), SMEM_OK);
  }
  calls->last.set_value();
}

TEST(TransRequestTest, CallsBackAndMayPostItselfAgain) {
  with_both(no_target, [](smem_trans_t handle, unsigned char* memory, unsigned char* remote, int) {
    Calls calls;
    calls.most = 5;
    const auto request = write_request(handle, memory, remote, 100);
    calls.destroy = request;
    ASSERT_EQ(memspan_transfer_set_callback(request, count_call, &calls), SMEM_OK);
    ASSERT_EQ(memspan_transfer_post(request), SMEM_OK);
    calls.last.get_future().get();
    EXPECT_EQ(calls.count, 5);
    EXPECT_EQ(calls.code, SMEM_OK);
    EXPECT_EQ(memspan_transfer_test(request), SMEM_NOT_EXIST);
    Calls failed;
    const auto bad = write_request(handle, memory, remote + kBytes, 1);
    ASSERT_EQ(memspan_transfer_set_callback(bad, count_call, &failed), SMEM_OK);
    ASSERT_EQ(memspan_transfer_post(bad), SMEM_OK);
    failed.last.get_future().get();
    EXPECT_EQ(failed.code, SMEM_NOT_EXIST);
    EXPECT_EQ(memspan_transfer_destroy(bad), SMEM_OK);
  });
}

TEST(TransRequestTest, ADescriptorTellsOfTheEnd) {
  with_both(no_target, [](smem_trans_t handle, unsigned char* memory, unsigned char* remote, int) {
    const auto request = write_request(handle, memory, remote, kBytes);
    int descriptor = -1;
    ASSERT_EQ(memspan_transfer_event(request, &descriptor), SMEM_OK);
    pollfd polled{descriptor, POLLIN, 0};
    EXPECT_EQ(poll(&polled, 1, 0), 0);
    for (int round = 0; round < 3; ++round) {
      ASSERT_EQ(memspan_transfer_post(request), SMEM_OK);
      ASSERT_EQ(poll(&polled, 1, static_cast<int>(kLong)), 1);
      EXPECT_EQ(memspan_transfer_test(request), SMEM_OK);
      EXPECT_EQ(poll(&polled, 1, 0), 1);
    }
  });
}

TEST(TransRequestTest, TellsTheFailedPieceAndHowManyWereMoved) {
  with_both(no_target, [](smem_trans_t handle, unsigned char* memory, unsigned char* remote, int) {
    std::vector<void*> local, there;
    std::vector<std::size_t> sizes(3000, 8);
    for (int i = 0; i < 3000; ++i) {
      local.push_back(memory + 8 * i);
      there.push_back(remote + 16 * i);
    }
    there[2222] = remote - 8;
    memspan_transfer_t request = nullptr;
    ASSERT_EQ(memspan_transfer_prepare(handle, MEMSPAN_TRANSFER_WRITE, kTarget, local.data(),
                                       there.data(), sizes.data(), 3000, &request),
              SMEM_OK);
    ASSERT_EQ(memspan_transfer_post(request), SMEM_OK);
    EXPECT_EQ(memspan_transfer_wait(request, kLong), SMEM_NOT_EXIST);
    EXPECT_TRUE(says("piece 2222"));
    EXPECT_EQ(result_of(request).code, SMEM_NOT_EXIST);
    EXPECT_EQ(result_of(request).pieces, 2222u);
    unsigned char back[24];
    ASSERT_EQ(smem_trans_read(handle, back, kTarget, remote + 16 * 2221, 24), SMEM_OK);
    EXPECT_EQ(std::memcmp(back, memory + 8 * 2221, 8), 0);
    EXPECT_TRUE(all_are(back + 16, 8, 7));
    // A page of ours that is not there, far behind the first share.
    auto* large = lone_pages(kBytes, 1);
    ASSERT_EQ(munmap(large + kBytes - 4096, 4096), 0);
    const auto faulty = write_request(handle, large, remote, kBytes);
    ASSERT_EQ(memspan_transfer_post(faulty), SMEM_OK);
    EXPECT_EQ(memspan_transfer_wait(faulty, kLong), SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("piece 0"));
    EXPECT_EQ(result_of(faulty).pieces, 0u);
    const auto nobody = write_request(handle, memory, remote, 8, "127.0.0.1:9");
    ASSERT_EQ(memspan_transfer_post(nobody), SMEM_OK);
    EXPECT_EQ(memspan_transfer_wait(nobody, kLong), SMEM_NOT_EXIST);
  });
}

// After a cancellation the source may change: nothing of that arrives.
TEST(TransRequestTest, ACancelledRequestTouchesNothingAnyMore) {
  with_both(no_target, [](smem_trans_t handle, unsigned char* memory, unsigned char* remote, int) {
    auto* back = fresh_pages(kBytes, 0);
    const auto request = write_request(handle, memory, remote, kBytes);
    for (int round = 0; round < 50; ++round) {
      std::memset(memory, 1, kBytes);
      ASSERT_EQ(memspan_transfer_post(request), SMEM_OK);
      if (round % 2 == 0) std::this_thread::yield();
      ASSERT_EQ(memspan_transfer_cancel(request), SMEM_OK);
      const int code = memspan_transfer_test(request);
      EXPECT_TRUE(code == SMEM_OK || code == MEMSPAN_TRANSFER_CANCELLED) << code;
      std::memset(memory, 2, kBytes);
      ASSERT_EQ(smem_trans_read(handle, back, kTarget, remote, kBytes), SMEM_OK);
      EXPECT_EQ(std::memchr(back, 2, kBytes), nullptr) << "in round " << round;
    }
    ASSERT_EQ(memspan_transfer_post(request), SMEM_OK);
    EXPECT_EQ(memspan_transfer_destroy(request), SMEM_OK);
  });
}

TEST(TransRequestTest, MessagesAndCountersComeAfterTheData) {
  constexpr int kRounds = 300;
  constexpr std::size_t kLarge = 100'000;
  with_both(
      [](smem_trans_t handle, unsigned char* memory, int wire) {
        int descriptor = -1;
        ASSERT_EQ(memspan_transfer_messages_event(handle, &descriptor), SMEM_OK);
        for (int round = 1; round <= kRounds; ++round) {
          memspan_transfer_message_t message;
          if (round % 2 == 0) {
            ASSERT_EQ(
                memspan_transfer_wait_counter(handle, 5, static_cast<unsigned>(3 * round), kLong),
                SMEM_OK);
          } else {
            pollfd polled{descriptor, POLLIN, 0};
            ASSERT_EQ(poll(&polled, 1, static_cast<int>(kLong)), 1);
          }
          const auto value = static_cast<unsigned char>(round);
          ASSERT_TRUE(all_are(memory, kLarge, value)) << round;
          ASSERT_EQ(memspan_transfer_receive(handle, &message, kLong), SMEM_OK);
          EXPECT_STREQ(message.sender, kInitiator);
          ASSERT_EQ(message.bytes, sizeof round);
          EXPECT_EQ(std::memcmp(message.message, &round, sizeof round), 0);
          std::uint64_t count = 0;
          ASSERT_EQ(
              memspan_transfer_wait_counter(handle, 5, static_cast<unsigned>(3 * round), kLong),
              SMEM_OK);
          ASSERT_EQ(memspan_transfer_counter(handle, 5, &count), SMEM_OK);
          EXPECT_EQ(count, static_cast<unsigned>(3 * round));
          EXPECT_EQ(memspan_transfer_receive(handle, &message, 0), MEMSPAN_TRANSFER_PENDING);
          say(wire, 'n');
        }
        EXPECT_EQ(memspan_transfer_wait_counter(handle, 5, 10'000, 20), SMEM_TIMEOUT);
        EXPECT_TRUE(says("counter 5 is 900"));
        EXPECT_EQ(memspan_transfer_wait_counter(handle, 1024, 0, 0), SMEM_INVALID_PARAM);
      },
      [](smem_trans_t handle, unsigned char* memory, unsigned char* remote, int wire) {
        const auto request = write_request(handle, memory, remote, kLarge);
        ASSERT_EQ(memspan_transfer_set_counter(request, 5, 3), SMEM_OK);
        EXPECT_EQ(memspan_transfer_set_counter(request, 1024, 3), SMEM_INVALID_PARAM);
        EXPECT_EQ(memspan_transfer_set_message(request, memory, 257), SMEM_INVALID_PARAM);
        for (int round = 1; round <= kRounds; ++round) {
          std::memset(memory, round, kLarge);
          ASSERT_EQ(memspan_transfer_set_message(request, &round, sizeof round), SMEM_OK);
          ASSERT_EQ(memspan_transfer_post(request), SMEM_OK);
          ASSERT_EQ(memspan_transfer_wait(request, kLong), SMEM_OK) << smem_get_last_err_msg();
          hear<char>(wire);
        }
      });
}

void note_peer(const char* peer, void* user) {
  static_cast<std::promise<std::string>*>(user)->set_value(peer);
}

TEST(TransRequestTest, ADeadPeerEndsRequestsAndIsTold) {
  Store store;
  Wire wire, control;
  Side target([&] {
    const auto handle = create(store.url(), kTarget);
    offer_pages(handle, kBytes, wire.left());
    hear<char>(wire.left());
  });
  Side initiator([&] {
    const auto handle = create(store.url(), kInitiator);
    std::promise<std::string> down;
    ASSERT_EQ(smem_trans_set_peer_down_callback(handle, note_peer, &down), SMEM_OK);
    auto* remote = hear<unsigned char*>(wire.right());
    auto* memory = fresh_pages(kBytes, 1);
    const auto request = write_request(handle, memory, remote, 8);
    // Fills the mailbox, so that the request waits for a process that will not come.
    ASSERT_EQ(memspan_transfer_set_message(request, "", 0), SMEM_OK);
    int code = SMEM_OK;
    do {
      ASSERT_EQ(memspan_transfer_post(request), SMEM_OK);
      code = memspan_transfer_wait(request, 300);
    } while (code == SMEM_OK);
    ASSERT_EQ(code, SMEM_TIMEOUT);
    say(control.left(), 'k');
    EXPECT_EQ(memspan_transfer_wait(request, kLong), SMEM_NOT_CONNECTED);
    EXPECT_EQ(down.get_future().get(), kTarget);
    ASSERT_EQ(memspan_transfer_post(request), SMEM_OK);
    EXPECT_EQ(memspan_transfer_wait(request, kLong), SMEM_NOT_CONNECTED);
    smem_trans_destroy(handle, 0);
    EXPECT_EQ(memspan_transfer_post(request), SMEM_NOT_STARTED);
    EXPECT_EQ(memspan_transfer_test(request), SMEM_NOT_CONNECTED);
    EXPECT_EQ(memspan_transfer_destroy(request), SMEM_OK);
  });
  hear<char>(control.right());
  target.kill();
  initiator.join();
}

TEST(TransRequestTest, APeerThatIsDestroyedIsToldToo) {
  Store store;
  Wire wire;
  Side target([&] {
    const auto handle = create(store.url(), kTarget);
    auto* memory = fresh_pages(4096, 7);
    EXPECT_EQ(smem_trans_register_mem(handle, memory, 4096, 0), SMEM_OK);
    say(wire.left(), memory);
    hear<char>(wire.left());
    smem_trans_uninit(0);
    hear<char>(wire.left());  // the process goes on
  });
  Side initiator([&] {
    const auto handle = create(store.url(), kInitiator);
    std::promise<std::string> down, never;
    EXPECT_EQ(smem_trans_set_peer_down_callback(handle, note_peer, &never), SMEM_OK);
    EXPECT_EQ(smem_trans_set_peer_down_callback(handle, nullptr, nullptr), SMEM_OK);
    ASSERT_EQ(smem_trans_set_peer_down_callback(handle, note_peer, &down), SMEM_OK);
    auto* remote = hear<unsigned char*>(wire.right());
    unsigned char byte = 1;
    ASSERT_EQ(smem_trans_write(handle, &byte, kTarget, remote, 1), SMEM_OK);
    say(wire.right(), 'e');
    EXPECT_EQ(down.get_future().get(), kTarget);
    EXPECT_EQ(smem_trans_write(handle, &byte, kTarget, remote, 1), SMEM_NOT_EXIST);
    EXPECT_TRUE(says("destroyed"));
    EXPECT_EQ(never.get_future().wait_for(std::chrono::seconds(0)), std::future_status::timeout);
    smem_trans_destroy(handle, 0);
  });
  initiator.join();
}

TEST(TransRequestTest, TheEndOfAnEndpointEndsItsWaits) {
  Store store;
  Side alone([&] {
    const auto handle = create(store.url(), kTarget);
    std::thread receiver([&] {
      memspan_transfer_message_t message;
      const int code = memspan_transfer_receive(handle, &message, MEMSPAN_TRANSFER_FOREVER);
      // The latter when it came to the call after the end.
      EXPECT_TRUE(code == SMEM_NOT_STARTED || code == SMEM_INVALID_PARAM) << code;
    });
    std::thread waiter([&] {
      const int code = memspan_transfer_wait_counter(handle, 0, 1, MEMSPAN_TRANSFER_FOREVER);
      EXPECT_TRUE(code == SMEM_NOT_STARTED || code == SMEM_INVALID_PARAM) << code;
    });
    smem_trans_destroy(handle, 0);
    receiver.join();
    waiter.join();
  });
  alone.join();
}

void destroy_endpoint(memspan_transfer_t, std::int32_t, void* user) {
  auto* endpoint = static_cast<std::pair<smem_trans_t, std::promise<int>>*>(user);
  smem_trans_destroy(endpoint->first, 0);
  endpoint->second.set_value(smem_get_last_err_code());
}

TEST(TransRequestTest, TheEndOfAnEndpointEndsItsRequests) {
  Store store;
  Side alone([&] {
    const auto target = create(store.url(), kTarget);
    const auto handle = create(store.url(), kInitiator);
    auto* memory = fresh_pages(4096, 1);
    EXPECT_EQ(smem_trans_register_mem(target, memory, 4096, 0), SMEM_OK);
    const auto request = write_request(handle, memory, memory + 2048, 8);
    ASSERT_EQ(memspan_transfer_set_message(request, "m", 1), SMEM_OK);
    int code = SMEM_OK;
    do {
      ASSERT_EQ(memspan_transfer_post(request), SMEM_OK);
      code = memspan_transfer_wait(request, 300);
    } while (code == SMEM_OK);
    std::thread waiter([&] {
      EXPECT_EQ(memspan_transfer_wait(request, kLong), SMEM_NOT_STARTED);
      EXPECT_TRUE(says("destroyed"));
    });
    smem_trans_destroy(handle, 0);
    waiter.join();
    EXPECT_EQ(memspan_transfer_post(request), SMEM_NOT_STARTED);
  });
  alone.join();
}

TEST(TransRequestTest, AnEndpointIsNotDestroyedByItsCallback) {
  with_both(no_target, [](smem_trans_t handle, unsigned char* memory, unsigned char* remote, int) {
    std::pair<smem_trans_t, std::promise<int>> endpoint(handle, std::promise<int>());
    const auto request = write_request(handle, memory, remote, 8);
    ASSERT_EQ(memspan_transfer_set_callback(request, destroy_endpoint, &endpoint), SMEM_OK);
    ASSERT_EQ(memspan_transfer_post(request), SMEM_OK);
    EXPECT_EQ(endpoint.second.get_future().get(), SMEM_RES_IN_USE);
    EXPECT_EQ(smem_trans_write(handle, memory, kTarget, remote, 1), SMEM_OK);
  });
}

}  // namespace
}  // namespace trans
