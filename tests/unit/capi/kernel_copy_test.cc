// SPDX-License-Identifier: Apache-2.0
// Copies of <memspan/kernel_copy.h>, by groups of any size.
#include <gtest/gtest.h>
// First, since the copies stand on it.
#include "support/emulated_device.h"

#include <memspan/kernel_copy.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace memspan::kernel::device {
namespace {

// One of `count` threads, which come one after another.
struct OneOf {
  unsigned number;
  unsigned count;
  unsigned index() const { return number; }
  unsigned size() const { return count; }
};

constexpr unsigned char kUntouched = 0xee;

unsigned char byte_at(std::size_t i) {
  return static_cast<unsigned char>(i * 31 + i / 13);
}

// Copies between these places of two aligned buffers, and looks at all of the second one.
void expect_copied(std::size_t to, std::size_t from, std::size_t bytes, unsigned threads) {
  constexpr std::size_t kMargin = 64;
  alignas(16) unsigned char source[4096];
  alignas(16) unsigned char dest[4096];
  for (std::size_t i = 0; i < sizeof source; ++i) source[i] = byte_at(i);
  std::fill(std::begin(dest), std::end(dest), kUntouched);
  for (unsigned i = 0; i < threads; ++i)
    copy(OneOf{i, threads}, dest + kMargin + to, source + from, bytes);
  for (std::size_t i = 0; i < sizeof dest; ++i) {
    const bool is_inside = i >= kMargin + to && i < kMargin + to + bytes;
    ASSERT_EQ(dest[i], is_inside ? source[from + i - kMargin - to] : kUntouched)
        << "byte " << i << ", to " << to << " from " << from << ", " << bytes << " bytes, "
        << threads << " threads";
  }
}

TEST(KernelCopyTest, MovesTheBytesAndNoOthers) {
  for (const std::size_t bytes : {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 100, 255, 1021})
    for (std::size_t to = 0; to < 17; ++to)
      for (std::size_t from = 0; from < 17; ++from)
        for (const unsigned threads : {1u, 3u, 32u}) expect_copied(to, from, bytes, threads);
}

TEST(KernelCopyTest, RowsForwardsAndBackwards) {
  constexpr std::size_t kRows = 7;
  for (const std::size_t bytes : {1, 8, 24, 64, 65, 200})
    for (const bool is_backwards : {false, true})
      for (const unsigned threads : {1u, 5u}) {
        std::vector<unsigned char> source(kRows * 300);
        std::vector<unsigned char> dest(kRows * 256, kUntouched);
        for (std::size_t i = 0; i < source.size(); ++i) source[i] = byte_at(i);
        const std::ptrdiff_t pitch = is_backwards ? -256 : 256;
        unsigned char* const first = dest.data() + (is_backwards ? (kRows - 1) * 256 : 0);
        for (unsigned i = 0; i < threads; ++i)
          copy_rows(OneOf{i, threads}, first, source.data() + 3,
                    backend::ByteRows{kRows, bytes, 300, pitch});
        for (std::size_t row = 0; row < kRows; ++row)
          for (std::size_t i = 0; i < 256; ++i) {
            const std::size_t place = is_backwards ? kRows - 1 - row : row;
            ASSERT_EQ(dest[place * 256 + i], i < bytes ? byte_at(row * 300 + 3 + i) : kUntouched);
          }
      }
}

}  // namespace
}  // namespace memspan::kernel::device
