// SPDX-License-Identifier: Apache-2.0
// Single pieces, which an endpoint moves without a look at the registrations while the peer and the
// registered memory are those of the last piece: whatever changes between two pieces counts.
#include <smem/host/smem_trans.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "fabric/trans.h"

namespace trans {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kBytes = 4 * kPage;

// The target's memory of both kinds, of kBytes.
struct Memory {
  unsigned char* plain;
  unsigned char* mapped;
  std::array<unsigned char*, 2> both() const { return {plain, mapped}; }
};

Memory offer(smem_trans_t handle, int wire) {
  Memory memory{offer_pages(handle, kBytes, wire),
                static_cast<unsigned char*>(smem_trans_malloc(handle, kBytes))};
  say(wire, memory.mapped);
  return memory;
}

Memory hear_memory(int wire) {
  auto* plain = hear<unsigned char*>(wire);
  return {plain, hear<unsigned char*>(wire)};
}

int write_byte(smem_trans_t handle, unsigned char* there) {
  const unsigned char byte = 9;
  return smem_trans_write(handle, &byte, kTarget, there, 1);
}

// Often enough that the endpoint has found the peer, mapped its memory and moved a piece at once.
void move_often(smem_trans_t handle, unsigned char* there) {
  for (int i = 0; i < 4; ++i) ASSERT_EQ(write_byte(handle, there), SMEM_OK);
}

// The endpoint has moved pieces to both kinds; `which` is the last one.
void move_to_both(smem_trans_t handle, const Memory& memory, std::size_t which) {
  move_often(handle, memory.both()[1 - which]);
  move_often(handle, memory.both()[which]);
}

void run_target(const Store& store, int wire) {
  const auto handle = create(store.url(), kTarget);
  offer(handle, wire);
  hear<char>(wire);
  smem_trans_destroy(handle, 0);
  say(wire, 'd');
  hear<char>(wire);
}

TEST(TransSingleTest, APeerThatWasKilledIsNotWrittenTo) {
  for (const std::size_t which : {0, 1}) {
    Store store;
    Wire wire, second_wire, control;
    Side target([&] { run_target(store, wire.left()); });
    Side initiator([&] {
      const auto handle = create(store.url(), kInitiator);
      const Memory before = hear_memory(wire.right());
      move_to_both(handle, before, which);
      meet(control.left());
      // The process is gone; its end is noticed within a tick, or by the kernel's copy.
      const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(1);
      int code = SMEM_OK;
      while (code == SMEM_OK && std::chrono::steady_clock::now() < limit)
        code = write_byte(handle, before.both()[which]);
      EXPECT_EQ(code, SMEM_NOT_CONNECTED) << smem_get_last_err_msg();
      EXPECT_TRUE(says(kTarget));
      meet(control.left());
      const Memory after = hear_memory(second_wire.right());
      move_to_both(handle, after, which);
      say(second_wire.right(), 'e');
      hear<char>(second_wire.right());
      say(second_wire.right(), 'e');
    });
    hear<char>(control.right());
    target.kill();
    say(control.right(), 'm');
    hear<char>(control.right());
    Side second([&] { run_target(store, second_wire.left()); });
    say(control.right(), 'm');
    initiator.join();
    second.join();
  }
}

// By the peer, which then makes another one of the same name, and by the initiator.
TEST(TransSingleTest, AnEndpointThatWasDestroyedAndMadeAgainIsAnother) {
  for (const std::size_t which : {0, 1}) {
    Store store;
    Wire wire;
    Side target([&] {
      const int end = wire.left();
      auto handle = create(store.url(), kTarget);
      offer(handle, end);
      hear<char>(end);
      smem_trans_destroy(handle, 0);
      say(end, 'd');
      hear<char>(end);
      handle = create(store.url(), kTarget);
      offer(handle, end);
      hear<char>(end);
      smem_trans_destroy(handle, 0);
    });
    Side initiator([&] {
      const int end = wire.right();
      auto handle = create(store.url(), kInitiator);
      const Memory before = hear_memory(end);
      move_to_both(handle, before, which);
      meet(end);
      EXPECT_EQ(write_byte(handle, before.both()[which]), SMEM_NOT_EXIST);
      EXPECT_TRUE(says("destroyed"));
      say(end, 'a');
      const Memory after = hear_memory(end);
      move_to_both(handle, after, which);
      smem_trans_destroy(handle, 0);
      EXPECT_EQ(write_byte(handle, after.both()[which]), SMEM_INVALID_PARAM);
      handle = create(store.url(), kInitiator);
      move_to_both(handle, after, which);
      say(end, 'e');
      smem_trans_destroy(handle, 0);
    });
    initiator.join();
    target.join();
  }
}

TEST(TransSingleTest, WhatThePeerTakesBackIsRefusedAtOnce) {
  with_pair(
      [](smem_trans_t handle, int wire) {
        const Memory memory = offer(handle, wire);
        hear<char>(wire);
        EXPECT_EQ(smem_trans_deregister_mem(handle, memory.plain), SMEM_OK);
        say(wire, 'r');
        hear<char>(wire);
        EXPECT_EQ(smem_trans_register_mem(handle, memory.plain, kBytes, 0), SMEM_OK);
        EXPECT_EQ(smem_trans_free(handle, memory.mapped), SMEM_OK);
        say(wire, 'r');
        hear<char>(wire);
        say(wire, static_cast<unsigned char*>(smem_trans_malloc(handle, kBytes)));
      },
      [](smem_trans_t handle, int wire) {
        const Memory memory = hear_memory(wire);
        move_to_both(handle, memory, 0);
        meet(wire);
        EXPECT_EQ(write_byte(handle, memory.plain), SMEM_NOT_EXIST);
        move_often(handle, memory.mapped);
        meet(wire);
        EXPECT_EQ(write_byte(handle, memory.mapped), SMEM_NOT_EXIST);
        move_often(handle, memory.plain);
        say(wire, 'm');
        move_often(handle, hear<unsigned char*>(wire));
      });
}

// Two registrations that touch, and the memory on both sides of them.
TEST(TransSingleTest, APieceIsInOneRegistration) {
  with_pair(
      [](smem_trans_t handle, int wire) {
        auto* memory = fresh_pages(kBytes, 7);
        EXPECT_EQ(smem_trans_register_mem(handle, memory + kPage, kPage, 0), SMEM_OK);
        EXPECT_EQ(smem_trans_register_mem(handle, memory + 2 * kPage, kPage, 0), SMEM_OK);
        say(wire, memory);
        hear<char>(wire);
        EXPECT_TRUE(all_are(memory, kPage, 7));
        EXPECT_TRUE(all_are(memory + 3 * kPage, kPage, 7));
      },
      [](smem_trans_t handle, int wire) {
        auto* memory = hear<unsigned char*>(wire);
        std::array<unsigned char, 2 * kPage> mine = {};
        const auto write = [&](std::size_t at, std::size_t bytes) {
          return smem_trans_write(handle, mine.data(), kTarget, memory + at, bytes);
        };
        for (const std::size_t first : {kPage, 2 * kPage}) {
          move_often(handle, memory + first);
          EXPECT_EQ(write(first, kPage), SMEM_OK);
          EXPECT_EQ(write(first - 1, 2), SMEM_NOT_EXIST);
          EXPECT_EQ(write(first, kPage + 1), SMEM_NOT_EXIST);
          EXPECT_EQ(write(first + kPage - 1, 2), SMEM_NOT_EXIST);
          EXPECT_EQ(write(first, SIZE_MAX), SMEM_NOT_EXIST);
          EXPECT_EQ(write(first, 0), SMEM_INVALID_PARAM);
          move_often(handle, memory + first + kPage - 1);
        }
        EXPECT_EQ(write(kPage, 2 * kPage), SMEM_NOT_EXIST);
        say(wire, 'e');
      });
}

// The peer unmaps a page of what it has registered: the call fails, and others still work.
TEST(TransSingleTest, MemoryThatThePeerUnmappedIsAnError) {
  with_pair(
      [](smem_trans_t handle, int wire) {
        auto* memory = lone_pages(kBytes, 7);
        EXPECT_EQ(smem_trans_register_mem(handle, memory, kBytes, 0), SMEM_OK);
        say(wire, memory);
        hear<char>(wire);
        EXPECT_EQ(munmap(memory + kPage, kPage), 0);
        say(wire, 'u');
        hear<char>(wire);
        EXPECT_TRUE(all_are(memory + 2 * kPage, 2 * kPage, 5));
      },
      [](smem_trans_t handle, int wire) {
        auto* memory = hear<unsigned char*>(wire);
        std::vector<unsigned char> mine(kBytes, 5);
        move_often(handle, memory);
        meet(wire);
        for (int i = 0; i < 2; ++i) {
          EXPECT_NE(smem_trans_write(handle, mine.data(), kTarget, memory, kBytes), SMEM_OK);
          EXPECT_TRUE(says("piece 0"));
          EXPECT_NE(smem_trans_read(handle, mine.data(), kTarget, memory, kBytes), SMEM_OK);
          std::fill(mine.begin(), mine.end(), 5);
          EXPECT_EQ(smem_trans_write(handle, mine.data(), kTarget, memory + 2 * kPage, 2 * kPage),
                    SMEM_OK)
              << smem_get_last_err_msg();
        }
        say(wire, 'e');
      });
}

TEST(TransSingleTest, MovesEveryByteAtAnyAlignment) {
  with_pair(
      [](smem_trans_t handle, int wire) {
        offer(handle, wire);
        hear<char>(wire);
      },
      [](smem_trans_t handle, int wire) {
        std::vector<unsigned char> mine(kBytes + 64), back(kBytes + 64);
        for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = static_cast<unsigned char>(i * 37);
        for (unsigned char* there : hear_memory(wire).both())
          for (const std::size_t bytes : {1, 3, 8, 255, 256, 257, 4095, 4097, 16000})
            for (const std::size_t at : {0, 1, 7, 63}) {
              ASSERT_EQ(smem_trans_write(handle, &mine[at], kTarget, there + 2 * at, bytes),
                        SMEM_OK);
              ASSERT_EQ(smem_trans_read(handle, &back[at + 1], kTarget, there + 2 * at, bytes),
                        SMEM_OK);
              ASSERT_EQ(std::memcmp(&mine[at], &back[at + 1], bytes), 0) << bytes << " at " << at;
            }
        say(wire, 'e');
      });
}

// Threads that take turns at the peer of the last piece, and at its memory.
TEST(TransSingleTest, ThreadsMoveToTwoPeersAtOnce) {
  constexpr int kThreads = 4, kRounds = 200;
  constexpr const char* kNames[] = {kTarget, "127.0.0.1:6003"};
  Store store;
  Wire wires[2];
  const auto serve = [&](int i) {
    const auto handle = create(store.url(), kNames[i]);
    offer(handle, wires[i].left());
    hear<char>(wires[i].left());
    smem_trans_destroy(handle, 0);
  };
  Side first([&] { serve(0); });
  Side second([&] { serve(1); });
  Side initiator([&] {
    const auto handle = create(store.url(), kInitiator);
    const Memory memory[] = {hear_memory(wires[0].right()), hear_memory(wires[1].right())};
    std::vector<std::thread> threads;
    for (int me = 0; me < kThreads; ++me)
      threads.emplace_back([&, me] {
        for (int i = 0; i < kRounds; ++i) {
          const int peer = (i / 8 + me) % 2;
          unsigned char* there = memory[peer].both()[static_cast<std::size_t>(i / 3) % 2] + 64 * me;
          const auto sent = static_cast<unsigned char>(i + me);
          unsigned char back = 0;
          EXPECT_EQ(smem_trans_write(handle, &sent, kNames[peer], there, 1), SMEM_OK);
          EXPECT_EQ(smem_trans_read(handle, &back, kNames[peer], there, 1), SMEM_OK);
          EXPECT_EQ(back, sent);
        }
      });
    for (auto& thread : threads) thread.join();
    for (const Wire& wire : wires) say(wire.right(), 'e');
    smem_trans_destroy(handle, 0);
  });
  initiator.join();
  first.join();
  second.join();
}

}  // namespace
}  // namespace trans
