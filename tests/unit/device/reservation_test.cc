// SPDX-License-Identifier: Apache-2.0
#include "device/reservation.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "memory/address_plan.h"

namespace memspan {
namespace {

TEST(ReservationTest, TakesTheWantedPlaceWhenItIsFree) {
  auto* wanted = reinterpret_cast<void*>(address_windows().heap);
  Reservation first = Reservation::make(1 << 20, wanted).value();
  EXPECT_EQ(first.base(), wanted);
  Reservation second = Reservation::make(1 << 20, wanted).value();
  EXPECT_NE(second.base(), wanted);
}

TEST(ReservationTest, TwoMappingsOfThePagesShowTheSameBytes) {
  Pages pages = Pages::create(4 * page_size(), "test").value();
  Reservation range = Reservation::make(8 * page_size(), nullptr).value();
  ASSERT_TRUE(range.map(0, pages, 0, 4 * page_size()).is_ok());
  ASSERT_TRUE(range.map(4 * page_size(), pages, page_size(), page_size()).is_ok());
  std::strcpy(reinterpret_cast<char*>(range.base() + page_size()), "seen twice");
  EXPECT_STREQ(reinterpret_cast<char*>(range.base() + 4 * page_size()), "seen twice");
}

TEST(ReservationTest, MappingOutsideIsRefused) {
  Pages pages = Pages::create(4 * page_size(), "test").value();
  Reservation range = Reservation::make(2 * page_size(), nullptr).value();
  EXPECT_EQ(range.map(page_size(), pages, 0, 2 * page_size()).code(), Code::kInvalidArgument);
  EXPECT_EQ(range.map(3 * page_size(), pages, 0, 0).code(), Code::kInvalidArgument);
}

TEST(ReservationTest, KeepsPagesAsPrivateMemory) {
  const std::size_t page = page_size();
  Pages pages = Pages::create(8 * page, "test").value();
  std::byte* base = nullptr;
  {
    // In the middle of much that is free: what a sanitizer maps meanwhile lies elsewhere.
    constexpr std::size_t kMuch = std::size_t{1} << 30;
    std::byte* middle = Reservation::make(kMuch, nullptr).value().base() + kMuch / 2;
    Reservation range = Reservation::make(8 * page, middle).value();
    base = range.base();
    ASSERT_EQ(base, middle);
    ASSERT_TRUE(range.map(0, pages, 0, 8 * page).is_ok());
    // Pages 1 and 2 in three pieces, and page 5.
    ASSERT_TRUE(range.keep(2 * page + 5, 10).is_ok());
    ASSERT_TRUE(range.keep(page, 1).is_ok());
    ASSERT_TRUE(range.keep(2 * page - 1, 2).is_ok());
    ASSERT_TRUE(range.keep(5 * page, page).is_ok());
    EXPECT_EQ(range.keep(8 * page, 1).code(), Code::kInvalidArgument);
    base[page] = base[5 * page] = std::byte{7};
  }
  Reservation again = Reservation::make(8 * page, nullptr).value();
  ASSERT_TRUE(again.map(0, pages, 0, 8 * page).is_ok());
  again.base()[5 * page] = std::byte{8};
  EXPECT_EQ(base[page], std::byte{7});
  EXPECT_EQ(base[5 * page], std::byte{7});
  base[3 * page - 1] = std::byte{1};
  EXPECT_EQ(again.base()[3 * page - 1], std::byte{0});
  // The others are free for anybody.
  for (const std::size_t at : {0, 3, 4, 6, 7})
    EXPECT_TRUE(Reservation::make_at(page, base + at * page).is_ok()) << at;
  for (const std::size_t at : {1, 2, 5}) {
    EXPECT_EQ(Reservation::make_at(page, base + at * page).code(), Code::kUnavailable) << at;
    EXPECT_EQ(munmap(base + at * page, page), 0);
  }
}

TEST(ReservationTest, MoreAddressesThanThereAreIsAnError) {
  EXPECT_EQ(Reservation::make(std::size_t{1} << 60, nullptr).code(), Code::kOutOfMemory);
}

TEST(ReservationTest, TakesItsPlaceOrSaysWhatIsThere) {
  const std::uint64_t address =
      address_windows().pool + address_windows().pool_bytes() - page_size();
  auto* const place = reinterpret_cast<void*>(address);
  auto first = Reservation::make_at(page_size(), place);
  ASSERT_TRUE(first.is_ok()) << first.status().to_string();
  EXPECT_EQ(first->base(), place);
  auto second = Reservation::make_at(page_size(), place);
  ASSERT_EQ(second.code(), Code::kUnavailable);
  EXPECT_NE(second.status().message().find("are taken here"), std::string::npos)
      << second.status().message();
}

}  // namespace
}  // namespace memspan
