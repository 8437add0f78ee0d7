// SPDX-License-Identifier: Apache-2.0
// What the tests of transfers with memory of a GPU share.
#pragma once

#include <cstddef>
#include <vector>

#include "fabric/trans.h"

#define CHECK(what)                                            \
  do {                                                         \
    if (!(what)) ADD_FAILURE() << #what << " in " << __func__; \
  } while (false)
#include "support/cuda_driver/gpu.h"

namespace trans {

using Bytes = std::vector<unsigned char>;

inline Bytes pattern(std::size_t bytes, int seed) {
  Bytes made(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    made[i] = static_cast<unsigned char>(i * 31 + i / 4099 + static_cast<std::size_t>(seed));
  return made;
}
inline void put_on_gpu(unsigned char* to, const Bytes& bytes) {
  EXPECT_TRUE(gpu_copies(to, bytes.data(), bytes.size()));
}
inline unsigned char* on_gpu(const Bytes& bytes) {
  auto* made = reinterpret_cast<unsigned char*>(gpu_alloc(bytes.size()));
  put_on_gpu(made, bytes);
  return made;
}
inline Bytes from_gpu(const unsigned char* from, std::size_t bytes) {
  Bytes there(bytes);
  EXPECT_TRUE(gpu_copies(there.data(), from, bytes));
  return there;
}

// Holds a stream up until it is opened.
struct Gate {
  Wire wire;
  static void pass(void* gate) { hear<char>(static_cast<Gate*>(gate)->wire.left()); }
  void open() { say(wire.right(), 'o'); }
};

inline constexpr std::size_t kStep = std::size_t{2} << 20;
inline constexpr std::size_t kEdge = 4096 + 17;
using Place = unsigned char*;

// Allocations side by side, full of 7.
inline Place mapped(std::size_t count, int shareable_as = GPU_SHAREABLE) {
  auto* const made = reinterpret_cast<Place>(gpu_map(count, kStep, shareable_as));
  put_on_gpu(made, Bytes(count * kStep, 7));
  return made;
}

using Count = std::size_t (*)();
// Of allocations, that this process has; a driver does not tell.
inline std::size_t handles() {
  const auto count = reinterpret_cast<Count>(gpu_standin_function("standin_handles"));
  return count == nullptr ? 0 : count();
}

// Copies that this process has begun; on a driver, one more at each question.
inline std::size_t copies_begun() {
  static std::size_t asked = 0;
  const auto count = reinterpret_cast<Count>(gpu_standin_function("standin_copies_begun"));
  return count == nullptr ? ++asked : count();
}

// Other processes take memory of a real GPU, too.
inline testing::AssertionResult has_free(std::size_t bytes) {
  const std::size_t free_bytes = gpu_free_bytes();
  if (free_bytes == bytes || gpu_standin_function("standin_handles") == nullptr)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << free_bytes << " bytes are free, not " << bytes;
}

inline testing::AssertionResult registers(smem_trans_t handle, Place at, std::size_t bytes) {
  if (smem_trans_register_mem(handle, at, bytes, 0) == SMEM_OK) return testing::AssertionSuccess();
  return testing::AssertionFailure() << smem_get_last_err_msg();
}
inline testing::AssertionResult writes(smem_trans_t handle, const void* from, Place to,
                                       std::size_t bytes) {
  if (smem_trans_write(handle, from, kTarget, to, bytes) == SMEM_OK)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << smem_get_last_err_msg();
}
inline testing::AssertionResult reads(smem_trans_t handle, void* to, Place from,
                                      std::size_t bytes) {
  if (smem_trans_read(handle, to, kTarget, from, bytes) == SMEM_OK)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << smem_get_last_err_msg();
}

// A target and an initiator, each with an endpoint and a wire to the other.
template <typename Offer, typename Initiate>
void between(Offer offer, Initiate initiate) {
  Store store;
  Wire wire;
  Side target([&] {
    use_gpu();
    const auto handle = create(store.url(), kTarget, SMEM_TRANS_RECEIVER);
    offer(handle, wire.left());
    smem_trans_destroy(handle, 0);
  });
  Side initiator([&] {
    use_gpu();
    const auto handle = create(store.url(), kInitiator, SMEM_TRANS_SENDER);
    initiate(handle, wire.right());
    smem_trans_destroy(handle, 0);
  });
  initiator.join();
  target.join();
}

}  // namespace trans
