// SPDX-License-Identifier: Apache-2.0
// What the host and the kernel of the test of device code share.
#pragma once

#include <cstdint>

inline constexpr unsigned kKernelBlocks = 3;

// Of one block. Two-byte floating-point numbers are bits for the host.
struct KernelPart {
  float floats[64];
  std::int64_t wide[8];
#ifdef MEMSPAN_DEVICE_CODE
  half halves[4];
#else
  std::uint16_t halves[4];
#endif
  std::int8_t bytes[4];
  std::int16_t shorts[2];
  std::int32_t set[4];
  std::int32_t signal;
  std::uint32_t bits;
  std::uint64_t wide_signal;
  std::int64_t counter;
};
struct KernelWords {
  KernelPart parts[kKernelBlocks];
};

void cann_kernel(std::uint8_t* words);
