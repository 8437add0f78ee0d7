// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "job.h"

namespace memspan::multi {
namespace {

// Element values are small, so that sums and products are exact in every type.
#define CHECK_REDUCE(TYPE, NAME, OPERATION, EXPECTED)                                             \
  do {                                                                                            \
    for (std::size_t count :                                                                      \
         {std::size_t{0}, std::size_t{1}, std::size_t{40}, std::size_t{3000}}) {                  \
      Symmetric<TYPE> source(count + 1);                                                          \
      Symmetric<TYPE> dest(count + 1);                                                            \
      for (std::size_t i = 0; i < count; ++i) source[i] = static_cast<TYPE>(value_of(me(), i));   \
      shmem_barrier_all();                                                                        \
      ASSERT_EQ(                                                                                  \
          shmem_##NAME##_##OPERATION##_reduce(SHMEM_TEAM_WORLD, dest.get(), source.get(), count), \
          0);                                                                                     \
      for (std::size_t i = 0; i < count; ++i) {                                                   \
        TYPE expected = static_cast<TYPE>(value_of(0, i));                                        \
        for (int pe = 1; pe < peers(); ++pe) {                                                    \
          TYPE a = expected;                                                                      \
          TYPE b = static_cast<TYPE>(value_of(pe, i));                                            \
          expected = static_cast<TYPE>(EXPECTED);                                                 \
        }                                                                                         \
        ASSERT_EQ(dest[i], expected) << #NAME " " #OPERATION " " << i;                            \
      }                                                                                           \
    }                                                                                             \
  } while (false)

int value_of(int pe, std::size_t i) {
  return (pe + static_cast<int>(i % 3)) % 3 + 1;
}

TEST(ReduceTest, SumsOfEveryKindOfType) {
  CHECK_REDUCE(float, float, sum, a + b);
  CHECK_REDUCE(double, double, sum, a + b);
  CHECK_REDUCE(long double, longdouble, sum, a + b);
  CHECK_REDUCE(short, short, sum, a + b);
  CHECK_REDUCE(int, int, sum, a + b);
  CHECK_REDUCE(std::int8_t, int8, sum, a + b);
  CHECK_REDUCE(std::uint16_t, uint16, sum, a + b);
  CHECK_REDUCE(std::int64_t, int64, sum, a + b);
  CHECK_REDUCE(std::size_t, size, sum, a + b);
}

TEST(ReduceTest, ProductsMinimaAndMaxima) {
  CHECK_REDUCE(int, int, prod, a* b);
  CHECK_REDUCE(double, double, prod, a* b);
  CHECK_REDUCE(long, long, min, std::min(a, b));
  CHECK_REDUCE(float, float, min, std::min(a, b));
  CHECK_REDUCE(std::uint32_t, uint32, max, std::max(a, b));
  CHECK_REDUCE(long long, longlong, max, std::max(a, b));
}

TEST(ReduceTest, BitwiseOperations) {
  CHECK_REDUCE(unsigned char, uchar, and, a& b);
  CHECK_REDUCE(unsigned int, uint, or, a | b);
  CHECK_REDUCE(std::uint64_t, uint64, xor, a ^ b);
  CHECK_REDUCE(std::int32_t, int32, and, a & b);
}

TEST(ReduceTest, ComplexSumsAddBothParts) {
  Symmetric<double _Complex> source(100);
  Symmetric<double _Complex> dest(100);
  for (std::size_t i = 0; i < 100; ++i) {
    __real__ source[i] = me();
    __imag__ source[i] = static_cast<double>(i);
  }
  shmem_barrier_all();
  ASSERT_EQ(shmem_complexd_sum_reduce(SHMEM_TEAM_WORLD, dest.get(), source.get(), 100), 0);
  EXPECT_EQ(__real__ dest[99], peers() * (peers() - 1) / 2);
  EXPECT_EQ(__imag__ dest[99], 99.0 * peers());
}

TEST(ReduceTest, InPlaceAndOfManyBytes) {
  constexpr std::size_t kCount = 1 << 20;
  Symmetric<float> data(kCount);
  for (std::size_t i = 0; i < kCount; ++i)
    data[i] = static_cast<float>(i % 97) + static_cast<float>(me());
  shmem_barrier_all();
  ASSERT_EQ(shmem_float_sum_reduce(SHMEM_TEAM_WORLD, data.get(), data.get(), kCount), 0);
  float ranks = static_cast<float>(peers() * (peers() - 1) / 2);
  for (std::size_t i = 0; i < kCount; ++i)
    ASSERT_EQ(data[i], static_cast<float>(i % 97) * static_cast<float>(peers()) + ranks);
}

}  // namespace
}  // namespace memspan::multi
