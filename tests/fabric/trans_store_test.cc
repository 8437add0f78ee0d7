// SPDX-License-Identifier: Apache-2.0
// Endpoints whose store is killed, and comes back or does not.
#include <memspan/transfer.h>
#include <smem/host/smem.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "fabric/trans.h"

namespace trans {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kBytes = 1 << 16;
constexpr const char* kThird = "127.0.0.1:6003";
// A transfer that waited for the store would take 5 s.
constexpr auto kNoPause = milliseconds(2500);

// An endpoint with registered memory of both kinds, until it is told to end.
void run_target(const std::string& url, const char* name, int wire) {
  const auto handle = create(url.c_str(), name);
  offer_pages(handle, kBytes, wire);
  say(wire, static_cast<unsigned char*>(smem_trans_malloc(handle, kBytes)));
  hear<char>(wire);
  smem_trans_destroy(handle, 0);
}

struct Memory {
  unsigned char* plain;
  unsigned char* mapped;
};
Memory hear_memory(int wire) {
  auto* plain = hear<unsigned char*>(wire);
  return {plain, hear<unsigned char*>(wire)};
}

const unsigned char kSource[kBytes] = {9};

int write_to(smem_trans_t handle, const char* peer, unsigned char* there) {
  return smem_trans_write(handle, kSource, peer, there, kBytes);
}

// So many transfers, each of which succeeds without a pause.
void expect_traffic(smem_trans_t handle, const Memory& remote, int rounds = 200) {
  for (int i = 0; i < rounds; ++i) {
    const auto begin = Clock::now();
    ASSERT_EQ(write_to(handle, kTarget, i % 2 == 0 ? remote.plain : remote.mapped), SMEM_OK)
        << smem_get_last_err_msg();
    ASSERT_LT(Clock::now() - begin, kNoPause);
  }
}

// Until the endpoint is at the store, be it again.
void reach(smem_trans_t handle, const char* peer) {
  const auto end = Clock::now() + seconds(30);
  int code = SMEM_OK;
  while ((code = memspan_transfer_reach(handle, peer)) != SMEM_OK && Clock::now() < end)
    std::this_thread::sleep_for(milliseconds(2));
  ASSERT_EQ(code, SMEM_OK) << smem_get_last_err_msg();
}

// Lines of this process's log that have the words.
std::atomic<int> lines_with_words{0};
const char* words_of_lines = "";
void count_lines(const char* words) {
  words_of_lines = words;
  smem_set_extern_logger([](int, const char* line) {
    std::fprintf(stderr, "%s\n", line);
    if (std::strstr(line, words_of_lines) != nullptr) ++lines_with_words;
  });
}
void await_lines(int count) {
  const auto end = Clock::now() + seconds(30);
  while (lines_with_words < count && Clock::now() < end)
    std::this_thread::sleep_for(milliseconds(2));
  ASSERT_GE(lines_with_words, count) << words_of_lines;
}

TEST(TransStoreTest, TransfersGoOnAndNewPeersComeWhenTheStoreIsBack) {
  Store store;
  Wire target_wire, third_wire, control;
  Side target([&] { run_target(store.url(), kTarget, target_wire.left()); });
  Side initiator([&] {
    count_lines("the store at");  // is lost, is back
    const auto handle = create(store.url(), kInitiator);
    const Memory remote = hear_memory(target_wire.right());
    expect_traffic(handle, remote);
    for (int loss = 0; loss < 2; ++loss) {
      meet(control.left());  // the store is killed
      await_lines(2 * loss + 1);
      expect_traffic(handle, remote);
      meet(control.left());  // and back
      expect_traffic(handle, remote);
      await_lines(2 * loss + 2);
    }
    meet(control.left());
    const Memory third = hear_memory(third_wire.right());
    reach(handle, kThird);
    EXPECT_EQ(write_to(handle, kThird, third.plain), SMEM_OK) << smem_get_last_err_msg();
    EXPECT_EQ(write_to(handle, kThird, third.mapped), SMEM_OK) << smem_get_last_err_msg();
    expect_traffic(handle, remote);
    say(control.left(), remote);
    say(third_wire.right(), 'e');
    hear<char>(control.left());
    say(target_wire.right(), 'e');
    smem_trans_destroy(handle, 0);
  });
  for (int loss = 1; loss <= 2; ++loss) {
    hear<char>(control.right());
    store.kill();
    say(control.right(), 'k');
    hear<char>(control.right());
    store.start();
    say(control.right(), 'b');
  }
  const auto back = Clock::now();
  Wire fourth_wire;
  Side third([&] { run_target(store.url(), kThird, third_wire.left()); });
  meet(control.right());
  const auto remote = hear<Memory>(control.right());
  Side fourth([&] {
    const auto handle = create(store.url(), "127.0.0.1:6004");
    reach(handle, kTarget);
    EXPECT_EQ(write_to(handle, kTarget, remote.plain), SMEM_OK) << smem_get_last_err_msg();
    std::printf("a new peer transfers %.3f s after the store's return\n",
                std::chrono::duration<double>(Clock::now() - back).count());
    EXPECT_EQ(write_to(handle, kTarget, remote.mapped), SMEM_OK) << smem_get_last_err_msg();
    reach(handle, kInitiator);
    meet(fourth_wire.left());
  });
  meet(fourth_wire.right());
  fourth.join();
  say(control.right(), 'e');
  initiator.join();
  target.join();
  third.join();
}

// What goes on around an initiator that meets `control` three times: the store is killed, the
// target ends, and both are started again.
void replace_both(Store& store, Wire& control, const std::function<void()>& end_target,
                  Side& initiator, Wire& second_wire) {
  hear<char>(control.right());
  store.kill();
  say(control.right(), 'k');
  hear<char>(control.right());
  end_target();
  say(control.right(), 'd');
  hear<char>(control.right());
  store.start();
  Side second([&] { run_target(store.url(), kTarget, second_wire.left()); });
  say(control.right(), 'b');
  initiator.join();
  second.join();
}

TEST(TransStoreTest, APeerThatDiesWhileTheStoreIsAwayIsNamedAndItsNameIsFree) {
  Store store;
  Wire first_wire, second_wire, control;
  Side first([&] { run_target(store.url(), kTarget, first_wire.left()); });
  Side initiator([&] {
    count_lines("is lost, and this process tries to connect to it again");
    const auto handle = create(store.url(), kInitiator);
    const Memory before = hear_memory(first_wire.right());
    expect_traffic(handle, before, 2);
    meet(control.left());  // the store is killed
    await_lines(1);
    meet(control.left());  // the target, too
    const auto begin = Clock::now();
    int code = SMEM_OK;
    while (code == SMEM_OK) code = write_to(handle, kTarget, before.plain);
    EXPECT_EQ(code, SMEM_NOT_CONNECTED) << smem_get_last_err_msg();
    EXPECT_TRUE(says(kTarget));
    EXPECT_EQ(write_to(handle, kTarget, before.plain), SMEM_NOT_CONNECTED);
    EXPECT_TRUE(says("has died"));
    EXPECT_LT(Clock::now() - begin, kNoPause);
    meet(control.left());  // the store is back, and a new one has the name
    const Memory after = hear_memory(second_wire.right());
    reach(handle, kTarget);
    EXPECT_EQ(write_to(handle, kTarget, after.plain), SMEM_OK) << smem_get_last_err_msg();
    EXPECT_EQ(write_to(handle, kTarget, after.mapped), SMEM_OK) << smem_get_last_err_msg();
    say(second_wire.right(), 'e');
    smem_trans_destroy(handle, 0);
  });
  replace_both(
      store, control, [&] { first.kill(); }, initiator, second_wire);
}

std::size_t threads_here() {
  return trans::entries_of("/proc/self/task");
}

// The endpoint ends properly without the store, after its peer has ended: none of its threads
// stays, so none ends itself when the store returns.
void end_without_the_store(const std::function<void(Side&, int wire)>& end_target) {
  Store store;
  Wire first_wire, second_wire, control;
  Side first([&] { run_target(store.url(), kTarget, first_wire.left()); });
  Side initiator([&] {
    count_lines("is lost, and this process tries to connect to it again");
    smem_trans_destroy(create(store.url(), kThird), 0);
    smem_trans_uninit(0);
    const std::size_t threads = threads_here();
    const auto handle = create(store.url(), kInitiator);
    const Memory before = hear_memory(first_wire.right());
    expect_traffic(handle, before, 2);
    meet(control.left());  // the store is killed
    await_lines(1);
    meet(control.left());  // and the target has ended
    while (write_to(handle, kTarget, before.plain) == SMEM_OK) {
    }
    EXPECT_NE(write_to(handle, kTarget, before.mapped), SMEM_OK);
    smem_trans_destroy(handle, 0);
    smem_trans_uninit(0);
    const auto end = Clock::now() + seconds(5);
    while (threads_here() > threads && Clock::now() < end)
      std::this_thread::sleep_for(milliseconds(2));
    EXPECT_EQ(threads_here(), threads);
    meet(control.left());  // the store is back, and a new target has the name
    const auto again = create(store.url(), kInitiator);
    const Memory after = hear_memory(second_wire.right());
    reach(again, kTarget);
    expect_traffic(again, after, 2);
    say(second_wire.right(), 'e');
    smem_trans_destroy(again, 0);
  });
  replace_both(
      store, control, [&] { end_target(first, first_wire.right()); }, initiator, second_wire);
}

TEST(TransStoreTest, AnEndpointWhosePeerWasKilledEndsWithoutTheStore) {
  end_without_the_store([](Side& target, int) { target.kill(); });
}

TEST(TransStoreTest, AnEndpointWhosePeerHasEndedEndsWithoutTheStore) {
  end_without_the_store([](Side& target, int wire) {
    say(wire, 'e');
    target.join();
  });
}

// Nobody transfers with it: it is the callback that tells, at once on one host, and some seconds
// after the store's return where only a message would.
std::atomic<int> downs{0};
TEST(TransStoreTest, ADeathThatNobodyTransfersWithIsTold) {
  Store store;
  Wire wire, control;
  Side target([&] { run_target(store.url(), kTarget, wire.left()); });
  Side initiator([&] {
    const auto handle = create(store.url(), kInitiator);
    const auto down = [](const char* peer, void*) {
      EXPECT_STREQ(peer, kTarget);
      ++downs;
    };
    EXPECT_EQ(smem_trans_set_peer_down_callback(handle, down, nullptr), SMEM_OK);
    expect_traffic(handle, hear_memory(wire.right()), 2);
    meet(control.left());
    const auto end = Clock::now() + seconds(30);
    while (downs == 0 && Clock::now() < end) std::this_thread::sleep_for(milliseconds(2));
    EXPECT_EQ(downs, 1);
    smem_trans_destroy(handle, 0);
  });
  hear<char>(control.right());
  store.kill();
  target.kill();
  store.start();
  say(control.right(), 'd');
  initiator.join();
}

TEST(TransStoreTest, WhatNeedsTheStoreWaitsAndThenSaysWhy) {
  Store store;
  Wire wire, control;
  Side target([&] { run_target(store.url(), kTarget, wire.left()); });
  Side initiator([&] {
    count_lines("is lost, and this process tries to connect to it again");
    const auto handle = create(store.url(), kInitiator);
    const Memory remote = hear_memory(wire.right());
    expect_traffic(handle, remote, 2);
    meet(control.left());
    await_lines(1);
    // Registering needs no store.
    offer_pages(handle, kBytes, control.left());
    EXPECT_NE(smem_trans_malloc(handle, kBytes), nullptr);
    // A request to somebody unknown waits, and others go on meanwhile.
    unsigned char* const source = fresh_pages(kBytes, 3);
    const auto prepare = [&](const char* peer) {
      void* const here = source;
      void* const there = remote.plain;
      const std::size_t bytes = kBytes;
      memspan_transfer_t request = nullptr;
      EXPECT_EQ(memspan_transfer_prepare(handle, MEMSPAN_TRANSFER_WRITE, peer, &here, &there,
                                         &bytes, 1, &request),
                SMEM_OK)
          << smem_get_last_err_msg();
      return request;
    };
    const auto unknown = prepare(kThird);
    EXPECT_EQ(memspan_transfer_post(unknown), SMEM_OK);
    for (int i = 0; i < 50; ++i) {
      const auto known = prepare(kTarget);
      EXPECT_EQ(memspan_transfer_post(known), SMEM_OK);
      EXPECT_EQ(memspan_transfer_wait(known, 2500), SMEM_OK) << smem_get_last_err_msg();
      memspan_transfer_destroy(known);
    }
    const auto begin = Clock::now();
    EXPECT_EQ(write_to(handle, kThird, remote.plain), SMEM_NOT_CONNECTED);
    EXPECT_GT(Clock::now() - begin, seconds(4));
    for (const char* words : {kThird, store.url(), "was lost ", "attempts to connect failed"})
      EXPECT_TRUE(says(words));
    EXPECT_EQ(memspan_transfer_wait(unknown, 30000), SMEM_NOT_CONNECTED);
    // A second endpoint waits as long as it was told.
    smem_trans_config_t config;
    smem_trans_config_init(&config);
    config.initTimeout = 1;
    EXPECT_EQ(smem_trans_create(store.url(), "127.0.0.1:6005", &config), nullptr);
    for (const char* words : {store.url(), "was lost ", "attempts to connect failed"})
      EXPECT_TRUE(says(words));
    // What waits when the store comes back goes on.
    EXPECT_EQ(memspan_transfer_post(unknown), SMEM_OK);
    meet(control.left());
    EXPECT_EQ(memspan_transfer_wait(unknown, 30000), SMEM_NOT_EXIST) << smem_get_last_err_msg();
    EXPECT_NE(create(store.url(), "127.0.0.1:6005"), nullptr);
    memspan_transfer_destroy(unknown);
    say(wire.right(), 'e');
  });
  hear<char>(control.right());
  store.kill();
  say(control.right(), 'k');
  hear<unsigned char*>(control.right());
  hear<char>(control.right());
  store.start();
  say(control.right(), 'b');
  initiator.join();
  target.join();
}

// A holder that stood still while the store was away comes back to find its name taken.
TEST(TransStoreTest, ANameThatWasTakenIsToldOnceAndComesBackWhenItIsFree) {
  Store store;
  Wire holder_wire, taker_wire, control;
  Side holder([&] {
    count_lines("has lost its name");
    const int wire = holder_wire.left();
    const auto handle = create(store.url(), kTarget);
    offer_pages(handle, kBytes, wire);
    say(wire, static_cast<unsigned char*>(smem_trans_malloc(handle, kBytes)));
    hear<char>(wire);
    await_lines(1);
    say(wire, 't');
    hear<char>(wire);
    EXPECT_EQ(lines_with_words, 1);
    smem_trans_destroy(handle, 0);
  });
  const Memory memory = hear_memory(holder_wire.right());
  holder.signal(SIGSTOP);
  store.kill();
  store.start();
  Side taker([&] { run_target(store.url(), kTarget, taker_wire.left()); });
  const Memory taken = hear_memory(taker_wire.right());
  holder.signal(SIGCONT);
  meet(holder_wire.right());
  Side initiator([&] {
    const auto handle = create(store.url(), kInitiator);
    EXPECT_EQ(write_to(handle, kTarget, taken.plain), SMEM_OK) << smem_get_last_err_msg();
    EXPECT_EQ(write_to(handle, kTarget, taken.mapped), SMEM_OK) << smem_get_last_err_msg();
    meet(control.left());  // the taker ends
    reach(handle, kTarget);
    EXPECT_EQ(write_to(handle, kTarget, memory.plain), SMEM_OK) << smem_get_last_err_msg();
    smem_trans_destroy(handle, 0);
  });
  hear<char>(control.right());
  say(taker_wire.right(), 'e');
  taker.join();
  say(control.right(), 'e');
  initiator.join();
  say(holder_wire.right(), 'e');
  holder.join();
}

TEST(TransStoreTest, TheNextThatMayHostTheStoreDoes) {
  std::string url;
  {
    Store place;  // a port that is free again
    url = place.url();
  }
  Wire host_wire, next_wire, control;
  const auto run = [&](const char* name, int wire) {
    smem_trans_config_t config;
    smem_trans_config_init(&config);
    config.role = SMEM_TRANS_BOTH;
    config.startConfigServer = true;
    EXPECT_EQ(smem_trans_init(&config), SMEM_OK);
    const auto handle = smem_trans_create(url.c_str(), name, &config);
    EXPECT_NE(handle, nullptr) << smem_get_last_err_msg();
    offer_pages(handle, kBytes, wire);
    hear<char>(wire);
    smem_trans_destroy(handle, 0);
  };
  Side host([&] { run(kInitiator, host_wire.left()); }, 0);  // where the address is
  hear<unsigned char*>(host_wire.right());
  Side next([&] { run(kTarget, next_wire.left()); }, 0);
  auto* there = hear<unsigned char*>(next_wire.right());
  host.kill();
  Side third([&] {
    const auto handle = create(url.c_str(), kThird);
    reach(handle, kTarget);
    EXPECT_EQ(write_to(handle, kTarget, there), SMEM_OK) << smem_get_last_err_msg();
    smem_trans_destroy(handle, 0);
  });
  third.join();
  say(next_wire.right(), 'e');
  next.join();
}

TEST(TransStoreTest, AStoreThatTheProgramEndedIsNotHostedAgain) {
  std::string url;
  {
    Store place;
    url = place.url();
  }
  Side alone(
      [&] {
        count_lines("is lost, and this process tries to connect to it again");
        smem_trans_config_t config;
        smem_trans_config_init(&config);
        config.startConfigServer = true;
        EXPECT_EQ(smem_trans_init(&config), SMEM_OK);
        const auto handle = smem_trans_create(url.c_str(), kTarget, &config);
        EXPECT_NE(handle, nullptr) << smem_get_last_err_msg();
        EXPECT_EQ(smem_destroy_config_store(url.c_str()), SMEM_OK);
        await_lines(1);
        smem_trans_config_t brief;
        smem_trans_config_init(&brief);
        brief.initTimeout = 1;
        EXPECT_EQ(smem_trans_create(url.c_str(), kThird, &brief), nullptr);
        EXPECT_TRUE(says("attempts to connect failed"));
        EXPECT_EQ(smem_create_config_store(url.c_str()), SMEM_OK) << smem_get_last_err_msg();
        EXPECT_EQ(memspan_transfer_reach(handle, kThird), SMEM_NOT_EXIST)
            << smem_get_last_err_msg();
      },
      0);
  alone.join();
}

TEST(TransStoreTest, AStoreThatMovesIsFoundAtTheNextAddressOfTheList) {
  Store first, second;
  const std::string both = std::string(first.url()) + "," + second.url();
  second.kill();
  Wire target_wire, control;
  Side target([&] { run_target(both, kTarget, target_wire.left()); });
  Side initiator([&] {
    const auto handle = create(both.c_str(), kInitiator);
    const Memory remote = hear_memory(target_wire.right());
    expect_traffic(handle, remote, 2);
    meet(control.left());
    expect_traffic(handle, remote);
    say(control.left(), remote);
    hear<char>(control.left());
    say(target_wire.right(), 'e');
  });
  hear<char>(control.right());
  first.kill();
  second.start();
  say(control.right(), 'b');
  const auto remote = hear<Memory>(control.right());
  Side third([&] {
    const auto handle = create(both.c_str(), kThird);
    reach(handle, kTarget);
    EXPECT_EQ(write_to(handle, kTarget, remote.plain), SMEM_OK) << smem_get_last_err_msg();
    smem_trans_config_t config;
    smem_trans_config_init(&config);
    config.startConfigServer = true;
    EXPECT_EQ(smem_trans_create((both + "x").c_str(), kThird, &config), nullptr);
    const std::string others = both + ",tcp://127.0.0.1:1";
    EXPECT_EQ(smem_trans_create(others.c_str(), kThird, &config), nullptr);
    EXPECT_EQ(smem_get_last_err_code(), SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("a store that a member hosts has one"));
  });
  third.join();
  say(control.right(), 'e');
  initiator.join();
  target.join();
}

}  // namespace
}  // namespace trans
