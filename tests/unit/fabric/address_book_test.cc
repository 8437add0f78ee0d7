// SPDX-License-Identifier: Apache-2.0
#include "fabric/address_book.h"

#include <gtest/gtest.h>

namespace memspan {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

AddressEntry entry(std::uint64_t base, std::uint64_t bytes) {
  return {.name = "bm/1", .base = base, .bytes = bytes, .layout = "some"};
}

TEST(AddressBookTest, ReadsWhatItWrites) {
  const std::vector<AddressEntry> book{
      entry(kGiB, 5), {.name = "shm/0", .base = 7 * kGiB, .bytes = 1, .layout = "", .mark = 7}};
  auto read = decode_book(encode_book(book));
  ASSERT_TRUE(read.is_ok());
  EXPECT_EQ(*read, book);
  EXPECT_TRUE(decode_book("")->empty());
}

TEST(AddressBookTest, RefusesAPartOfABook) {
  const std::string text = encode_book({entry(kGiB, 5), entry(2 * kGiB, 6)});
  const std::size_t one = text.size() / 2;
  for (std::size_t bytes = 1; bytes < text.size(); ++bytes)
    EXPECT_EQ(decode_book(text.substr(0, bytes)).is_ok(), bytes == one) << bytes;
}

TEST(AddressBookTest, FindsTheFirstGap) {
  EXPECT_EQ(find_gap({}, 100, kGiB, 10 * kGiB), kGiB);
  const std::vector<AddressEntry> book{entry(5 * kGiB, 2 * kGiB), entry(1 * kGiB, 100),
                                       entry(2 * kGiB, kGiB)};
  EXPECT_EQ(find_gap(book, kGiB, kGiB, 10 * kGiB), 3 * kGiB);
  EXPECT_EQ(find_gap(book, 2 * kGiB, kGiB, 10 * kGiB), 3 * kGiB);
  EXPECT_EQ(find_gap(book, 2 * kGiB + 1, kGiB, 10 * kGiB), 7 * kGiB);
  EXPECT_EQ(find_gap(book, 3 * kGiB, kGiB, 10 * kGiB), 7 * kGiB);
}

TEST(AddressBookTest, FindsNoGapBeyondTheEnd) {
  const std::vector<AddressEntry> book{entry(kGiB, 9 * kGiB)};
  EXPECT_EQ(find_gap(book, 1, kGiB, 10 * kGiB), 0u);
  EXPECT_EQ(find_gap({}, 9 * kGiB + 1, kGiB, 10 * kGiB), 0u);
  EXPECT_EQ(find_gap({}, 9 * kGiB, kGiB, 10 * kGiB), kGiB);
  EXPECT_EQ(find_gap({}, UINT64_MAX, kGiB, 10 * kGiB), 0u);
}

}  // namespace
}  // namespace memspan
