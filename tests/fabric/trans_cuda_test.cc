// SPDX-License-Identifier: Apache-2.0
// Transfers from and to memory of a GPU, at once and by its streams, on the stand-in of the CUDA
// driver.
#include <memspan/stream.h>
#include <memspan/transfer.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <vector>

#include "fabric/trans_cuda.h"

namespace trans {
namespace {

constexpr std::size_t kBytes = std::size_t{3} << 20;
constexpr std::size_t kEdge = 4096 + 17;

// What the target has: of each all but its edges is registered.
struct Target {
  unsigned char* gpu = nullptr;
  unsigned char* host = nullptr;    // the program's own
  unsigned char* handed = nullptr;  // smem_trans_malloc's, whole
};

template <typename Initiate>
void with_target(Initiate initiate) {
  Store store;
  Wire wire;
  Side target([&] {
    use_gpu();
    const auto handle = create(store.url(), kTarget, SMEM_TRANS_RECEIVER);
    Target mine{on_gpu(Bytes(kBytes, 7)), fresh_pages(kBytes, 7),
                static_cast<unsigned char*>(smem_trans_malloc(handle, kBytes))};
    for (unsigned char* memory : {mine.gpu, mine.host})
      EXPECT_EQ(smem_trans_register_mem(handle, memory + kEdge, kBytes - 2 * kEdge, 0), SMEM_OK)
          << smem_get_last_err_msg();
    say(wire.left(), mine);
    hear<char>(wire.left());
    const Bytes end = from_gpu(mine.gpu, kBytes);
    EXPECT_TRUE(all_are(end.data(), kEdge, 7)) << "before what is registered";
    EXPECT_TRUE(all_are(end.data() + kBytes - kEdge, kEdge, 7)) << "after it";
    smem_trans_destroy(handle, 0);
  });
  Side initiator([&] {
    use_gpu();
    const auto handle = create(store.url(), kInitiator, SMEM_TRANS_SENDER);
    initiate(handle, hear<Target>(wire.right()));
    smem_trans_destroy(handle, 0);
    say(wire.right(), 'd');
  });
  initiator.join();
  target.join();
}

// Goes from `local` to the place at the peer and comes back to `back`.
void goes_and_comes(smem_trans_t handle, const void* local, unsigned char* place, void* back,
                    std::size_t bytes) {
  ASSERT_EQ(smem_trans_write(handle, local, kTarget, place, bytes), SMEM_OK)
      << smem_get_last_err_msg();
  ASSERT_EQ(smem_trans_read(handle, back, kTarget, place, bytes), SMEM_OK)
      << smem_get_last_err_msg();
}

TEST(TransCudaTest, MovesBetweenEveryKindOfMemory) {
  with_target([](smem_trans_t handle, const Target& there) {
    constexpr std::size_t kMoved = (std::size_t{2} << 20) + 4099;
    int seed = 0;
    for (unsigned char* remote : {there.gpu, there.host, there.handed}) {
      const Bytes sent = pattern(kMoved, ++seed);
      unsigned char* const mine = on_gpu(sent);
      unsigned char* const back = on_gpu(Bytes(kMoved, 0));
      goes_and_comes(handle, mine, remote + kEdge, back, kMoved);
      EXPECT_EQ(from_gpu(back, kMoved), sent) << "from and to the GPU, " << seed;
      const Bytes plain = pattern(kMoved, seed + 10);
      Bytes came(kMoved, 0);
      goes_and_comes(handle, plain.data(), remote + kEdge, came.data(), kMoved);
      EXPECT_EQ(came, plain) << "from and to the host, " << seed;
    }
  });
}

TEST(TransCudaTest, ABatchMixesKinds) {
  with_target([](smem_trans_t handle, const Target& there) {
    constexpr std::size_t kEach = 5000, kCount = 6;
    const Bytes sent = pattern(kEach * kCount, 3);
    unsigned char* const mine = on_gpu(sent);
    const std::array<unsigned char*, 3> places{there.gpu, there.host, there.handed};
    std::vector<const void*> from;
    std::vector<void*> to;
    for (std::size_t i = 0; i < kCount; ++i) {
      from.push_back((i < 3 ? mine : sent.data()) + i * kEach);
      to.push_back(places[i % 3] + kEdge + i * kEach);
    }
    std::vector<std::size_t> sizes(kCount, kEach);
    ASSERT_EQ(smem_trans_batch_write(handle, from.data(), kTarget, to.data(), sizes.data(), kCount),
              SMEM_OK)
        << smem_get_last_err_msg();
    Bytes back(kEach * kCount, 0);
    std::vector<void*> into;
    for (std::size_t i = 0; i < kCount; ++i) into.push_back(back.data() + i * kEach);
    std::vector<const void*> where(to.begin(), to.end());
    ASSERT_EQ(
        smem_trans_batch_read(handle, into.data(), kTarget, where.data(), sizes.data(), kCount),
        SMEM_OK);
    EXPECT_EQ(back, sent);
  });
}

TEST(TransCudaTest, RefusesWhatIsNotRegistered) {
  with_target([](smem_trans_t handle, const Target& there) {
    unsigned char* const mine = on_gpu(Bytes(100, 1));
    EXPECT_EQ(smem_trans_write(handle, mine, kTarget, there.gpu + kEdge - 1, 2), SMEM_NOT_EXIST);
    EXPECT_EQ(smem_trans_write(handle, mine, kTarget, there.gpu + kBytes - kEdge - 1, 2),
              SMEM_NOT_EXIST);
    EXPECT_EQ(smem_trans_write(handle, mine, kTarget, there.gpu + kBytes - kEdge - 1, 1), SMEM_OK);
    // The local end is looked at before the driver has it.
    EXPECT_EQ(smem_trans_write(handle, reinterpret_cast<void*>(16), kTarget, there.gpu + kEdge, 8),
              SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("there is no memory at"));
  });
}

TEST(TransCudaTest, RegistrationsOfDeviceMemoryAreChecked) {
  Store store;
  Side side([&] {
    use_gpu();
    const auto handle = create(store.url(), kTarget);
    unsigned char* const memory = on_gpu(Bytes(kBytes, 1));
    EXPECT_EQ(smem_trans_register_mem(handle, memory, 1000, 0), SMEM_OK);
    EXPECT_EQ(smem_trans_register_mem(handle, memory, 1000, 0), SMEM_OK) << "the same again";
    EXPECT_EQ(smem_trans_register_mem(handle, memory + 999, 2, 0), SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("overlap"));
    EXPECT_EQ(smem_trans_register_mem(handle, memory + 1000, 10 * kBytes, 0), SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("are more than the"));
    std::array<void*, 2> both{memory + 2000, fresh_pages(4096, 1)};
    std::array<std::size_t, 2> sizes{100, 100};
    EXPECT_EQ(smem_trans_batch_register_mem(handle, both.data(), sizes.data(), 2, 0),
              SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("of the host and of a device"));
    both[1] = memory + 1500;
    sizes[1] = 501;  // touches the first
    EXPECT_EQ(smem_trans_batch_register_mem(handle, both.data(), sizes.data(), 2, 0),
              SMEM_INVALID_PARAM);
    sizes[1] = 500;  // nothing of the refused batch is left
    EXPECT_EQ(smem_trans_batch_register_mem(handle, both.data(), sizes.data(), 2, 0), SMEM_OK);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(smem_trans_deregister_mem(handle, memory), SMEM_OK);
    EXPECT_EQ(smem_trans_register_mem(handle, memory + 999, 2, 0), SMEM_OK);
    smem_trans_destroy(handle, 0);
  });
  side.join();
}

TEST(TransCudaTest, ATargetThatIsKilledIsNamedSoon) {
  Store store;
  Wire wire, control;
  Side target([&] {
    use_gpu();
    const auto handle = create(store.url(), kTarget, SMEM_TRANS_RECEIVER);
    unsigned char* const memory = on_gpu(Bytes(kBytes, 7));
    EXPECT_EQ(smem_trans_register_mem(handle, memory, kBytes, 0), SMEM_OK);
    say(wire.left(), memory);
    hear<char>(wire.left());
  });
  Side initiator([&] {
    use_gpu();
    const auto handle = create(store.url(), kInitiator, SMEM_TRANS_SENDER);
    auto* const there = hear<unsigned char*>(wire.right());
    unsigned char* const mine = on_gpu(Bytes(kBytes, 1));
    ASSERT_EQ(smem_trans_write(handle, mine, kTarget, there, kBytes), SMEM_OK)
        << smem_get_last_err_msg();
    say(control.left(), 'k');
    int code = SMEM_OK;
    while (code == SMEM_OK) code = smem_trans_write(handle, mine, kTarget, there, kBytes);
    const auto noticed = std::chrono::steady_clock::now();
    EXPECT_EQ(code, SMEM_NOT_CONNECTED) << smem_get_last_err_msg();
    EXPECT_TRUE(says(kTarget));
    EXPECT_EQ(smem_trans_write_submit(handle, mine, kTarget, there, 1, gpu_stream()),
              SMEM_NOT_CONNECTED);
    EXPECT_LT(noticed - hear<std::chrono::steady_clock::time_point>(control.left()),
              std::chrono::seconds(1));
    smem_trans_destroy(handle, 0);
  });
  hear<char>(control.right());
  const auto when = std::chrono::steady_clock::now();
  target.kill();
  say(control.right(), when);
  initiator.join();
}

TEST(TransCudaTest, StreamsOfTheHostCopyItsMemory) {
  Side side([&] {
    use_gpu();
    memspan_stream_t stream = nullptr;
    ASSERT_EQ(memspan_stream_create(&stream), 0);
    const Bytes sent = pattern(5000, 1);
    unsigned char* const one = on_gpu(Bytes(5000, 0));
    unsigned char* const other = on_gpu(Bytes(5000, 0));
    Bytes back(5000, 0);
    EXPECT_EQ(memspan_stream_copy(stream, one, sent.data(), sent.size()), 0);
    EXPECT_EQ(memspan_stream_copy(stream, other, one, sent.size()), 0);
    EXPECT_EQ(memspan_stream_copy(stream, back.data(), other, sent.size()), 0);
    EXPECT_EQ(memspan_stream_synchronize(stream, 10000), 0);
    EXPECT_EQ(back, sent);
    EXPECT_EQ(memspan_stream_destroy(stream), 0);
  });
  side.join();
}

TEST(TransCudaTest, AStreamDoesInItsOrderWhatItWasGiven) {
  with_target([](smem_trans_t handle, const Target& there) {
    constexpr std::size_t kMoved = 100003;
    void* const stream = gpu_stream();
    int seed = 0;
    for (unsigned char* remote : {there.gpu, there.host, there.handed}) {
      unsigned char* const mine = on_gpu(Bytes(kMoved, 0));
      unsigned char* const back = on_gpu(Bytes(kMoved, 0));
      Bytes plain(kMoved, 0);
      const Bytes sent = pattern(kMoved, ++seed);
      Gate gate;
      gpu_call(stream, Gate::pass, &gate);
      EXPECT_EQ(smem_trans_write_submit(handle, mine, kTarget, remote + kEdge, kMoved, stream),
                SMEM_OK)
          << smem_get_last_err_msg();
      EXPECT_EQ(smem_trans_read_submit(handle, back, kTarget, remote + kEdge, kMoved, stream),
                SMEM_OK);
      EXPECT_EQ(
          smem_trans_read_submit(handle, plain.data(), kTarget, remote + kEdge, kMoved, stream),
          SMEM_OK);
      // It has not begun: this is what it finds.
      EXPECT_TRUE(gpu_copies(mine, sent.data(), kMoved));
      gate.open();
      EXPECT_EQ(gpu_synchronize(stream), 0);
      EXPECT_EQ(from_gpu(back, kMoved), sent) << seed;
      EXPECT_EQ(plain, sent) << seed;
    }
  });
}

TEST(TransCudaTest, AStreamsTransferIsRefusedAtOnce) {
  with_target([](smem_trans_t handle, const Target& there) {
    void* const stream = gpu_stream();
    unsigned char* const mine = on_gpu(Bytes(100, 1));
    EXPECT_EQ(smem_trans_write_submit(handle, mine, kTarget, there.gpu + kEdge - 1, 2, stream),
              SMEM_NOT_EXIST);
    EXPECT_EQ(smem_trans_write_submit(handle, mine, kTarget, there.gpu + kEdge, 0, stream),
              SMEM_INVALID_PARAM);
    // A handle of a stream of memspan's that is none any more.
    memspan_stream_t gone = nullptr;
    ASSERT_EQ(memspan_stream_create(&gone), 0);
    ASSERT_EQ(memspan_stream_destroy(gone), 0);
    EXPECT_EQ(smem_trans_write_submit(handle, mine, kTarget, there.gpu + kEdge, 2, gone),
              SMEM_INVALID_PARAM);
    // The host's own streams take the same memory.
    memspan_stream_t host_stream = nullptr;
    ASSERT_EQ(memspan_stream_create(&host_stream), 0);
    EXPECT_EQ(smem_trans_write_submit(handle, mine, kTarget, there.gpu + kEdge, 100, host_stream),
              SMEM_OK);
    EXPECT_EQ(memspan_stream_synchronize(host_stream, 10000), SMEM_OK);
    unsigned char* const back = on_gpu(Bytes(100, 0));
    ASSERT_EQ(smem_trans_read(handle, back, kTarget, there.gpu + kEdge, 100), SMEM_OK);
    EXPECT_EQ(from_gpu(back, 100), Bytes(100, 1));
    EXPECT_EQ(memspan_stream_destroy(host_stream), 0);
  });
}

}  // namespace
}  // namespace trans
