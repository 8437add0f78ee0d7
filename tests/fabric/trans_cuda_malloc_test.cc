// SPDX-License-Identifier: Apache-2.0
// Memory of a GPU that an endpoint hands out: memspan_transfer_device_malloc(). On the stand-in of
// the CUDA driver.
#include <memspan/transfer.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "fabric/trans_cuda.h"

namespace trans {
namespace {

TEST(TransCudaMallocTest, MemoryThatWasHandedOutIsTheDevicesAndRegistered) {
  between(
      [](smem_trans_t handle, int wire) {
        const std::size_t before = gpu_free_bytes();
        auto* const memory =
            static_cast<Place>(memspan_transfer_device_malloc(handle, kStep + kEdge));
        ASSERT_NE(memory, nullptr) << smem_get_last_err_msg();
        EXPECT_TRUE(has_free(before - 2 * kStep));
        EXPECT_TRUE(all_are(from_gpu(memory, kStep + kEdge).data(), kStep + kEdge, 0));
        EXPECT_EQ(smem_trans_deregister_mem(handle, memory), SMEM_OK) << "takes nothing back";
        EXPECT_TRUE(registers(handle, memory, kStep + kEdge)) << "and is not needed";
        EXPECT_EQ(smem_trans_deregister_mem(handle, memory), SMEM_OK);
        say(wire, memory);
        EXPECT_EQ(hear<char>(wire), 'w');
        EXPECT_EQ(from_gpu(memory, kStep + kEdge), pattern(kStep + kEdge, 9));
        EXPECT_EQ(smem_trans_free(handle, memory + 1), SMEM_INVALID_PARAM);
        EXPECT_EQ(smem_trans_free(handle, memory), SMEM_OK);
        EXPECT_EQ(smem_trans_free(handle, memory), SMEM_INVALID_PARAM);
        EXPECT_TRUE(says("no memory of this endpoint begins there"));
        say(wire, 'f');
        EXPECT_EQ(hear<char>(wire), 'd');
        EXPECT_TRUE(has_free(before));
        EXPECT_EQ(handles(), 0u);
      },
      [](smem_trans_t handle, int wire) {
        const auto there = hear<Place>(wire);
        const Place mine = on_gpu(pattern(kStep + kEdge, 9));
        EXPECT_TRUE(writes(handle, mine, there, kStep + kEdge));
        Bytes back(kStep + kEdge);
        EXPECT_TRUE(reads(handle, back.data(), there, back.size()));
        EXPECT_EQ(back, pattern(kStep + kEdge, 9));
        EXPECT_EQ(smem_trans_write(handle, mine, kTarget, there + kStep, kEdge + 1),
                  SMEM_NOT_EXIST);
        say(wire, 'w');
        EXPECT_EQ(hear<char>(wire), 'f');
        EXPECT_EQ(smem_trans_write(handle, mine, kTarget, there, 1), SMEM_NOT_EXIST);
        say(wire, 'd');
      });
}

TEST(TransCudaMallocTest, WhatTheDeviceHasNotIsNotHandedOut) {
  Store store;
  Side side([&] {
    use_gpu();
    const auto handle = create(store.url(), kTarget);
    const std::size_t before = gpu_free_bytes();
    EXPECT_EQ(memspan_transfer_device_malloc(handle, 0), nullptr);
    EXPECT_TRUE(says("invalid capacity"));
    EXPECT_EQ(memspan_transfer_device_malloc(handle, before + 1), nullptr);
    EXPECT_TRUE(says("are free"));
    EXPECT_EQ(memspan_transfer_device_malloc(handle, SIZE_MAX), nullptr);
    EXPECT_TRUE(says("more than any device has"));
    EXPECT_TRUE(has_free(before));
    EXPECT_EQ(memspan_transfer_device_malloc(nullptr, 1), nullptr);
    // The end of the endpoint gives back what is left.
    EXPECT_NE(memspan_transfer_device_malloc(handle, 16 * kStep), nullptr)
        << smem_get_last_err_msg();
    smem_trans_destroy(handle, 0);
    EXPECT_TRUE(has_free(before));
    EXPECT_EQ(handles(), 0u);
  });
  side.join();
}

TEST(TransCudaMallocTest, FreedMemoryStaysUntilTheStreamHasDoneWithIt) {
  between(
      [](smem_trans_t handle, int wire) {
        const Place memory = on_gpu(Bytes(kStep, 7));
        ASSERT_TRUE(registers(handle, memory, kStep));
        say(wire, memory);
        EXPECT_EQ(hear<char>(wire), 'd');
        EXPECT_EQ(from_gpu(memory, kStep), pattern(kStep, 10));
      },
      [](smem_trans_t handle, int wire) {
        const auto there = hear<Place>(wire);
        const std::size_t before = gpu_free_bytes();
        auto* const mine = static_cast<Place>(memspan_transfer_device_malloc(handle, kStep));
        ASSERT_NE(mine, nullptr) << smem_get_last_err_msg();
        put_on_gpu(mine, pattern(kStep, 10));
        void* const stream = gpu_stream();
        Gate gate;
        gpu_call(stream, Gate::pass, &gate);
        ASSERT_EQ(smem_trans_write_submit(handle, mine, kTarget, there, kStep, stream), SMEM_OK)
            << smem_get_last_err_msg();
        EXPECT_EQ(smem_trans_free(handle, mine), SMEM_OK);
        EXPECT_TRUE(has_free(before - kStep));
        gate.open();
        EXPECT_EQ(gpu_synchronize(stream), 0);
        // It is given back with the next that the device is asked for.
        EXPECT_EQ(memspan_transfer_device_malloc(handle, SIZE_MAX), nullptr);
        EXPECT_TRUE(has_free(before));
        say(wire, 'd');
      });
}

// Frees `mine` while another thread writes it to the target: when the copy has begun. No write
// begins after that, since nobody may use what is freed.
void free_while_written(smem_trans_t handle, Place mine, Place there, std::size_t bytes) {
  const std::size_t before = copies_begun();
  std::atomic<bool> is_over{false};
  std::thread writer([&] {
    EXPECT_TRUE(writes(handle, mine, there, bytes));
    is_over = true;
  });
  while (copies_begun() == before && !is_over) std::this_thread::yield();
  EXPECT_EQ(smem_trans_free(handle, mine), SMEM_OK);
  writer.join();
}

TEST(TransCudaMallocTest, FreedMemoryStaysUntilTransfersHaveDoneWithIt) {
  constexpr std::size_t kBytes = 8 * kStep;
  between(
      [](smem_trans_t handle, int wire) {
        const Place memory = on_gpu(Bytes(kBytes, 7));
        ASSERT_TRUE(registers(handle, memory, kBytes));
        say(wire, memory);
        EXPECT_EQ(hear<char>(wire), 'd');
        EXPECT_EQ(from_gpu(memory, kBytes), Bytes(kBytes, 14));
      },
      [](smem_trans_t handle, int wire) {
        const auto there = hear<Place>(wire);
        const std::size_t before = gpu_free_bytes();
        for (int round = 0; round < 5; ++round) {
          auto* const mine = static_cast<Place>(memspan_transfer_device_malloc(handle, kBytes));
          ASSERT_NE(mine, nullptr) << smem_get_last_err_msg();
          put_on_gpu(mine, Bytes(kBytes, static_cast<unsigned char>(10 + round)));
          free_while_written(handle, mine, there, kBytes);
          EXPECT_TRUE(has_free(before));
        }
        say(wire, 'd');
      });
}

}  // namespace
}  // namespace trans
