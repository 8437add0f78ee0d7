// SPDX-License-Identifier: Apache-2.0
// AscendC's buffers of a block, copies to and from them, and simple arithmetic on them, as far as
// kernels that move data need it. A block's buffer ("ub") is scratch memory of the thread that runs
// the block, MEMSPAN_KERNEL_SCRATCH_BYTES, whose bytes are undefined at the block's start. All is
// done when the call returns, so flags and barriers of pipelines have nothing to wait for. C++17.
#ifndef MEMSPAN_ACLSHMEM_ASCENDC_PIPE_H
#define MEMSPAN_ACLSHMEM_ASCENDC_PIPE_H

#include "ascendc.h"

#ifndef MEMSPAN_NO_ASCENDC

#include <cstdio>
#include <cstdlib>

namespace memspan::device {

// Numbers from 0 on and addresses both name places in a block's buffer.
template <typename To, typename From>
inline To ub_cast(From from) {
  if constexpr (std::is_integral_v<From> || std::is_enum_v<From>) {
    const auto number = static_cast<std::uintptr_t>(from);
    return number < MEMSPAN_KERNEL_SCRATCH_BYTES
               ? (To)(static_cast<std::byte*>(memspan_kernel_scratch()) + number)
               : (To)number;
  } else {
    return (To)from;
  }
}

// Replaces (__ubuf__ T*) in sources that memspan-kernels compiles, with the same precedence.
template <typename To>
struct UbCast {
  struct Dereferenced {
    template <typename From>
    std::remove_pointer_t<To>& operator->*(From from) const {
      return *ub_cast<To>(from);
    }
  };
  template <typename From>
  To operator->*(From from) const {
    return ub_cast<To>(from);
  }
  Dereferenced operator*() const { return {}; }
};

inline constexpr std::size_t kUbUnit = 32;
inline constexpr std::size_t in_ub(std::size_t bytes) {
  return (bytes + kUbUnit - 1) / kUbUnit * kUbUnit;
}

inline void copy_rows(void* dest, std::size_t dest_pitch, const void* source,
                      std::size_t source_pitch, std::size_t bytes, std::size_t rows) {
  for (std::size_t i = 0; i < rows; ++i)
    std::memcpy(static_cast<std::byte*>(dest) + i * dest_pitch,
                static_cast<const std::byte*>(source) + i * source_pitch, bytes);
}
// Rows of blockLen bytes. Between the end of one and the beginning of the next are so many bytes in
// global memory, and so many units of 32 bytes in the block's buffer, where rows begin at multiples
// of 32 bytes.
inline void copy_rows_to_ub(void* ub, const void* global, const AscendC::DataCopyExtParams& shape) {
  copy_rows(ub, in_ub(shape.blockLen) + shape.dstStride * kUbUnit, global,
            std::size_t{shape.blockLen} + shape.srcStride, shape.blockLen, shape.blockCount);
}
inline void copy_rows_from_ub(void* global, const void* ub,
                              const AscendC::DataCopyExtParams& shape) {
  copy_rows(global, std::size_t{shape.blockLen} + shape.dstStride, ub,
            in_ub(shape.blockLen) + shape.srcStride * kUbUnit, shape.blockLen, shape.blockCount);
}

[[noreturn]] inline void end_kernel(const char* call, const char* why) {
  std::fprintf(stderr, "memspan: %s: %s\n", call, why);
  std::abort();
}

}  // namespace memspan::device

// One at a time of each: there is no matrix engine that a kernel would leave to others.
#define ASCEND_IS_AIV constexpr(true)
#define ASCEND_IS_AIC constexpr(false)

enum event_t : std::int8_t {
  EVENT_ID0,
  EVENT_ID1,
  EVENT_ID2,
  EVENT_ID3,
  EVENT_ID4,
  EVENT_ID5,
  EVENT_ID6,
  EVENT_ID7
};

