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

}  // namespace trans
