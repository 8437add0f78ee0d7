// SPDX-License-Identifier: Apache-2.0
#include "random_matrix.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "convert.h"

namespace matmul {
namespace {

// Elements are made in blocks that stay in the first-level cache.
constexpr std::size_t kBlock = 1024;

std::uint64_t mix64(std::uint64_t x) {  // splitmix64's finaliser
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// 32 random bits per column. Two halves of a 64-bit row key: with an added one alone, rows would
// be shifted copies of each other.
[[gnu::always_inline]] inline void hash_columns(std::uint64_t key, std::uint32_t first,
                                                std::size_t count, std::uint32_t* to) {
  auto low = static_cast<std::uint32_t>(key);
  auto high = static_cast<std::uint32_t>(key >> 32);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t x = (first + static_cast<std::uint32_t>(i)) * 0x9e3779b1u + low;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = ((x ^ high) ^ (x >> 15)) * 0x846ca68bu;
    to[i] = x ^ (x >> 16);
  }
}

[[gnu::always_inline]] inline void to_floats(const std::uint32_t* bits, std::size_t count,
                                             float* to) {
  // 24 bits: every value is a multiple of 2^-23 in [-1, 1) and exact.
  for (std::size_t i = 0; i < count; ++i)
    to[i] = static_cast<float>(static_cast<std::int32_t>(bits[i]) >> 8) * 0x1p-23f;
}

[[gnu::always_inline]] inline void to_integers(const std::uint32_t* bits, std::size_t count,
                                               std::int32_t limit, std::int32_t* to) {
  std::uint64_t choices = 2 * static_cast<std::uint64_t>(limit) + 1;
  for (std::size_t i = 0; i < count; ++i)
    to[i] = static_cast<std::int32_t>((bits[i] * choices) >> 32) - limit;
}

struct Request {
  std::uint64_t key = 0;
  std::uint32_t first = 0;
  std::size_t count = 0;
};

[[gnu::always_inline]] inline void make_floats(const Request& request, float* to) {
  std::array<std::uint32_t, kBlock> bits;
  hash_columns(request.key, request.first, request.count, bits.data());
  to_floats(bits.data(), request.count, to);
}

[[gnu::always_inline]] inline void make_integers(const Request& request, std::int32_t limit,
                                                 std::int32_t* to) {
  std::array<std::uint32_t, kBlock> bits;
  hash_columns(request.key, request.first, request.count, bits.data());
  to_integers(bits.data(), request.count, limit, to);
}

MATMUL_AVX512 void make_floats_avx512(const Request& request, float* to) {
  make_floats(request, to);
}
MATMUL_AVX512 void make_integers_avx512(const Request& request, std::int32_t limit,
                                        std::int32_t* to) {
  make_integers(request, limit, to);
}

// At most kBlock elements that do not cross a multiple of kBlock columns.
void make_block(const RandomMatrix& matrix, std::uint64_t row_key, std::uint64_t column,
                std::size_t count, void* to) {
  // The 2^32 columns that a row key serves; wider rows take another.
  std::uint64_t key = row_key ^ ((column >> 32) == 0 ? 0 : mix64(column >> 32));
  Request request{key, static_cast<std::uint32_t>(column), count};
  bool fast = best_simd() == Simd::kAvx512;
  if (matrix.type == ElementType::kInt32) {
    auto* integers = static_cast<std::int32_t*>(to);
    fast ? make_integers_avx512(request, matrix.limit, integers)
         : make_integers(request, matrix.limit, integers);
    return;
  }
  if (matrix.type == ElementType::kFloat) {
    auto* floats = static_cast<float*>(to);
    fast ? make_floats_avx512(request, floats) : make_floats(request, floats);
    return;
  }
  std::array<float, kBlock> floats;
  fast ? make_floats_avx512(request, floats.data()) : make_floats(request, floats.data());
  round_to_type(matrix.type, floats.data(), to, count);
}

// Calls make(column, count, done) for blocks of [column, column + count).
template <typename Make>
void for_each_block(std::uint64_t column, std::size_t count, Make&& make) {
  for (std::size_t done = 0; done < count;) {
    std::uint64_t at = column + done;
    std::size_t now = std::min<std::size_t>(count - done, kBlock - at % kBlock);
    make(at, now, done);
    done += now;
  }
}

std::uint64_t row_key(const RandomMatrix& matrix, std::uint64_t row) {
  std::uint64_t job =
      mix64(mix64(matrix.seed) ^ (matrix.rank << 8 | static_cast<std::uint64_t>(matrix.name)));
  return mix64(job ^ mix64(row));
}

}  // namespace

std::int32_t int32_input_limit(std::uint64_t k, std::uint64_t ranks) {
  double terms = static_cast<double>(k) * static_cast<double>(ranks);
  double limit = std::floor(std::sqrt(2147483647.0 / terms));
  return static_cast<std::int32_t>(std::clamp(limit, 1.0, 1000.0));
}

void RandomMatrix::fill(std::uint64_t row, std::uint64_t column, std::size_t count,
                        void* to) const {
  std::uint64_t key = row_key(*this, row);
  auto* bytes = static_cast<std::byte*>(to);
  for_each_block(column, count, [&](std::uint64_t at, std::size_t now, std::size_t done) {
    make_block(*this, key, at, now, bytes + done * element_bytes(type));
  });
}

void RandomMatrix::fill_double(std::uint64_t row, std::uint64_t column, std::size_t count,
                               double* to) const {
  std::uint64_t key = row_key(*this, row);
  for_each_block(column, count, [&](std::uint64_t at, std::size_t now, std::size_t done) {
    std::array<std::uint32_t, kBlock> block;  // room for any type, aligned for all
    make_block(*this, key, at, now, block.data());
    widen_to_double(type, block.data(), to + done, now);
  });
}

}  // namespace matmul
