// SPDX-License-Identifier: Apache-2.0
#include "convert.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace matmul {
namespace {

constexpr std::size_t kBlock = 1024;

template <typename T>
[[gnu::always_inline]] inline void widen_loop(const T* from, double* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = from[i];
}

template <typename T>
[[gnu::always_inline]] inline void add_loop(const T* values, T* sum, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sum[i] += values[i];
}

template <typename T>
MATMUL_AVX512 void widen_avx512(const T* from, double* to, std::size_t count) {
  widen_loop(from, to, count);
}
template <typename T>
MATMUL_AVX512 void add_avx512(const T* values, T* sum, std::size_t count) {
  add_loop(values, sum, count);
}

template <typename T>
void widen(const void* from, double* to, std::size_t count) {
  const T* values = static_cast<const T*>(from);
  best_simd() == Simd::kAvx512 ? widen_avx512(values, to, count) : widen_loop(values, to, count);
}

template <typename T>
void add(const void* values, void* sum, std::size_t count) {
  const T* from = static_cast<const T*>(values);
  T* to = static_cast<T*>(sum);
  best_simd() == Simd::kAvx512 ? add_avx512(from, to, count) : add_loop(from, to, count);
}

}  // namespace

void widen_to_float(ElementType type, const void* from, float* to, std::size_t count) {
  if (type == ElementType::kFp16)
    fp16_to_float(static_cast<const std::uint16_t*>(from), to, count);
  else if (type == ElementType::kBf16)
    bf16_to_float(static_cast<const std::uint16_t*>(from), to, count);
  else
    std::memcpy(to, from, count * sizeof(float));
}

void widen_to_double(ElementType type, const void* from, double* to, std::size_t count) {
  if (type == ElementType::kInt32) return widen<std::int32_t>(from, to, count);
  if (type == ElementType::kFloat) return widen<float>(from, to, count);
  const auto* halves = static_cast<const std::uint16_t*>(from);
  for (std::size_t done = 0; done < count; done += kBlock) {
    std::array<float, kBlock> floats;
    std::size_t now = std::min(kBlock, count - done);
    widen_to_float(type, halves + done, floats.data(), now);
    widen<float>(floats.data(), to + done, now);
  }
}

void round_to_type(ElementType type, const float* from, void* to, std::size_t count) {
  if (type == ElementType::kFp16)
    float_to_fp16(from, static_cast<std::uint16_t*>(to), count);
  else if (type == ElementType::kBf16)
    float_to_bf16(from, static_cast<std::uint16_t*>(to), count);
  else
    std::memcpy(to, from, count * sizeof(float));
}

void add_partials(ElementType type, const void* values, void* sum, std::size_t count) {
  type == ElementType::kInt32 ? add<std::uint32_t>(values, sum, count)
                              : add<float>(values, sum, count);
}

void finish_partials(ElementType type, const void* sums, void* to, std::size_t count) {
  if (type == ElementType::kInt32)
    std::memcpy(to, sums, count * sizeof(std::int32_t));
  else
    round_to_type(type, static_cast<const float*>(sums), to, count);
}

}  // namespace matmul
