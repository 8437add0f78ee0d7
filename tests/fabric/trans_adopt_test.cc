// SPDX-License-Identifier: Apache-2.0
// Registered memory with adopted pages: peers map it, and its owner keeps what it wrote, whatever
// becomes of the memory, of the owner and of the peers.
#include <memspan/transfer.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "fabric/trans.h"
#include "support/forbidden_syscalls.h"
#include "support/needs.h"

namespace trans {
namespace {

constexpr std::size_t kBytes = (std::size_t{9} << 20) + 1000;
constexpr std::size_t kIn = 100;  // within a page

bool is_one_host() {
  return std::getenv("MEMSPAN_TEST_HOSTS") == nullptr;
}

class TransAdoptTest : public testing::Test {
 protected:
  void SetUp() override { MEMSPAN_NEEDS("userfaultfd"); }
};

// This thread can reach no memory of another process by the kernel from now on.
void forbid_copies_by_the_kernel() {
  constexpr long kCalls[] = {SYS_process_vm_readv, SYS_process_vm_writev};
  ASSERT_EQ(forbid_syscalls(kCalls, 2, EPERM), 0);
}

int mappings_of_adopted_memory() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);)
    if (line.find("memspan-adopted") != std::string::npos) ++count;
  return count;
}

// What a child writes does not come to its parent.
bool is_copied_by_fork(volatile unsigned char* byte) {
  const unsigned char before = *byte;
  const pid_t child = fork();
  if (child == 0) {
    *byte = static_cast<unsigned char>(before + 1);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  const bool is_copied = *byte == before;
  *byte = before;
  return is_copied;
}

testing::AssertionResult adopt(smem_trans_t handle, void* at, std::size_t bytes) {
  if (memspan_transfer_register_adopted(handle, at, bytes) == SMEM_OK)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << smem_get_last_err_msg();
}

testing::AssertionResult write_bytes(smem_trans_t handle, unsigned char* there, std::size_t bytes,
                                     int value) {
  const std::vector<unsigned char> source(bytes, static_cast<unsigned char>(value));
  if (smem_trans_write(handle, source.data(), kTarget, there, bytes) == SMEM_OK)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << smem_get_last_err_msg();
}

TEST_F(TransAdoptTest, TransfersAreCopies) {
  with_pair(
      [](smem_trans_t handle, int wire) {
        auto* memory = static_cast<unsigned char*>(std::malloc(kBytes));
        for (std::size_t i = 0; i < kBytes; ++i) memory[i] = static_cast<unsigned char>(i % 251);
        const std::size_t bytes = kBytes - 2 * kIn;
        EXPECT_TRUE(adopt(handle, memory + kIn, bytes));
        auto* ordinary = fresh_pages(4096, 3);
        EXPECT_EQ(smem_trans_register_mem(handle, ordinary, 4096, 0), SMEM_OK);
        for (std::size_t i = 0; i < kBytes; ++i) ASSERT_EQ(memory[i], i % 251) << i;
        say(wire, memory);
        say(wire, ordinary);
        meet(wire);
        EXPECT_TRUE(all_are(memory + kIn, bytes, 9)) << "written by the peer";
        for (std::size_t i = 0; i < kIn; ++i) ASSERT_EQ(memory[i], i % 251) << "a neighbour";
        for (std::size_t i = kBytes - kIn; i < kBytes; ++i) ASSERT_EQ(memory[i], i % 251) << i;
        EXPECT_EQ(smem_trans_deregister_mem(handle, memory + kIn), SMEM_OK);
        EXPECT_TRUE(all_are(memory + kIn, bytes, 9));
        meet(wire);
        meet(wire);
        EXPECT_TRUE(all_are(memory + kIn, bytes, 9));
        std::free(memory);
      },
      [](smem_trans_t handle, int wire) {
        auto* remote = hear<unsigned char*>(wire);
        auto* ordinary = hear<unsigned char*>(wire);
        if (is_one_host()) {
          forbid_copies_by_the_kernel();
          unsigned char byte = 0;
          EXPECT_EQ(smem_trans_read(handle, &byte, kTarget, ordinary, 1), SMEM_OK)
              << "ordinary memory is reached by messages: " << smem_get_last_err_msg();
        }
        const std::size_t bytes = kBytes - 2 * kIn;
        std::vector<unsigned char> copy(bytes);
        EXPECT_EQ(smem_trans_read(handle, copy.data(), kTarget, remote + kIn, bytes), SMEM_OK)
            << smem_get_last_err_msg();
        for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(copy[i], (i + kIn) % 251) << i;
        EXPECT_FALSE(write_bytes(handle, remote + kIn - 1, 2, 9)) << "to the byte";
        EXPECT_FALSE(write_bytes(handle, remote + kIn + bytes - 1, 2, 9));
        EXPECT_TRUE(write_bytes(handle, remote + kIn, bytes, 9));
        EXPECT_EQ(mappings_of_adopted_memory() > 0, is_one_host());
        meet(wire);
        meet(wire);
        EXPECT_FALSE(write_bytes(handle, remote + kIn, 1, 5)) << "not registered any more";
        EXPECT_EQ(mappings_of_adopted_memory(), 0) << "what is not registered is not mapped";
        meet(wire);
      });
}

TEST_F(TransAdoptTest, OverlapsAreRefusedAndTheSameIsCounted) {
  Store store;
  Side([&] {
    const auto handle = create(store.url(), kTarget);
    constexpr std::size_t kRoom = 65536;
    auto* memory = fresh_pages(kRoom, 7);
    EXPECT_TRUE(adopt(handle, memory + 4096, 8192));
    EXPECT_TRUE(adopt(handle, memory + 4096, 8192));
    EXPECT_EQ(smem_trans_register_mem(handle, memory + 4096, 8192, 0), SMEM_OK);
    EXPECT_EQ(memspan_transfer_register_adopted(handle, memory + 4096, 4096), SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("only the very same range"));
    EXPECT_EQ(memspan_transfer_register_adopted(handle, memory, 4097), SMEM_INVALID_PARAM);
    EXPECT_EQ(smem_trans_register_mem(handle, memory + 12287, 2, 0), SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("overlap the 8192"));
    void* places[] = {memory + 12288, memory + 4096};
    std::size_t sizes[] = {10, 10};
    EXPECT_EQ(smem_trans_batch_register_mem(handle, places, sizes, 2, 0), SMEM_INVALID_PARAM);
    EXPECT_EQ(smem_trans_batch_register_mem(handle, places, sizes, 1, 0), SMEM_OK);
    EXPECT_EQ(memspan_transfer_register_adopted(handle, memory + 12290, 1), SMEM_INVALID_PARAM)
        << "registered as it is";
    EXPECT_TRUE(says("overlap the 10 that are registered"));
    EXPECT_EQ(memspan_transfer_register_adopted(handle, memory, 1), SMEM_OK) << "beside it";
    for (int i = 0; i < 3; ++i) {
      EXPECT_FALSE(is_copied_by_fork(memory + 4096)) << i;
      EXPECT_EQ(smem_trans_deregister_mem(handle, memory + 4096), SMEM_OK);
    }
    EXPECT_TRUE(is_copied_by_fork(memory + 4096)) << "private again";
    EXPECT_EQ(smem_trans_register_mem(handle, memory + 12287, 2, 0), SMEM_OK);
    smem_trans_destroy(handle, 0);
    EXPECT_TRUE(is_copied_by_fork(memory)) << "its endpoint has ended";
    EXPECT_TRUE(all_are(memory, kRoom, 7));
  }).join();
}

TEST_F(TransAdoptTest, MistakesHaveTheirWords) {
  Store store;
  Side([&] {
    const auto handle = create(store.url(), kTarget);
    auto* memory = fresh_pages(4096, 7);
    EXPECT_EQ(memspan_transfer_register_adopted(handle, nullptr, 1), SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("address, which is null"));
    EXPECT_EQ(memspan_transfer_register_adopted(handle, memory, 0), SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("capacity, which is 0"));
    EXPECT_EQ(memspan_transfer_register_adopted(handle, memory, SIZE_MAX), SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("more than an address can be"));
    EXPECT_EQ(memspan_transfer_register_adopted(nullptr, memory, 1), SMEM_INVALID_PARAM);
    auto* given = smem_trans_malloc(handle, 4096);
    EXPECT_EQ(memspan_transfer_register_adopted(handle, given, 1), SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("is shared memory"));
    mprotect(memory, 4096, PROT_READ);
    EXPECT_EQ(memspan_transfer_register_adopted(handle, memory, 1), SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("readable and writable"));
    munmap(memory, 4096);
    EXPECT_EQ(memspan_transfer_register_adopted(handle, memory, 1), SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("nothing is mapped"));
    smem_trans_destroy(handle, 0);
  }).join();
}

// The owner forgets to deregister, and gets other memory at the same place.
TEST_F(TransAdoptTest, MemoryThatWasFreedIsNotTakenForWhatCameAfterIt) {
  with_pair(
      [](smem_trans_t handle, int wire) {
        auto* memory = fresh_pages(kBytes, 7);
        for (const bool adopts_again : {true, false}) {
          EXPECT_TRUE(adopt(handle, memory, kBytes));
          say(wire, memory);
          meet(wire);
          ASSERT_EQ(mmap(memory, kBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                    memory);
          if (adopts_again)
            EXPECT_TRUE(adopt(handle, memory, kBytes));
          else
            EXPECT_EQ(smem_trans_register_mem(handle, memory, kBytes, 0), SMEM_OK);
          meet(wire);
          meet(wire);
          EXPECT_TRUE(all_are(memory, kBytes, 9)) << "the peer has written to what is there now";
          EXPECT_EQ(smem_trans_deregister_mem(handle, memory), SMEM_OK);
          EXPECT_TRUE(is_copied_by_fork(memory));
        }
      },
      [](smem_trans_t handle, int wire) {
        for (int i = 0; i < 2; ++i) {
          auto* remote = hear<unsigned char*>(wire);
          EXPECT_TRUE(write_bytes(handle, remote, kBytes, 8));
          meet(wire);
          meet(wire);
          EXPECT_TRUE(write_bytes(handle, remote, kBytes, 9));
          meet(wire);
        }
      });
}

// Threads of the owner count up in words of theirs while it adopts and gives back, and a peer
// copies.
struct Counting {
  static constexpr std::size_t kStep = 4096;
  explicit Counting(unsigned char* memory) {
    thread = std::thread([this, memory] {
      for (std::uint64_t round = 0; !is_over.load(); rounds = ++round)
        for (std::size_t at = 0; at + kStep <= kBytes; at += kStep) {
          auto* word = reinterpret_cast<volatile std::uint64_t*>(memory + at);
          if (*word != round) ++lost;
          *word = round + 1;
        }
    });
  }
  ~Counting() {
    is_over = true;
    thread.join();
    EXPECT_EQ(lost, 0u);
  }
  std::atomic<bool> is_over{false};
  std::atomic<std::uint64_t> rounds{0};
  std::uint64_t lost = 0;
  std::thread thread;
};

TEST_F(TransAdoptTest, TheOwnerWritesAndAPeerReadsMeanwhile) {
  constexpr int kRounds = 20;
  with_pair(
      [](smem_trans_t handle, int wire) {
        auto* memory = fresh_pages(kBytes, 0);
        say(wire, memory);
        const Counting counting(memory);
        for (int i = 0; i < kRounds; ++i) {
          EXPECT_TRUE(adopt(handle, memory, kBytes));
          meet(wire);
          meet(wire);
          EXPECT_EQ(smem_trans_deregister_mem(handle, memory), SMEM_OK) << smem_get_last_err_msg();
        }
      },
      [](smem_trans_t handle, int wire) {
        auto* remote = hear<unsigned char*>(wire);
        std::vector<unsigned char> copy(kBytes);
        std::uint64_t before = 0;
        for (int i = 0; i < kRounds; ++i) {
          meet(wire);
          EXPECT_EQ(smem_trans_read(handle, copy.data(), kTarget, remote, kBytes), SMEM_OK)
              << smem_get_last_err_msg();
          std::uint64_t first = 0;
          std::memcpy(&first, copy.data(), sizeof first);
          EXPECT_GE(first, before);
          before = first;
          meet(wire);
        }
      });
}

// Killed while it replaces pages, at a moment that no one chooses.
TEST_F(TransAdoptTest, AKilledOwnerLeavesNothing) {
  Store store;
  Wire done;
  Side peer([&] {
    const auto handle = create(store.url(), kInitiator);
    say(done.left(), 'r');
    unsigned char byte = 0;
    for (int i = 0; i < 5; ++i) {
      auto* remote = hear<unsigned char*>(done.left());
      EXPECT_EQ(smem_trans_read(handle, &byte, kTarget, remote, 1), SMEM_OK)
          << smem_get_last_err_msg();
      say(done.left(), 'm');
      hear<char>(done.left());  // the owner is dead
      // A transfer looks for its end every millisecond only; until then the memory is still mapped.
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
      while (smem_trans_read(handle, &byte, kTarget, remote, 1) == SMEM_OK)
        ASSERT_LT(std::chrono::steady_clock::now(), end) << "a dead owner's memory is read";
      EXPECT_EQ(mappings_of_adopted_memory(), 0);
      say(done.left(), 'g');
    }
    smem_trans_destroy(handle, 0);
  });
  hear<char>(done.right());
  for (int i = 0; i < 5; ++i) {
    Wire wire;
    Side owner([&] {
      const auto handle = create(store.url(), kTarget);
      auto* memory = fresh_pages(kBytes, 7);
      auto* busy = fresh_pages(kBytes, 0);
      EXPECT_TRUE(adopt(handle, memory, kBytes));
      say(wire.left(), memory);
      hear<char>(wire.left());
      const Counting counting(busy);
      for (std::uint64_t round = 0;; ++round) {
        EXPECT_TRUE(adopt(handle, busy, kBytes));
        EXPECT_EQ(smem_trans_deregister_mem(handle, busy), SMEM_OK);
        say(wire.left(), round);
      }
    });
    say(done.right(), hear<unsigned char*>(wire.right()));
    hear<char>(done.right());
    say(wire.right(), 'g');
    for (int rounds = 0; rounds <= i; ++rounds) hear<std::uint64_t>(wire.right());
    owner.kill();
    say(done.right(), 'k');
    hear<char>(done.right());
  }
  peer.join();
}

TEST_F(TransAdoptTest, AKilledPeerLeavesTheMemoryAsItWas) {
  Store store;
  Wire wire;
  Side owner([&] {
    const auto handle = create(store.url(), kTarget);
    auto* memory = fresh_pages(kBytes, 7);
    EXPECT_TRUE(adopt(handle, memory, kBytes));
    say(wire.left(), memory);
    hear<char>(wire.left());  // the peer is dead
    EXPECT_EQ(memory[0], 9);
    std::memset(memory, 5, kBytes);
    EXPECT_EQ(smem_trans_deregister_mem(handle, memory), SMEM_OK);
    EXPECT_TRUE(all_are(memory, kBytes, 5));
    EXPECT_TRUE(is_copied_by_fork(memory));
    smem_trans_destroy(handle, 0);
  });
  auto* const memory = hear<unsigned char*>(wire.right());
  Wire of_peer;
  Side peer([&] {
    const auto handle = create(store.url(), kInitiator);
    while (true) {
      EXPECT_TRUE(write_bytes(handle, memory, kBytes, 9));
      say(of_peer.left(), 'w');
    }
  });
  for (int i = 0; i < 3; ++i) hear<char>(of_peer.right());
  peer.kill();
  say(wire.right(), 'k');
  owner.join();
}

}  // namespace
}  // namespace trans
