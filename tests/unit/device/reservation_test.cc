// SPDX-License-Identifier: Apache-2.0
#include "device/reservation.h"

#include <gtest/gtest.h>

#include <cstring>

#include "memory/address_plan.h"

namespace memspan {
namespace {

TEST(ReservationTest, TakesTheWantedPlaceWhenItIsFree) {
  auto* wanted = reinterpret_cast<void*>(kHeapWindow);
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

TEST(ReservationTest, MoreAddressesThanThereAreIsAnError) {
  EXPECT_EQ(Reservation::make(std::size_t{1} << 60, nullptr).code(), Code::kOutOfMemory);
}

TEST(ReservationTest, TakesItsPlaceOrSaysWhatIsThere) {
  const std::uint64_t address = kPoolWindow + kPoolWindowBytes - page_size();
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
