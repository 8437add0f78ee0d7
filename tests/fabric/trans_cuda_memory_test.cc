// SPDX-License-Identifier: Apache-2.0
// Registered memory of a GPU by whom it was made: the driver's virtual-memory calls (PyTorch's
// expandable segments, pools of memspan) and asynchronous pools. On the stand-in of the CUDA
// driver.
#include <memspan/transfer.h>
#include <smem/host/smem_bm.h>

#include <array>
#include <chrono>
#include <cstdint>

#include "fabric/trans_cuda.h"

namespace trans {
namespace {

// More allocations than one answer of a descriptor broker has room for.
constexpr std::size_t kCount = 17;
constexpr std::size_t kAll = kCount * kStep;

TEST(TransCudaMemoryTest, MovesWhatStraddlesAllocations) {
  between(
      [](smem_trans_t handle, int wire) {
        const Place memory = mapped(kCount);
        ASSERT_TRUE(registers(handle, memory + kEdge, kAll - 2 * kEdge));
        EXPECT_EQ(handles(), 0u) << "the library keeps no handle of them";
        say(wire, memory);
        const auto seed = hear<int>(wire);
        EXPECT_EQ(from_gpu(memory + kEdge, kAll - 2 * kEdge), pattern(kAll - 2 * kEdge, seed));
        EXPECT_TRUE(all_are(from_gpu(memory, kEdge).data(), kEdge, 7));
        EXPECT_TRUE(all_are(from_gpu(memory + kAll - kEdge, kEdge).data(), kEdge, 7));
      },
      [](smem_trans_t handle, int wire) {
        const auto there = hear<Place>(wire);
        constexpr std::size_t kMoved = kAll - 2 * kEdge;
        const Place mine = mapped(kCount), back = mapped(kCount);
        put_on_gpu(mine + 3, pattern(kMoved, 1));
        EXPECT_TRUE(writes(handle, mine + 3, there + kEdge, kMoved));
        EXPECT_TRUE(reads(handle, back + 5, there + kEdge, kMoved));
        EXPECT_EQ(from_gpu(back + 5, kMoved), pattern(kMoved, 1));
        // A piece over one border, and from memory of the host.
        const Bytes few = pattern(100, 2);
        Bytes came(100);
        EXPECT_TRUE(writes(handle, few.data(), there + kStep - 50, 100));
        EXPECT_TRUE(reads(handle, came.data(), there + kStep - 50, 100));
        EXPECT_EQ(came, few);
        EXPECT_EQ(smem_trans_write(handle, mine, kTarget, there + kEdge - 1, 2), SMEM_NOT_EXIST);
        const Bytes all = pattern(kMoved, 3);
        EXPECT_TRUE(writes(handle, all.data(), there + kEdge, kMoved));
        EXPECT_EQ(handles(), 0u);
        say(wire, 3);
      });
}

TEST(TransCudaMemoryTest, ABatchAndAStreamMoveItToo) {
  between(
      [](smem_trans_t handle, int wire) {
        // Two that do not touch, and one of cudaMalloc.
        std::array<void*, 3> places{mapped(3), mapped(2), on_gpu(Bytes(kStep, 7))};
        std::array<std::size_t, 3> sizes{3 * kStep, 2 * kStep, kStep};
        ASSERT_EQ(smem_trans_batch_register_mem(handle, places.data(), sizes.data(), 3, 0), SMEM_OK)
            << smem_get_last_err_msg();
        say(wire, places);
        hear<char>(wire);
      },
      [](smem_trans_t handle, int wire) {
        auto places = hear<std::array<void*, 3>>(wire);
        constexpr std::size_t kEach = 5001;
        const Place mine = mapped(2), back = mapped(2);
        put_on_gpu(mine + kStep - kEach, pattern(3 * kEach, 4));
        std::array<const void*, 3> from;
        std::array<void*, 3> to, into;
        std::array<const void*, 3> where;
        std::array<std::size_t, 3> sizes{kEach, kEach, kEach};
        for (std::size_t i = 0; i < 3; ++i) {
          from[i] = mine + kStep - kEach + i * kEach;
          into[i] = back + kStep - kEach + i * kEach;
          where[i] = to[i] = static_cast<Place>(places[i]) + (i < 2 ? kStep - 2000 : 11);
        }
        ASSERT_EQ(smem_trans_batch_write(handle, from.data(), kTarget, to.data(), sizes.data(), 3),
                  SMEM_OK)
            << smem_get_last_err_msg();
        ASSERT_EQ(
            smem_trans_batch_read(handle, into.data(), kTarget, where.data(), sizes.data(), 3),
            SMEM_OK);
        EXPECT_EQ(from_gpu(back + kStep - kEach, 3 * kEach), pattern(3 * kEach, 4));
        void* const stream = gpu_stream();
        Gate gate;
        gpu_call(stream, Gate::pass, &gate);
        ASSERT_EQ(smem_trans_batch_write_submit(handle, from.data(), kTarget, to.data(),
                                                sizes.data(), 3, stream),
                  SMEM_OK)
            << smem_get_last_err_msg();
        ASSERT_EQ(smem_trans_batch_read_submit(handle, into.data(), kTarget, where.data(),
                                               sizes.data(), 3, stream),
                  SMEM_OK);
        put_on_gpu(mine + kStep - kEach, pattern(3 * kEach, 5));
        gate.open();
        EXPECT_EQ(gpu_synchronize(stream), 0);
        EXPECT_EQ(from_gpu(back + kStep - kEach, 3 * kEach), pattern(3 * kEach, 5));
        say(wire, 'd');
      });
}

TEST(TransCudaMemoryTest, WhatCannotBeSharedIsRefusedWithTheReason) {
  Store store;
  Side side([&] {
    use_gpu();
    const auto handle = create(store.url(), kTarget);
    const Place secret = mapped(2, GPU_NOT_SHAREABLE);
    EXPECT_EQ(smem_trans_register_mem(handle, secret, 100, 0), SMEM_ERROR);
    EXPECT_TRUE(says("TORCH_CUDA_EXPANDABLE_SEGMENTS_IPC=1"));
    EXPECT_EQ(smem_trans_register_mem(handle, secret, 2 * kStep + 1, 0), SMEM_ERROR);
    // The second allocation of two.
    const auto mixed = reinterpret_cast<Place>(gpu_reserve(3 * kStep));
    gpu_map_at(reinterpret_cast<char*>(mixed), kStep, GPU_SHAREABLE);
    gpu_map_at(reinterpret_cast<char*>(mixed) + kStep, kStep, GPU_NOT_SHAREABLE);
    EXPECT_EQ(smem_trans_register_mem(handle, mixed, kStep + 1, 0), SMEM_ERROR);
    EXPECT_TRUE(says("CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR"));
    EXPECT_TRUE(registers(handle, mixed, kStep));
    // Nothing is mapped behind it.
    const Place good = mapped(2);
    EXPECT_EQ(smem_trans_register_mem(handle, good + 100, 2 * kStep, 0), SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("are more than the 4194204 that are mapped"));
    std::array<void*, 2> both{good, secret};
    std::array<std::size_t, 2> sizes{kStep, kStep};
    EXPECT_EQ(smem_trans_batch_register_mem(handle, both.data(), sizes.data(), 2, 0), SMEM_ERROR);
    EXPECT_TRUE(registers(handle, good + 1, kStep)) << "nothing of the refused batch is left";
    // A pool that was not made for it, which a device's own is.
    for (char* const of_pool :
         {gpu_alloc_of_new_pool(kStep, GPU_NOT_SHAREABLE), gpu_alloc_async(kStep)}) {
      EXPECT_EQ(smem_trans_register_mem(handle, of_pool, 100, 0), SMEM_ERROR);
      EXPECT_TRUE(says("cudaMemHandleTypePosixFileDescriptor"));
    }
    EXPECT_EQ(handles(), 0u);
    smem_trans_destroy(handle, 0);
  });
  side.join();
}

TEST(TransCudaMemoryTest, MemoryOfAPoolThatIsSharedMoves) {
  between(
      [](smem_trans_t handle, int wire) {
        const auto memory =
            reinterpret_cast<Place>(gpu_alloc_of_new_pool(2 * kStep, GPU_SHAREABLE));
        put_on_gpu(memory, Bytes(2 * kStep, 7));
        ASSERT_TRUE(registers(handle, memory + kEdge, kStep));
        say(wire, memory);
        EXPECT_EQ(hear<char>(wire), 'w');
        EXPECT_EQ(from_gpu(memory + kEdge, kStep), pattern(kStep, 6));
        // Peers give it up before it is freed.
        EXPECT_EQ(smem_trans_deregister_mem(handle, memory + kEdge), SMEM_OK);
        say(wire, 'd');
        EXPECT_EQ(hear<char>(wire), 'r');
        EXPECT_TRUE(gpu_free(reinterpret_cast<char*>(memory)));
      },
      [](smem_trans_t handle, int wire) {
        const auto there = hear<Place>(wire);
        const Place mine = on_gpu(pattern(kStep, 6)), back = on_gpu(Bytes(kStep, 0));
        EXPECT_TRUE(writes(handle, mine, there + kEdge, kStep));
        EXPECT_TRUE(reads(handle, back, there + kEdge, kStep));
        EXPECT_EQ(from_gpu(back, kStep), pattern(kStep, 6));
        say(wire, 'w');
        EXPECT_EQ(hear<char>(wire), 'd');
        EXPECT_EQ(smem_trans_write(handle, mine, kTarget, there + kEdge, 1), SMEM_NOT_EXIST);
        say(wire, 'r');
      });
}

TEST(TransCudaMemoryTest, WhatIsDeregisteredIsRefusedWhereItIsMapped) {
  between(
      [](smem_trans_t handle, int wire) {
        const Place memory = mapped(2);
        for (int round = 0; round < 2; ++round) {
          ASSERT_TRUE(registers(handle, memory + 1, kStep));
          say(wire, memory);
          EXPECT_EQ(hear<char>(wire), 'w');
          EXPECT_EQ(from_gpu(memory + 1, 100), pattern(100, round));
          EXPECT_EQ(smem_trans_deregister_mem(handle, memory + 1), SMEM_OK);
          say(wire, 'd');
          EXPECT_EQ(hear<char>(wire), 'r');
        }
      },
      [](smem_trans_t handle, int wire) {
        void* const stream = gpu_stream();
        for (int round = 0; round < 2; ++round) {
          const auto there = hear<Place>(wire);
          const Place mine = on_gpu(pattern(100, round));
          EXPECT_TRUE(writes(handle, mine, there + 1, 100));
          // The stream is to come to this one after the memory was deregistered, which must not
          // take away what it copies to.
          Gate gate;
          gpu_call(stream, Gate::pass, &gate);
          EXPECT_EQ(smem_trans_write_submit(handle, mine, kTarget, there + 1, 100, stream),
                    SMEM_OK);
          say(wire, 'w');
          EXPECT_EQ(hear<char>(wire), 'd');
          EXPECT_EQ(smem_trans_write(handle, mine, kTarget, there + 1, 1), SMEM_NOT_EXIST);
          EXPECT_EQ(smem_trans_write_submit(handle, mine, kTarget, there + 1, 1, stream),
                    SMEM_NOT_EXIST);
          gate.open();
          // On another host it is a call, which is refused then; that is logged.
          EXPECT_EQ(gpu_synchronize(stream), 0);
          say(wire, 'r');
        }
      });
}

TEST(TransCudaMemoryTest, AnOwnerThatIsKilledIsNamedSoon) {
  Store store;
  Wire wire, control;
  Side target([&] {
    use_gpu();
    const auto handle = create(store.url(), kTarget, SMEM_TRANS_RECEIVER);
    const Place memory = mapped(kCount);
    EXPECT_TRUE(registers(handle, memory, kAll));
    auto* const given = static_cast<Place>(memspan_transfer_device_malloc(handle, kStep));
    EXPECT_NE(given, nullptr) << smem_get_last_err_msg();
    say(wire.left(), std::array{memory, given});
    hear<char>(wire.left());
  });
  Side initiator([&] {
    use_gpu();
    const auto handle = create(store.url(), kInitiator, SMEM_TRANS_SENDER);
    const auto there = hear<std::array<Place, 2>>(wire.right());
    const Place mine = mapped(kCount);
    EXPECT_TRUE(writes(handle, mine, there[1], kStep));
    ASSERT_TRUE(writes(handle, mine, there[0], kAll));
    say(control.left(), 'k');
    int code = SMEM_OK;
    while (code == SMEM_OK) code = smem_trans_write(handle, mine, kTarget, there[0], kAll);
    const auto noticed = std::chrono::steady_clock::now();
    EXPECT_EQ(code, SMEM_NOT_CONNECTED) << smem_get_last_err_msg();
    EXPECT_TRUE(says(kTarget));
    EXPECT_LT(noticed - hear<std::chrono::steady_clock::time_point>(control.left()),
              std::chrono::seconds(1));
    smem_trans_destroy(handle, 0);
    EXPECT_EQ(handles(), 0u);
  });
  hear<char>(control.right());
  const auto when = std::chrono::steady_clock::now();
  target.kill();
  say(control.right(), when);
  initiator.join();
}

TEST(TransCudaMemoryTest, AWindowOfAPoolIsRegisteredAsAnyMemory) {
  Store pools;
  between(
      [&](smem_trans_t handle, int wire) {
        smem_bm_config_t config;
        ASSERT_EQ(smem_bm_config_init(&config), SMEM_OK);
        config.startConfigStoreServer = false;
        config.autoRanking = false;
        config.rankId = 0;
        ASSERT_EQ(smem_bm_init(pools.url(), 1, 0, &config), SMEM_OK) << smem_get_last_err_msg();
        const smem_bm_t pool = smem_bm_create(0, 0, SMEMB_DATA_OP_SDMA, 0, 2 * kStep, 0);
        ASSERT_EQ(smem_bm_join(pool, 0, nullptr), SMEM_OK) << smem_get_last_err_msg();
        const auto window =
            static_cast<Place>(smem_bm_ptr_by_mem_type(pool, SMEM_MEM_TYPE_DEVICE, 0));
        ASSERT_TRUE(registers(handle, window, 2 * kStep));
        say(wire, window);
        EXPECT_EQ(hear<char>(wire), 'w');
        EXPECT_EQ(from_gpu(window + 9, kStep), pattern(kStep, 8));
        EXPECT_EQ(smem_trans_deregister_mem(handle, window), SMEM_OK);
        smem_bm_destroy(pool);
        smem_bm_uninit(0);
        say(wire, 'd');
        EXPECT_EQ(hear<char>(wire), 'r');
      },
      [](smem_trans_t handle, int wire) {
        const auto there = hear<Place>(wire);
        const Place mine = on_gpu(pattern(kStep, 8));
        EXPECT_TRUE(writes(handle, mine, there + 9, kStep));
        Bytes back(kStep);
        EXPECT_TRUE(reads(handle, back.data(), there + 9, kStep));
        EXPECT_EQ(back, pattern(kStep, 8));
        say(wire, 'w');
        EXPECT_EQ(hear<char>(wire), 'd');
        EXPECT_EQ(smem_trans_write(handle, mine, kTarget, there, 1), SMEM_NOT_EXIST);
        EXPECT_TRUE(says("it has registered nothing"));
        say(wire, 'r');
      });
}

}  // namespace
}  // namespace trans
