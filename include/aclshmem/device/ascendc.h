// SPDX-License-Identifier: Apache-2.0
// The words of AscendC that sources with CANN SHMEM's device functions use, as thin views on memory
// of the host, so that such a source compiles and runs as a kernel of the host device. C++17. With
// MEMSPAN_NO_ASCENDC the program has them from elsewhere.
#ifndef MEMSPAN_ACLSHMEM_ASCENDC_H
#define MEMSPAN_ACLSHMEM_ASCENDC_H

#ifndef MEMSPAN_NO_ASCENDC

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "../../memspan/kernel.h"

// Kinds of memory and of functions: there is one of each here.
#ifndef __gm__
#define __gm__
#endif
#if !defined __ubuf__ && !defined MEMSPAN_KERNEL_SOURCE  // memspan-kernels looks for the word
#define __ubuf__
#endif
#ifndef __aicore__
#define __aicore__
#endif
#ifndef __global__
#define __global__
#endif
#ifndef __vector__
#define __vector__
#endif
#ifndef GM_ADDR
#define GM_ADDR std::uint8_t*
#endif

namespace memspan::device {

inline float float_of_bits(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline std::uint32_t bits_of_float(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// Converts from IEEE 754's 16 bits.
inline float widen_half(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits} << 16 & 0x80000000U;
  const std::uint32_t exponent = bits >> 10 & 0x1fU;
  const std::uint32_t fraction = bits & 0x3ffU;
  if (exponent == 0x1f) return float_of_bits(sign | 0x7f800000U | fraction << 13);
  if (exponent != 0) return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
  const float small = static_cast<float>(fraction) * 0x1p-24F;
  return sign != 0 ? -small : small;
}
// To the nearest, ties to even.
inline std::uint16_t narrow_to_half(float value) {
  const std::uint32_t bits = bits_of_float(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
  const std::uint32_t size = bits & 0x7fffffffU;
  if (size > 0x7f800000U) return static_cast<std::uint16_t>(sign | 0x7e00U);  // no number
  if (size >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);
  if (size >= 0x38800000U)
    return static_cast<std::uint16_t>(sign |
                                      (size - 0x38000000U + 0xfffU + (size >> 13 & 1U)) >> 13);
  // Below the least normal one: adding aligns and rounds.
  const std::uint32_t small = bits_of_float(float_of_bits(size) + 0.5F);
  return static_cast<std::uint16_t>(sign | (small - 0x3f000000U));
}
inline std::uint16_t narrow_to_bfloat16(float value) {
  const std::uint32_t bits = bits_of_float(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U)
    return static_cast<std::uint16_t>(bits >> 16 | 0x40U);  // no number
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

}  // namespace memspan::device

// Two bytes each; arithmetic is that of float.
struct half {
  half() = default;
  half(float value) : bits(memspan::device::narrow_to_half(value)) {}
  operator float() const { return memspan::device::widen_half(bits); }
  std::uint16_t bits = 0;
};
struct bfloat16_t {
  bfloat16_t() = default;
  bfloat16_t(float value) : bits(memspan::device::narrow_to_bfloat16(value)) {}
  operator float() const { return memspan::device::float_of_bits(std::uint32_t{bits} << 16); }
  std::uint16_t bits = 0;
};
using float16_t = half;

// Pipelines of the chip: all is done in the order of the program here.
enum pipe_t { PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_ALL, PIPE_FIX };

namespace AscendC {

enum class TPosition { GM, A1, A2, B1, B2, CO1, CO2, VECIN, VECCALC, VECOUT, MAX };
using TEventID = std::int8_t;

inline std::int64_t GetBlockIdx() {
  return memspan::kernel::block();
}
inline std::int64_t GetBlockNum() {
  return memspan::kernel::blocks();
}
inline std::int64_t GetSubBlockIdx() {
  return 0;
}
inline std::int64_t GetSubBlockNum() {
  return 1;
}

template <pipe_t>
inline void PipeBarrier() {}
// All blocks of the grid.
template <bool = true>
inline void SyncAll() {
  memspan::kernel::sync_grid();
}

// Elements in memory that the view does not own.
template <typename T>
class TensorView {
 public:
  TensorView() = default;
  TensorView(T* data, std::uint64_t size) : data_(data), size_(size) {}
  T GetValue(std::uint64_t i) const { return data_[i]; }
  void SetValue(std::uint64_t i, T value) const { data_[i] = value; }
  T& operator()(std::uint64_t i) const { return data_[i]; }
  std::uint64_t GetSize() const { return size_; }
  T* data() const { return data_; }

 protected:
  T* data_ = nullptr;
  std::uint64_t size_ = 0;  // 0: unknown
};

template <typename T>
class GlobalTensor : public TensorView<T> {
 public:
  using PrimType = T;
  using TensorView<T>::TensorView;
  void SetGlobalBuffer(T* data, std::uint64_t size = 0) { *this = GlobalTensor(data, size); }
  const T* GetPhyAddr() const { return this->data_; }
  const T* GetPhyAddr(std::uint64_t offset) const { return this->data_ + offset; }
  GlobalTensor operator[](std::uint64_t offset) const {
    return {this->data_ + offset, this->size_ > offset ? this->size_ - offset : 0};
  }
};

template <typename T>
class LocalTensor : public TensorView<T> {
 public:
  using PrimType = T;
  using TensorView<T>::TensorView;
  void SetAddr(T* data, std::uint64_t size = 0) { *this = LocalTensor(data, size); }
  void SetSize(std::uint64_t size) { this->size_ = size; }
  std::uint64_t GetPhyAddr() const { return reinterpret_cast<std::uint64_t>(this->data_); }
  LocalTensor operator[](std::uint64_t offset) const {
    return {this->data_ + offset, this->size_ > offset ? this->size_ - offset : 0};
  }
};

// Rows of a copy; the lengths' units are those of the function that takes them.
struct DataCopyExtParams {
  DataCopyExtParams() = default;
  DataCopyExtParams(std::uint16_t count, std::uint32_t length, std::uint32_t source_gap,
                    std::uint32_t dest_gap, std::uint32_t reserved)
      : blockCount(count),
        blockLen(length),
        srcStride(source_gap),
        dstStride(dest_gap),
        rsv(reserved) {}
  std::uint16_t blockCount = 1;
  std::uint32_t blockLen = 0;
  std::uint32_t srcStride = 0;
  std::uint32_t dstStride = 0;
  std::uint32_t rsv = 0;
};

}  // namespace AscendC

#endif  // MEMSPAN_NO_ASCENDC
#endif
