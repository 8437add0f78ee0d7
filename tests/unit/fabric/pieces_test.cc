// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace memspan::transfer {
namespace {

using testing::HasSubstr;

std::vector<Piece> all(const Pieces& pieces) {
  std::vector<Piece> list(pieces.count());
  pieces.fill(0, list);
  return list;
}

std::uint64_t number(const std::byte* local) {
  return reinterpret_cast<std::uint64_t>(local);
}

TEST(PiecesTest, BlocksOfOneSizeArePieces) {
  const auto pieces = strided_pieces({1000, 100, 10, 3}, {5000, -20, 10, 3});
  ASSERT_TRUE(pieces.is_ok());
  const auto list = all(**pieces);
  ASSERT_EQ(list.size(), 3u);
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(number(list[i].local), 1000 + 100 * i);
    EXPECT_EQ(list[i].remote, 5000 - 20 * i);
    EXPECT_EQ(list[i].bytes, 10u);
  }
}

TEST(PiecesTest, LargerBlocksAreCutIntoTheSmaller) {
  const auto pieces = strided_pieces({1000, 100, 30, 2}, {5000, 10, 10, 6});
  ASSERT_TRUE(pieces.is_ok());
  const auto list = all(**pieces);
  const std::uint64_t local[] = {1000, 1010, 1020, 1100, 1110, 1120};
  ASSERT_EQ(list.size(), 6u);
  for (std::uint64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(number(list[i].local), local[i]);
    EXPECT_EQ(list[i].remote, 5000 + 10 * i);
  }
  // From the middle it is the same.
  std::vector<Piece> part(2);
  (*pieces)->fill(3, part);
  EXPECT_EQ(number(part[0].local), 1100u);
  EXPECT_EQ(part[1].remote, 5040u);
}

TEST(PiecesTest, BlocksThatDoNotFitAreRefused) {
  const Strides good{1000, 100, 30, 2};
  EXPECT_EQ(strided_pieces(good, {5000, 10, 20, 3}).code(), Code::kInvalidArgument);
  EXPECT_EQ(strided_pieces(good, {5000, 10, 30, 3}).code(), Code::kInvalidArgument);
  EXPECT_EQ(strided_pieces(good, {0, 10, 30, 2}).code(), Code::kInvalidArgument);
  EXPECT_EQ(strided_pieces(good, {5000, 10, 0, 2}).code(), Code::kInvalidArgument);
  EXPECT_EQ(strided_pieces(good, {5000, -5000, 30, 2}).code(), Code::kInvalidArgument);
  EXPECT_EQ(strided_pieces(good, {UINT64_MAX - 10, 0, 30, 2}).code(), Code::kInvalidArgument);
  EXPECT_EQ(strided_pieces(good, {5000, INT64_MAX, 15, 4}).code(), Code::kInvalidArgument);
  EXPECT_EQ(strided_pieces({1000, 0, 1ull << 63, 2}, {5000, 0, 1ull << 62, 4}).is_ok(), true);
  EXPECT_EQ(strided_pieces({1000, 0, 1ull << 63, 2}, {5000, 0, 1ull << 62, 2}).code(),
            Code::kInvalidArgument);
}

TEST(PiecesTest, PagesArePieces) {
  const auto pieces = paged_pieces({1000, {4, 0}}, {5000, {1, 7}}, 64);
  ASSERT_TRUE(pieces.is_ok());
  const auto list = all(**pieces);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(number(list[0].local), 1000u + 4 * 64);
  EXPECT_EQ(list[0].remote, 5000u + 64);
  EXPECT_EQ(number(list[1].local), 1000u);
  EXPECT_EQ(list[1].remote, 5000u + 7 * 64);
  EXPECT_EQ(paged_pieces({1000, {4, 0}}, {5000, {1}}, 64).code(), Code::kInvalidArgument);
  EXPECT_EQ(paged_pieces({1000, {}}, {5000, {}}, 64).code(), Code::kInvalidArgument);
  EXPECT_EQ(paged_pieces({1000, {4}}, {5000, {1}}, 0).code(), Code::kInvalidArgument);
  EXPECT_EQ(paged_pieces({0, {4}}, {5000, {1}}, 64).code(), Code::kInvalidArgument);
  EXPECT_EQ(paged_pieces({1000, {UINT32_MAX}}, {5000, {1}}, 1ull << 40).code(),
            Code::kInvalidArgument);
}

TEST(PiecesTest, TheirBytesAreThoseOfAll) {
  std::vector<Piece> list(200);
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < list.size(); ++i) all += list[i].bytes = i + 1;
  EXPECT_EQ(bytes_of(PieceList(list)), all);
  EXPECT_EQ(bytes_of(PieceList({})), 0u);
}

TEST(PiecesTest, AdvancesOverPartsAndPieces) {
  std::vector<Piece> list;
  for (std::size_t bytes : {10, 1, 5}) list.push_back({nullptr, 0, bytes});
  const PieceList pieces(list);
  const auto at = [&](Cursor from, std::uint64_t bytes) {
    const Cursor to = advanced(pieces, from, bytes);
    return std::pair(to.piece, to.offset);
  };
  EXPECT_EQ(at({0, 0}, 0), std::pair(0ul, 0ul));
  EXPECT_EQ(at({0, 0}, 9), std::pair(0ul, 9ul));
  EXPECT_EQ(at({0, 0}, 10), std::pair(1ul, 0ul));
  EXPECT_EQ(at({0, 7}, 3), std::pair(1ul, 0ul));
  EXPECT_EQ(at({0, 7}, 5), std::pair(2ul, 1ul));
  EXPECT_EQ(at({0, 0}, 16), std::pair(3ul, 0ul));
}

TEST(PiecesTest, NamesTheFirstBadElement) {
  int word = 0;
  void* local[] = {&word, &word, nullptr};
  const void* remote[] = {&word, &word, &word};
  std::size_t bytes[] = {1, 1, 1};
  EXPECT_TRUE(check_arrays(local, remote, bytes, 2).is_ok());
  EXPECT_THAT(check_arrays(local, remote, bytes, 3).message(), HasSubstr("localAddrs[2]"));
  remote[1] = nullptr;
  EXPECT_THAT(check_arrays(local, remote, bytes, 3).message(), HasSubstr("remoteAddrs[1]"));
  bytes[0] = 0;
  EXPECT_THAT(check_arrays(local, remote, bytes, 3).message(), HasSubstr("dataSizes[0]"));
}

}  // namespace
}  // namespace memspan::transfer
