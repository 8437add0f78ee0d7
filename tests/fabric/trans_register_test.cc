// SPDX-License-Identifier: Apache-2.0
// What may be reached: registrations come, join, count and go, and a peer knows at once.
#include <memspan/transfer.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "fabric/trans.h"

namespace trans {
namespace {

constexpr std::size_t kBytes = 1 << 20;

// Both know where the target's memory is.
template <typename Target, typename Initiate>
void with_both(Target target_runs, Initiate initiator_runs) {
  with_pair(
      [&](smem_trans_t handle, int wire) {
        auto* memory = fresh_pages(kBytes, 7);
        say(wire, memory);
        target_runs(handle, memory, wire);
      },
      [&](smem_trans_t handle, int wire) {
        auto* remote = hear<unsigned char*>(wire);
        initiator_runs(handle, remote, wire);
      });
}

int write_byte(smem_trans_t handle, unsigned char* there, std::size_t bytes = 1) {
  static const unsigned char kSource[kBytes] = {9};
  return smem_trans_write(handle, kSource, kTarget, there, bytes);
}

constexpr int kRounds = 300;

TEST(TransRegisterTest, CountsAtOnceWithoutTheStore) {
  auto store = std::make_unique<Store>();
  Wire wire;
  Wire gone;
  Side target([&] {
    const auto handle = create(store->url(), kTarget);
    auto* memory = fresh_pages(kBytes, 7);
    say(wire.left(), memory);
    EXPECT_EQ(smem_trans_register_mem(handle, memory + kBytes - 1, 1, 0), SMEM_OK);
    meet(wire.left());
    meet(wire.left());  // the store is gone
    for (int i = 0; i < kRounds; ++i) {
      EXPECT_EQ(smem_trans_register_mem(handle, memory + i, 1, 0), SMEM_OK);
      meet(wire.left());
      meet(wire.left());
      EXPECT_EQ(memory[i], 9);
      EXPECT_EQ(smem_trans_deregister_mem(handle, memory + i), SMEM_OK);
      meet(wire.left());
      meet(wire.left());
    }
  });
  Side initiator([&] {
    const auto handle = create(store->url(), kInitiator);
    auto* remote = hear<unsigned char*>(wire.right());
    meet(wire.right());
    ASSERT_EQ(write_byte(handle, remote + kBytes - 1), SMEM_OK) << smem_get_last_err_msg();
    say(gone.left(), 'g');
    hear<char>(gone.left());
    meet(wire.right());
    for (int i = 0; i < kRounds; ++i) {
      meet(wire.right());
      EXPECT_EQ(write_byte(handle, remote + i), SMEM_OK) << smem_get_last_err_msg();
      meet(wire.right());
      meet(wire.right());
      EXPECT_EQ(write_byte(handle, remote + i), SMEM_NOT_EXIST);
      meet(wire.right());
    }
  });
  hear<char>(gone.right());
  store.reset();
  say(gone.right(), 'g');
  initiator.join();
  target.join();
}

TEST(TransRegisterTest, TheSameRangeIsCounted) {
  with_both(
      [](smem_trans_t handle, unsigned char* memory, int wire) {
        EXPECT_EQ(smem_trans_register_mem(handle, memory, 100, 0), SMEM_OK);
        EXPECT_EQ(smem_trans_register_mem(handle, memory, 100, 0), SMEM_OK);
        EXPECT_EQ(smem_trans_deregister_mem(handle, memory), SMEM_OK);
        meet(wire);
        meet(wire);
        EXPECT_EQ(smem_trans_deregister_mem(handle, memory), SMEM_OK);
        EXPECT_EQ(smem_trans_deregister_mem(handle, memory), SMEM_OK) << "nothing is there";
        EXPECT_EQ(smem_trans_deregister_mem(handle, nullptr), SMEM_INVALID_PARAM);
        meet(wire);
      },
      [](smem_trans_t handle, unsigned char* remote, int wire) {
        meet(wire);
        EXPECT_EQ(write_byte(handle, remote, 100), SMEM_OK) << smem_get_last_err_msg();
        meet(wire);
        meet(wire);
        EXPECT_EQ(write_byte(handle, remote, 1), SMEM_NOT_EXIST);
        EXPECT_TRUE(says("registered nothing"));
      });
}

TEST(TransRegisterTest, ABatchJoinsWhatTouchesAndSinglesStandAlone) {
  with_both(
      [](smem_trans_t handle, unsigned char* memory, int wire) {
        void* places[] = {memory + 300, memory, memory + 100, memory + 150, memory + 500};
        std::size_t sizes[] = {100, 100, 100, 150, 10};
        EXPECT_EQ(smem_trans_batch_register_mem(handle, places, sizes, 5, 0), SMEM_OK);
        EXPECT_EQ(smem_trans_register_mem(handle, memory + 1000, 100, 0), SMEM_OK);
        EXPECT_EQ(smem_trans_register_mem(handle, memory + 1100, 100, 0), SMEM_OK);
        EXPECT_EQ(smem_trans_register_mem(handle, memory + 1050, 100, 0), SMEM_OK);
        meet(wire);
        meet(wire);
        EXPECT_EQ(smem_trans_deregister_mem(handle, memory + 150), SMEM_OK);
        meet(wire);
      },
      [](smem_trans_t handle, unsigned char* remote, int wire) {
        meet(wire);
        EXPECT_EQ(write_byte(handle, remote, 400), SMEM_OK) << smem_get_last_err_msg();
        EXPECT_EQ(write_byte(handle, remote + 1, 399), SMEM_OK);
        EXPECT_EQ(write_byte(handle, remote, 401), SMEM_NOT_EXIST);
        EXPECT_EQ(write_byte(handle, remote + 399, 2), SMEM_NOT_EXIST);
        EXPECT_EQ(write_byte(handle, remote + 500, 10), SMEM_OK);
        EXPECT_EQ(write_byte(handle, remote + 1000, 101), SMEM_NOT_EXIST);
        EXPECT_EQ(write_byte(handle, remote + 1050, 100), SMEM_OK);
        EXPECT_EQ(write_byte(handle, remote + 1100, 100), SMEM_OK);
        meet(wire);
        meet(wire);
        EXPECT_EQ(write_byte(handle, remote, 200), SMEM_OK);
        EXPECT_EQ(write_byte(handle, remote, 201), SMEM_NOT_EXIST);
        EXPECT_EQ(write_byte(handle, remote + 200, 1), SMEM_NOT_EXIST);
        EXPECT_EQ(write_byte(handle, remote + 300, 100), SMEM_OK);
      });
}

TEST(TransRegisterTest, ABatchIsAllOrNone) {
  with_both(
      [](smem_trans_t handle, unsigned char* memory, int wire) {
        void* places[] = {memory, memory + 100};
        std::size_t sizes[] = {100, 0};
        EXPECT_EQ(smem_trans_batch_register_mem(handle, places, sizes, 2, 0), SMEM_INVALID_PARAM);
        EXPECT_TRUE(says("piece 1") && says("invalid capacity, which is 0"));
        sizes[1] = SIZE_MAX;
        EXPECT_EQ(smem_trans_batch_register_mem(handle, places, sizes, 2, 0), SMEM_INVALID_PARAM);
        places[1] = nullptr;
        EXPECT_EQ(smem_trans_batch_register_mem(handle, places, sizes, 2, 0), SMEM_INVALID_PARAM);
        EXPECT_EQ(smem_trans_batch_register_mem(handle, places, sizes, 0, 0), SMEM_INVALID_PARAM);
        EXPECT_EQ(smem_trans_batch_register_mem(handle, nullptr, sizes, 1, 0), SMEM_INVALID_PARAM);
        EXPECT_EQ(smem_trans_register_mem(handle, nullptr, 1, 0), SMEM_INVALID_PARAM);
        EXPECT_EQ(smem_trans_register_mem(handle, memory, 0, 0), SMEM_INVALID_PARAM);
        EXPECT_EQ(smem_trans_register_mem(nullptr, memory, 1, 0), SMEM_INVALID_PARAM);
        meet(wire);
      },
      [](smem_trans_t handle, unsigned char* remote, int wire) {
        meet(wire);
        EXPECT_EQ(write_byte(handle, remote), SMEM_NOT_EXIST);
      });
}

// More than a million at once, and many changes while a peer looks.
TEST(TransRegisterTest, HoldsAMillionRegistrations) {
  constexpr std::uint32_t kCount = 1'048'576;
  with_both(
      [](smem_trans_t handle, unsigned char* memory, int wire) {
        std::vector<void*> places(kCount);
        std::vector<std::size_t> sizes(kCount, 1);
        // Two bytes apart; most of them are memory that is not there, which is nobody's business.
        for (std::uint32_t i = 0; i < kCount; ++i) places[i] = memory + 2 * std::size_t{i};
        EXPECT_EQ(smem_trans_batch_register_mem(handle, places.data(), sizes.data(), kCount, 0),
                  SMEM_OK)
            << smem_get_last_err_msg();
        meet(wire);
        meet(wire);
        for (std::uint32_t i = 0; i < 100'000; ++i)
          EXPECT_EQ(smem_trans_deregister_mem(handle, places[i]), SMEM_OK);
        meet(wire);
      },
      [](smem_trans_t handle, unsigned char* remote, int wire) {
        meet(wire);
        EXPECT_EQ(write_byte(handle, remote + 77'776), SMEM_OK) << smem_get_last_err_msg();
        EXPECT_EQ(write_byte(handle, remote + 77'777), SMEM_NOT_EXIST);
        EXPECT_EQ(write_byte(handle, remote + 400'000), SMEM_OK);
        meet(wire);
        meet(wire);
        EXPECT_EQ(write_byte(handle, remote + 77'776), SMEM_NOT_EXIST);
        EXPECT_EQ(write_byte(handle, remote + 400'000), SMEM_OK);
      });
}

TEST(TransRegisterTest, LibraryMemoryIsMappedAndGivenBack) {
  constexpr std::size_t kOdd = 100'001;
  with_both(
      [](smem_trans_t handle, unsigned char*, int wire) {
        auto* memory = static_cast<unsigned char*>(smem_trans_malloc(handle, kOdd));
        ASSERT_NE(memory, nullptr) << smem_get_last_err_msg();
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 4096, 0u);
        EXPECT_TRUE(all_are(memory, kOdd, 0));
        memory[kOdd - 1] = 3;
        auto* second = static_cast<unsigned char*>(smem_trans_malloc(handle, 1));
        say(wire, memory);
        say(wire, second);
        hear<char>(wire);
        EXPECT_EQ(memory[0], 9);
        EXPECT_EQ(second[0], 9);
        EXPECT_EQ(smem_trans_free(handle, memory + 1), SMEM_INVALID_PARAM);
        EXPECT_EQ(smem_trans_deregister_mem(handle, memory), SMEM_OK) << "which changes nothing";
        EXPECT_EQ(smem_trans_free(handle, memory), SMEM_OK);
        EXPECT_EQ(smem_trans_free(handle, memory), SMEM_INVALID_PARAM);
        EXPECT_EQ(smem_trans_malloc(handle, 0), nullptr);
        EXPECT_TRUE(says("invalid capacity, which is 0"));
        EXPECT_EQ(smem_trans_malloc(handle, std::size_t{1} << 50), nullptr);
        EXPECT_EQ(smem_get_last_err_code(), SMEM_MALLOC_FAILED);
        say(wire, 'f');
      },
      [](smem_trans_t handle, unsigned char*, int wire) {
        auto* remote = hear<unsigned char*>(wire);
        auto* second = hear<unsigned char*>(wire);
        unsigned char byte = 0;
        EXPECT_EQ(write_byte(handle, remote), SMEM_OK) << smem_get_last_err_msg();
        EXPECT_EQ(write_byte(handle, second), SMEM_OK);
        EXPECT_EQ(smem_trans_read(handle, &byte, kTarget, remote + kOdd - 1, 1), SMEM_OK);
        EXPECT_EQ(byte, 3);
        EXPECT_EQ(write_byte(handle, remote + kOdd, 1), SMEM_NOT_EXIST);
        EXPECT_EQ(write_byte(handle, remote + kOdd - 1, 2), SMEM_NOT_EXIST);
        EXPECT_EQ(write_byte(handle, second + 1, 1), SMEM_NOT_EXIST);
        say(wire, 'w');
        hear<char>(wire);
        EXPECT_EQ(write_byte(handle, remote), SMEM_NOT_EXIST);
        EXPECT_EQ(write_byte(handle, second), SMEM_OK);
      });
}

TEST(TransRegisterTest, MemoryOfTheDeviceIsTheHostsWithoutAnother) {
  if (std::getenv("MEMSPAN_DEVICE") != nullptr)
    GTEST_SKIP() << "does not apply: MEMSPAN_DEVICE is set";
  with_both(
      [](smem_trans_t handle, unsigned char*, int wire) {
        auto* memory = static_cast<unsigned char*>(memspan_transfer_device_malloc(handle, 100));
        ASSERT_NE(memory, nullptr) << smem_get_last_err_msg();
        memory[99] = 3;
        say(wire, memory);
        hear<char>(wire);
        EXPECT_EQ(memory[0], 9);
        EXPECT_EQ(smem_trans_free(handle, memory), SMEM_OK);
        EXPECT_EQ(smem_trans_free(handle, memory), SMEM_INVALID_PARAM);
        EXPECT_EQ(memspan_transfer_device_malloc(handle, 0), nullptr);
        EXPECT_TRUE(says("invalid capacity, which is 0"));
      },
      [](smem_trans_t handle, unsigned char*, int wire) {
        auto* remote = hear<unsigned char*>(wire);
        unsigned char byte = 0;
        EXPECT_EQ(write_byte(handle, remote), SMEM_OK) << smem_get_last_err_msg();
        EXPECT_EQ(smem_trans_read(handle, &byte, kTarget, remote + 99, 1), SMEM_OK);
        EXPECT_EQ(byte, 3);
        say(wire, 'w');
      });
}

// A batch that goes to both kinds of memory.
TEST(TransRegisterTest, ABatchMayMixKindsOfMemory) {
  with_both(
      [](smem_trans_t handle, unsigned char* memory, int wire) {
        auto* mapped = static_cast<unsigned char*>(smem_trans_malloc(handle, 4096));
        EXPECT_EQ(smem_trans_register_mem(handle, memory, 4096, 0), SMEM_OK);
        say(wire, mapped);
        meet(wire);
        for (int i = 0; i < 200; ++i) {
          EXPECT_EQ(mapped[i], i % 3 == 0 ? i : 0) << i;
          EXPECT_EQ(memory[i], i % 3 == 0 ? 7 : i) << i;
        }
      },
      [](smem_trans_t handle, unsigned char* remote, int wire) {
        auto* mapped = hear<unsigned char*>(wire);
        unsigned char source[201];
        std::vector<const void*> from;
        std::vector<void*> there;
        std::vector<std::size_t> sizes(201, 1);
        for (int i = 0; i < 201; ++i) {
          source[i] = static_cast<unsigned char>(i);
          from.push_back(&source[i]);
          there.push_back((i % 3 == 0 ? mapped : remote) + i);
        }
        there[200] = mapped + 4096;
        EXPECT_EQ(
            smem_trans_batch_write(handle, from.data(), kTarget, there.data(), sizes.data(), 201),
            SMEM_NOT_EXIST);
        EXPECT_TRUE(says("piece 200"));
        meet(wire);
      });
}

}  // namespace
}  // namespace trans