namespace AscendC {

enum class HardEvent : std::uint8_t {
  MTE2_MTE1,
  MTE1_MTE2,
  MTE2_MTE3,
  MTE3_MTE2,
  MTE2_V,
  V_MTE2,
  MTE3_V,
  V_MTE3,
  MTE2_S,
  S_MTE2,
  MTE3_S,
  S_MTE3,
  V_S,
  S_V,
  V_V,
  M_V,
  V_M,
  MTE1_M,
  M_MTE1
};
template <HardEvent>
inline void SetFlag(std::int32_t) {}
template <HardEvent>
inline void WaitFlag(std::int32_t) {}

enum class RoundMode {
  CAST_NONE,
  CAST_RINT,
  CAST_FLOOR,
  CAST_CEIL,
  CAST_ROUND,
  CAST_TRUNC,
  CAST_ODD
};

struct DataCopyParams {
  DataCopyParams() = default;
  DataCopyParams(std::uint16_t count, std::uint16_t length, std::uint16_t source_gap,
                 std::uint16_t dest_gap)
      : blockCount(count), blockLen(length), srcStride(source_gap), dstStride(dest_gap) {}
  std::uint16_t blockCount = 1;
  std::uint16_t blockLen = 0;  // this and the gaps in units of 32 bytes
  std::uint16_t srcStride = 0;
  std::uint16_t dstStride = 0;
};
// The fill of the rest of a row's last 32 bytes in a block's buffer: unused on the host device.
template <typename T>
struct DataCopyPadExtParams {
  DataCopyPadExtParams() = default;
  DataCopyPadExtParams(bool is_pad, std::uint8_t left, std::uint8_t right, T value)
      : isPad(is_pad), leftPadding(left), rightPadding(right), paddingValue(value) {}
  bool isPad = false;
  std::uint8_t leftPadding = 0;
  std::uint8_t rightPadding = 0;
  T paddingValue{};
};

// `count` elements.
template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, std::uint32_t count) {
  std::memcpy(static_cast<void*>(dst.data()), src.data(), count * sizeof(T));
}
template <typename T>
inline void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, std::uint32_t count) {
  std::memcpy(static_cast<void*>(dst.data()), src.data(), count * sizeof(T));
}
template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, std::uint32_t count) {
  std::memmove(static_cast<void*>(dst.data()), src.data(), count * sizeof(T));
}
template <typename To, typename From>
inline void DataCopy(const To& dst, const From& src, const DataCopyParams& shape) {
  constexpr std::size_t kUnit = memspan::device::kUbUnit;
  const std::size_t bytes = shape.blockLen * kUnit;
  memspan::device::copy_rows(dst.data(), bytes + shape.dstStride * kUnit, src.data(),
                             bytes + shape.srcStride * kUnit, bytes, shape.blockCount);
}
// Rows of so many bytes.
template <typename T>
inline void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src,
                        const DataCopyExtParams& shape, const DataCopyPadExtParams<T>&) {
  memspan::device::copy_rows_to_ub(dst.data(), src.data(), shape);
}
template <typename T>
inline void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src,
                        const DataCopyExtParams& shape) {
  memspan::device::copy_rows_from_ub(dst.data(), src.data(), shape);
}

// Arithmetic on `count` elements.
template <typename T>
inline void Duplicate(const LocalTensor<T>& dst, T value, std::int32_t count) {
  for (std::int32_t i = 0; i < count; ++i) dst.data()[i] = value;
}
#define MEMSPAN_ASCENDC_OF_TWO(Name, expression)                          \
  template <typename T>                                                   \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, \
                   const LocalTensor<T>& src1, std::int32_t count) {      \
    for (std::int32_t i = 0; i < count; ++i) {                            \
      const T a = src0.data()[i];                                         \
      const T b = src1.data()[i];                                         \
      dst.data()[i] = static_cast<T>(expression);                         \
    }                                                                     \
  }
MEMSPAN_ASCENDC_OF_TWO(Add, a + b)
MEMSPAN_ASCENDC_OF_TWO(Sub, a - b)
MEMSPAN_ASCENDC_OF_TWO(Mul, a* b)
MEMSPAN_ASCENDC_OF_TWO(Div, a / b)
MEMSPAN_ASCENDC_OF_TWO(Max, a < b ? b : a)
MEMSPAN_ASCENDC_OF_TWO(Min, b < a ? b : a)
#undef MEMSPAN_ASCENDC_OF_TWO
#define MEMSPAN_ASCENDC_WITH_NUMBER(Name, expression)                         \
  template <typename T>                                                       \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, T b, \
                   std::int32_t count) {                                      \
    for (std::int32_t i = 0; i < count; ++i) {                                \
      const T a = src.data()[i];                                              \
      dst.data()[i] = static_cast<T>(expression);                             \
    }                                                                         \
  }
MEMSPAN_ASCENDC_WITH_NUMBER(Adds, a + b)
MEMSPAN_ASCENDC_WITH_NUMBER(Muls, a* b)
#undef MEMSPAN_ASCENDC_WITH_NUMBER
// To whole numbers from others as the mode says; CAST_NONE and CAST_RINT to the nearest.
template <typename To, typename From>
inline void Cast(const LocalTensor<To>& dst, const LocalTensor<From>& src, RoundMode mode,
                 std::uint32_t count) {
  const auto whole = [mode](float value) {
    switch (mode) {
      case RoundMode::CAST_FLOOR:
        return __builtin_floorf(value);
      case RoundMode::CAST_CEIL:
        return __builtin_ceilf(value);
      case RoundMode::CAST_ROUND:
        return __builtin_roundf(value);
      case RoundMode::CAST_TRUNC:
        return __builtin_truncf(value);
      default:
        return __builtin_rintf(value);
    }
  };
  for (std::uint32_t i = 0; i < count; ++i) {
    if constexpr (std::is_integral_v<To> && !std::is_integral_v<From>)
      dst.data()[i] = static_cast<To>(whole(static_cast<float>(src.data()[i])));
    else
      dst.data()[i] = static_cast<To>(src.data()[i]);
  }
}

