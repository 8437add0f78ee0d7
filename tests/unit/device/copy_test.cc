// SPDX-License-Identifier: Apache-2.0
#include "device/host/copy.h"

#include <gtest/gtest.h>

#include <string>

namespace memspan {
namespace {

// No two places of a few hundred apart have the same neighbourhood.
std::string bytes_for(std::size_t count) {
  std::string bytes(count, '\0');
  std::uint32_t state = 1;
  for (char& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

// Copies `bytes` from and to places that lie so far from a multiple of 64.
void expect_copied(std::size_t bytes, std::size_t from_shift, std::size_t to_shift) {
  constexpr std::size_t kRoom = 192;
  const std::string source = bytes_for(bytes + kRoom);
  const std::string before(bytes + kRoom, '.');
  std::string target = before;
  const auto place = [](std::string& text, std::size_t shift) {
    const std::size_t to_line = 64 - reinterpret_cast<std::uintptr_t>(text.data()) % 64;
    return to_line + shift;
  };
  const std::size_t at = place(target, to_shift);
  copy_bytes(target.data() + at, source.data() + from_shift, bytes);
  EXPECT_TRUE(target.compare(at, bytes, source, from_shift, bytes) == 0)
      << bytes << " bytes from +" << from_shift << " to +" << to_shift;
  EXPECT_TRUE(target.compare(0, at, before, 0, at) == 0) << "before " << bytes;
  EXPECT_TRUE(target.compare(at + bytes, std::string::npos, before, at + bytes) == 0)
      << "after " << bytes;
}

TEST(CopyTest, CopiesEverySmallSizeAndNothingAround) {
  for (std::size_t bytes = 0; bytes <= kLargeCopyBytes + 300; ++bytes) expect_copied(bytes, 1, 3);
}

TEST(CopyTest, CopiesFromAnyPlaceToAnyPlace) {
  for (std::size_t from_shift : {0, 1, 31, 32, 63})
    for (std::size_t to_shift = 0; to_shift < 64; ++to_shift)
      for (std::size_t bytes : {kLargeCopyBytes, kLargeCopyBytes + 129, std::size_t{4096}})
        expect_copied(bytes, from_shift, to_shift);
}

TEST(CopyTest, CopiesWhatNoCacheHolds) {
  constexpr std::size_t kMost = std::size_t{1} << 30;
  const std::size_t from = copies_past_caches_from();
  // Of some of these one core's caches hold nothing, but the last one does.
  for (std::size_t mib : {3, 6, 13})
    for (std::size_t more : {0, 1, 63, 255})
      for (std::size_t to_shift : {0, 17}) expect_copied((mib << 20) + more, 5, to_shift);
  if (from > kMost)
    GTEST_SKIP() << "does not apply: no copy of up to 1 GiB goes past the caches of this machine";
  for (std::size_t bytes : {from - 1, from, from + 1, from + 201, 2 * from + 63})
    expect_copied(bytes, 5, 17);
}

TEST(CopyTest, CopiesPastTheCachesWhateverTheSize) {
  for (std::size_t bytes = kLargeCopyBytes; bytes <= 3 * 4096; bytes += 113) {
    const std::string source = bytes_for(bytes + 3);
    std::string target(bytes + 5, '.');
    order_copies_past_caches();
    copy_past_caches(target.data() + 5, source.data() + 3, bytes);
    order_copies_past_caches();
    EXPECT_TRUE(target.compare(5, bytes, source, 3, bytes) == 0) << bytes;
    EXPECT_EQ(target.substr(0, 5), ".....") << bytes;
  }
}

TEST(CopyTest, NothingFromNowhereIsFine) {
  copy_bytes(nullptr, nullptr, 0);
}

}  // namespace
}  // namespace memspan
