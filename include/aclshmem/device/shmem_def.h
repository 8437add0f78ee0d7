// SPDX-License-Identifier: Apache-2.0
// CANN SHMEM: types of device code, version 1.5, and the lists of element types that its functions
// are made for. C++17.
#ifndef MEMSPAN_ACLSHMEM_DEVICE_DEF_H
#define MEMSPAN_ACLSHMEM_DEVICE_DEF_H

#include "../../memspan/kernel.h"
#include "../host_device/shmem_common_types.h"
#include "ascendc.h"
#include "ascendc_pipe.h"

#ifndef ACLSHMEM_DEVICE
#define ACLSHMEM_DEVICE __inline__  // sources make a macro of the plain word
#endif

#define UB_ALIGN_SIZE 32
#define UB_ALIGN_SIZE_64 64

// `repeat` rows of `length` elements, whose beginnings are src_ld and dst_ld elements apart.
struct non_contiguous_copy_param {
  std::uint32_t repeat;
  std::uint32_t length;
  std::uint32_t src_ld;
  std::uint32_t dst_ld;
};

// X(name, type).
#define MEMSPAN_DEVICE_INTEGERS_4_8(X) \
  X(int32, std::int32_t)               \
  X(int64, std::int64_t)               \
  X(uint32, std::uint32_t)             \
  X(uint64, std::uint64_t)
#define MEMSPAN_DEVICE_TYPES(X) \
  X(half, half)                 \
  X(float, float)               \
  X(double, double)             \
  X(int8, std::int8_t)          \
  X(int16, std::int16_t)        \
  X(uint8, std::uint8_t)        \
  X(uint16, std::uint16_t)      \
  X(char, char)                 \
  X(bfloat16, bfloat16_t)       \
  MEMSPAN_DEVICE_INTEGERS_4_8(X)
#define MEMSPAN_DEVICE_WAIT_TYPES(X) \
  X(float, float)                    \
  X(int8, std::int8_t)               \
  X(int16, std::int16_t)             \
  X(uint8, std::uint8_t)             \
  X(uint16, std::uint16_t)           \
  X(char, char)                      \
  MEMSPAN_DEVICE_INTEGERS_4_8(X)
// X(bits, bytes).
#define MEMSPAN_DEVICE_SIZES(X) X(8, 1) X(16, 2) X(32, 4) X(64, 8) X(128, 16)

namespace memspan::device {

template <typename T>
inline T* address(const AscendC::GlobalTensor<T>& tensor) {
  return tensor.data();
}
template <typename T>
inline T* address(const AscendC::LocalTensor<T>& tensor) {
  return tensor.data();
}

inline kernel::Rows rows(const non_contiguous_copy_param& shape) {
  return {shape.repeat, shape.length, static_cast<std::ptrdiff_t>(shape.src_ld),
          static_cast<std::ptrdiff_t>(shape.dst_ld)};
}

inline kernel::SignalOp signal_op(int op) {
  return static_cast<kernel::SignalOp>(op);
}
inline kernel::Compare compare(int op) {
  return static_cast<kernel::Compare>(op);
}

// Rows or elements, then the signal.
template <typename T>
inline void put_signal(T* dst, const T* src, std::size_t count, std::int32_t* signal,
                       std::int32_t value, int op, int pe) {
  kernel::put_signal(dst, src, count, signal, value, signal_op(op), pe);
}
template <typename T>
inline void put_signal(T* dst, const T* src, const non_contiguous_copy_param& shape,
                       std::int32_t* signal, std::int32_t value, int op, int pe) {
  kernel::put_2d(dst, src, rows(shape), pe);
  kernel::fence();
  kernel::signal_op(signal, value, signal_op(op), pe);
}

}  // namespace memspan::device

#endif