// A part of the block's buffer; TPipe::InitBuffer() gives it.
template <TPosition position = TPosition::VECCALC>
class TBuf {
 public:
  template <typename T>
  LocalTensor<T> Get() const {
    return Get<T>(static_cast<std::uint32_t>(bytes_ / sizeof(T)));
  }
  template <typename T>
  LocalTensor<T> Get(std::uint32_t count) const {
    return GetWithOffset<T>(count, 0);
  }
  // `offset` in bytes.
  template <typename T>
  LocalTensor<T> GetWithOffset(std::uint32_t count, std::uint32_t offset) const {
    if (offset + count * sizeof(T) > bytes_)
      memspan::device::end_kernel("TBuf::Get", "that is more than InitBuffer gave");
    return {reinterpret_cast<T*>(base_ + offset), count};
  }

 private:
  friend class TPipe;
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
};

// Up to eight parts of the block's buffer, which are filled and read in turn.
template <TPosition position, std::int32_t depth = 1>
class TQue {
 public:
  template <typename T>
  LocalTensor<T> AllocTensor() {
    for (unsigned i = 0; i < count_; ++i)
      if ((taken_ & 1U << i) == 0) {
        taken_ |= 1U << i;
        return at<T>(i);
      }
    memspan::device::end_kernel("TQue::AllocTensor", "all buffers are taken");
  }
  template <typename T>
  bool EnQue(const LocalTensor<T>& tensor) {
    if (waiting_ == kMost) memspan::device::end_kernel("TQue::EnQue", "the queue is full");
    queue_[(first_ + waiting_++) % kMost] = number_of(tensor);
    return true;
  }
  template <typename T>
  LocalTensor<T> DeQue() {
    if (waiting_ == 0) memspan::device::end_kernel("TQue::DeQue", "the queue is empty");
    const unsigned number = queue_[first_];
    first_ = (first_ + 1) % kMost;
    --waiting_;
    return at<T>(number);
  }
  template <typename T>
  void FreeTensor(const LocalTensor<T>& tensor) {
    taken_ &= ~(1U << number_of(tensor));
  }

 private:
  friend class TPipe;
  static constexpr unsigned kMost = 8;
  template <typename T>
  LocalTensor<T> at(unsigned number) const {
    return {reinterpret_cast<T*>(base_ + number * bytes_), bytes_ / sizeof(T)};
  }
  template <typename T>
  unsigned number_of(const LocalTensor<T>& tensor) const {
    const auto offset =
        static_cast<std::size_t>(reinterpret_cast<const std::byte*>(tensor.data()) - base_);
    if (bytes_ == 0 || offset / bytes_ >= count_)
      memspan::device::end_kernel("TQue", "the tensor is not of this queue");
    return static_cast<unsigned>(offset / bytes_);
  }
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;  // of each
  unsigned count_ = 0;
  unsigned taken_ = 0;  // a bit for each
  unsigned queue_[kMost] = {};
  unsigned first_ = 0;
  unsigned waiting_ = 0;
};

// Divides the block's buffer. One at a time in a block.
class TPipe {
 public:
  template <TPosition position>
  bool InitBuffer(TBuf<position>& buffer, std::uint32_t bytes) {
    buffer.bytes_ = memspan::device::in_ub(bytes);
    buffer.base_ = take(buffer.bytes_);
    return true;
  }
  template <TPosition position, std::int32_t depth>
  bool InitBuffer(TQue<position, depth>& queue, std::uint8_t count, std::uint32_t bytes) {
    if (count > queue.kMost)
      memspan::device::end_kernel("TPipe::InitBuffer", "a queue has at most 8 buffers");
    queue.bytes_ = memspan::device::in_ub(bytes);
    queue.count_ = count;
    queue.base_ = take(queue.bytes_ * count);
    return true;
  }
  void Reset() { used_ = 0; }

 private:
  std::byte* take(std::size_t bytes) {
    if (bytes > MEMSPAN_KERNEL_SCRATCH_BYTES - used_)
      memspan::device::end_kernel("TPipe::InitBuffer", "a block's buffer has 256 KiB");
    std::byte* const base = static_cast<std::byte*>(memspan_kernel_scratch()) + used_;
    used_ += bytes;
    return base;
  }
  std::size_t used_ = 0;
};

}  // namespace AscendC

#endif  // MEMSPAN_NO_ASCENDC
#endif
