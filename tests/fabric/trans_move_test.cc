// SPDX-License-Identifier: Apache-2.0
// What arrives: writes, reads and batches between two processes.
#include <memspan/transfer.h>
#include <sys/mman.h>

#include <cstring>
#include <vector>

#include "fabric/trans.h"

namespace trans {
namespace {

constexpr std::size_t kBytes = 1 << 20;

// One process with memory of which [kHole, kBytes - kHole) is registered, and one that is told
// where.
constexpr std::size_t kEdge = 4096 + 17;

template <typename Initiate>
void with_target(Initiate initiate) {
  Store store;
  Wire wire;
  Side target([&] {
    const auto handle = create(store.url(), kTarget, SMEM_TRANS_RECEIVER);
    auto* memory = fresh_pages(kBytes, 7);
    EXPECT_EQ(smem_trans_register_mem(handle, memory + kEdge, kBytes - 2 * kEdge, 0), SMEM_OK);
    say(wire.left(), memory);
    hear<char>(wire.left());
    EXPECT_TRUE(all_are(memory, kEdge, 7)) << "before what is registered";
    EXPECT_TRUE(all_are(memory + kBytes - kEdge, kEdge, 7)) << "after it";
    smem_trans_destroy(handle, 0);
  });
  Side initiator([&] {
    const auto handle = create(store.url(), kInitiator, SMEM_TRANS_SENDER);
    auto* remote = hear<unsigned char*>(wire.right());
    initiate(handle, remote);
    smem_trans_destroy(handle, 0);
    say(wire.right(), 'd');
  });
  initiator.join();
  target.join();
}

TEST(TransMoveTest, WritesAndReadsEverySizeAtEveryAlignment) {
  with_target([](smem_trans_t handle, unsigned char* remote) {
    std::vector<unsigned char> source(70000), back(70000);
    for (std::size_t i = 0; i < source.size(); ++i)
      source[i] = static_cast<unsigned char>(i * 31 + 1);
    unsigned char* there = remote + kEdge;
    for (const std::size_t bytes : {1, 2, 3, 8, 63, 4095, 4096, 4097, 65537}) {
      ASSERT_EQ(smem_trans_write(handle, source.data() + 3, kTarget, there, bytes), SMEM_OK)
          << smem_get_last_err_msg();
      back.assign(back.size(), 0);
      ASSERT_EQ(smem_trans_read(handle, back.data() + 1, kTarget, there, bytes), SMEM_OK);
      EXPECT_EQ(std::memcmp(back.data() + 1, source.data() + 3, bytes), 0) << bytes;
      EXPECT_EQ(back[bytes + 1], 0);
      ASSERT_EQ(smem_trans_read(handle, back.data(), kTarget, there + bytes, 1), SMEM_OK);
      EXPECT_EQ(back[0], 7) << "after " << bytes << " bytes";
      there += bytes + 1;
    }
  });
}

TEST(TransMoveTest, RefusesTheByteBeforeAndTheByteAfter) {
  with_target([](smem_trans_t handle, unsigned char* remote) {
    unsigned char byte[2] = {1, 2};
    unsigned char* const first = remote + kEdge;
    unsigned char* const end = remote + kBytes - kEdge;
    EXPECT_EQ(smem_trans_write(handle, byte, kTarget, first - 1, 1), SMEM_NOT_EXIST);
    EXPECT_TRUE(says(kTarget) && says("piece 0") && says("1 bytes"));
    EXPECT_EQ(smem_trans_write(handle, byte, kTarget, first - 1, 2), SMEM_NOT_EXIST);
    EXPECT_EQ(smem_trans_write(handle, byte, kTarget, end, 1), SMEM_NOT_EXIST);
    EXPECT_EQ(smem_trans_write(handle, byte, kTarget, end - 1, 2), SMEM_NOT_EXIST);
    EXPECT_EQ(smem_trans_read(handle, byte, kTarget, end - 1, 2), SMEM_NOT_EXIST);
    EXPECT_EQ(smem_trans_read(handle, byte, kTarget, first - 1, 2), SMEM_NOT_EXIST);
    EXPECT_EQ(byte[0], 1);
    EXPECT_EQ(smem_trans_write(handle, byte, kTarget, end - 1, SIZE_MAX), SMEM_NOT_EXIST);
    EXPECT_EQ(smem_trans_write(handle, byte, kTarget, first, 1), SMEM_OK);
    EXPECT_EQ(smem_trans_write(handle, byte, kTarget, end - 1, 1), SMEM_OK);
  });
}

TEST(TransMoveTest, MovesBatchesOfAnyLength) {
  with_target([](smem_trans_t handle, unsigned char* remote) {
    constexpr std::uint32_t kMost = 5000;
    std::vector<unsigned> source(kMost), back(kMost);
    std::vector<const void*> from(kMost), there_const(kMost);
    std::vector<void*> there(kMost), to(kMost);
    std::vector<std::size_t> sizes(kMost, sizeof(unsigned));
    for (std::uint32_t i = 0; i < kMost; ++i) {
      source[i] = 3 * i + 1;
      from[i] = &source[i];
      // Backwards and with gaps, so that nothing can be joined there.
      there[i] = remote + kEdge + 8 * (kMost - i);
      there_const[i] = there[i];
      to[i] = &back[i];
    }
    for (const std::uint32_t count : {1u, 2u, 63u, 64u, 65u, 1023u, 1024u, 1025u, kMost}) {
      back.assign(kMost, 0);
      ASSERT_EQ(
          smem_trans_batch_write(handle, from.data(), kTarget, there.data(), sizes.data(), count),
          SMEM_OK)
          << smem_get_last_err_msg();
      ASSERT_EQ(smem_trans_batch_read(handle, to.data(), kTarget, there_const.data(), sizes.data(),
                                      count),
                SMEM_OK);
      for (std::uint32_t i = 0; i < kMost; ++i) EXPECT_EQ(back[i], i < count ? 3 * i + 1 : 0);
    }
  });
}

TEST(TransMoveTest, ABatchNamesItsFirstBadPieceAndMovesThoseBefore) {
  with_target([](smem_trans_t handle, unsigned char* remote) {
    constexpr std::uint32_t kCount = 2000;
    constexpr std::uint32_t kBad = 1500;
    std::vector<unsigned> source(kCount, 0x5a5a5a5a), back(kCount);
    std::vector<const void*> from(kCount);
    std::vector<void*> there(kCount);
    std::vector<std::size_t> sizes(kCount, sizeof(unsigned));
    for (std::uint32_t i = 0; i < kCount; ++i) {
      from[i] = &source[i];
      there[i] = remote + kEdge + 4 * i;
    }
    there[kBad] = remote + kEdge - 3;
    EXPECT_EQ(
        smem_trans_batch_write(handle, from.data(), kTarget, there.data(), sizes.data(), kCount),
        SMEM_NOT_EXIST);
    EXPECT_TRUE(says("piece 1500"));
    ASSERT_EQ(smem_trans_read(handle, back.data(), kTarget, remote + kEdge, 4 * kCount), SMEM_OK);
    EXPECT_EQ(back[0], 0x5a5a5a5au);
    EXPECT_EQ(back[kBad - 1], 0x5a5a5a5au);
    EXPECT_EQ(back[kBad], 0x07070707u);
    EXPECT_EQ(back[kCount - 1], 0x07070707u);
  });
}

TEST(TransMoveTest, NamesThePieceWhoseMemoryIsNotThere) {
  with_target([](smem_trans_t handle, unsigned char* remote) {
    auto* mine = lone_pages(1 << 16, 1);
    ASSERT_EQ(munmap(mine + 8192, 4096), 0);
    const void* from[4] = {mine, mine + 4000, mine + 8000, mine + 16384};
    void* there[4] = {remote + kEdge, remote + kEdge + 64, remote + kEdge + 128,
                      remote + kEdge + 4096};
    std::size_t sizes[4] = {64, 64, 1000, 64};
    EXPECT_EQ(smem_trans_batch_write(handle, from, kTarget, there, sizes, 4), SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("piece 2") && says("of this process"));
    ASSERT_EQ(smem_trans_write(handle, mine, kTarget, there[0], 64), SMEM_OK);
  });
}

// The same where the peer's memory is mapped, which no system call checks: for one piece, in a
// batch of which those before are there, and posted.
TEST(TransMoveTest, NamesThePieceWhoseMemoryIsNotThereForLibraryMemory) {
  Store store;
  Wire wire;
  Side target([&] {
    const auto handle = create(store.url(), kTarget);
    auto* memory = static_cast<unsigned char*>(smem_trans_malloc(handle, kBytes));
    say(wire.left(), memory);
    hear<char>(wire.left());
    EXPECT_EQ(memory[0], 1);
    EXPECT_EQ(memory[1], 1);
    EXPECT_TRUE(all_are(memory + 2, kBytes - 2, 0));
    smem_trans_destroy(handle, 0);
  });
  Side initiator([&] {
    const auto handle = create(store.url(), kInitiator);
    auto* remote = hear<unsigned char*>(wire.right());
    auto* gone = lone_pages(1 << 16, 1);
    auto* mine = fresh_pages(4096, 1);
    auto* closed = fresh_pages(4096, 1);
    ASSERT_EQ(mprotect(closed, 4096, PROT_NONE), 0);
    ASSERT_EQ(smem_trans_write(handle, mine, kTarget, remote, 1), SMEM_OK);
    ASSERT_EQ(munmap(gone, 1 << 16), 0);
    EXPECT_EQ(smem_trans_write(handle, gone, kTarget, remote, 8), SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("piece 0") && says("there is no memory at") && says("of this process"));
    EXPECT_EQ(smem_trans_read(handle, gone, kTarget, remote, 1 << 16), SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("there is no memory at"));
    ASSERT_EQ(mprotect(mine, 4096, PROT_READ), 0);
    EXPECT_EQ(smem_trans_read(handle, mine, kTarget, remote, 8), SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("may not be written"));

    const void* from[3] = {mine, mine, closed};
    void* there[3] = {remote, remote + 1, remote + 2};
    std::size_t sizes[3] = {1, 1, 8};
    EXPECT_EQ(smem_trans_batch_write(handle, from, kTarget, there, sizes, 3), SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("piece 2"));

    void* local = closed;
    void* place = remote;
    memspan_transfer_t request = nullptr;
    ASSERT_EQ(memspan_transfer_prepare(handle, MEMSPAN_TRANSFER_WRITE, kTarget, &local, &place,
                                       &sizes[2], 1, &request),
              SMEM_OK);
    ASSERT_EQ(memspan_transfer_post(request), SMEM_OK);
    EXPECT_EQ(memspan_transfer_wait(request, 10'000), SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("may not be read"));
    memspan_transfer_destroy(request);
    smem_trans_destroy(handle, 0);
    say(wire.right(), 'd');
  });
  initiator.join();
  target.join();
}

TEST(TransMoveTest, SaysThatAPeersMemoryMayNotBeWritten) {
  Store store;
  Side alone([&] {
    const auto reader = create(store.url(), kInitiator);
    const auto writer = create(store.url(), kTarget);
    auto* page = fresh_pages(4096, 1);
    ASSERT_EQ(smem_trans_register_mem(reader, page, 4096, 0), SMEM_OK);
    ASSERT_EQ(mprotect(page, 4096, PROT_READ), 0);
    unsigned char byte = 2;
    EXPECT_NE(smem_trans_write(writer, &byte, kInitiator, page, 1), SMEM_OK);
    EXPECT_TRUE(says("of the peer may not be written")) << smem_get_last_err_msg();
    EXPECT_EQ(smem_trans_read(writer, &byte, kInitiator, page, 1), SMEM_OK);
    EXPECT_EQ(byte, 1);
    smem_trans_uninit(0);
  });
  alone.join();
}

TEST(TransMoveTest, ChecksItsArgumentsBeforeAnythingMoves) {
  with_target([](smem_trans_t handle, unsigned char* remote) {
    unsigned char byte = 9;
    void* there[2] = {remote + kEdge, nullptr};
    const void* from[2] = {&byte, &byte};
    std::size_t sizes[2] = {1, 1};
    EXPECT_EQ(smem_trans_batch_write(handle, from, kTarget, there, sizes, 2), SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("remoteAddrs[1], which is null"));
    there[1] = remote + kEdge;
    sizes[1] = 0;
    EXPECT_EQ(smem_trans_batch_write(handle, from, kTarget, there, sizes, 2), SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("invalid dataSizes") && says("which is 0"));
    EXPECT_EQ(smem_trans_batch_write(handle, from, kTarget, there, sizes, 0), SMEM_INVALID_PARAM);
    EXPECT_EQ(smem_trans_batch_write(handle, nullptr, kTarget, there, sizes, 1),
              SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("localAddrs, which is null"));
    EXPECT_EQ(smem_trans_write(handle, &byte, nullptr, there[0], 1), SMEM_INVALID_PARAM);
    EXPECT_EQ(smem_trans_write(handle, &byte, "no name", there[0], 1), SMEM_INVALID_PARAM);
    EXPECT_EQ(smem_trans_write(handle, &byte, "127.0.0.1:9", there[0], 1), SMEM_NOT_EXIST);
    EXPECT_EQ(smem_trans_write(nullptr, &byte, kTarget, there[0], 1), SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("invalid param, handle is NULL"));
    EXPECT_EQ(smem_trans_write(&byte, &byte, kTarget, there[0], 1), SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("not found handle"));
    ASSERT_EQ(smem_trans_read(handle, &byte, kTarget, there[0], 1), SMEM_OK);
    EXPECT_EQ(byte, 7);
  });
}

TEST(TransMoveTest, TakesFlagsAsOlderProgramsGiveThem) {
  with_target([](smem_trans_t handle, unsigned char* remote) {
    unsigned char byte = 9;
    EXPECT_EQ(smem_trans_write(handle, &byte, kTarget, remote + kEdge, 1, 0), SMEM_OK);
    EXPECT_EQ(smem_trans_write(handle, &byte, kTarget, remote + kEdge, 1, COPY_EXTEND_FLAG),
              SMEM_OK);
    EXPECT_EQ(smem_trans_write(handle, &byte, kTarget, remote + kEdge, 1, ASYNC_COPY_FLAG),
              SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("invalid flags"));
  });
}

}  // namespace
}  // namespace trans
