// SPDX-License-Identifier: Apache-2.0
// The pieces that a transfer moves, each with an address here, one at the peer, and a size. They
// may be given one by one or by a rule.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"

namespace memspan::transfer {

enum class Direction : std::uint8_t { kRead = 0, kWrite = 1 };

// A value.
struct Piece {
  std::byte* local = nullptr;
  std::uint64_t remote = 0;
  std::size_t bytes = 0;

  // In messages: `local` is not sent.
  static void fields(auto& codec, auto& self) { codec(self.remote, self.bytes); }
};

// How far a transfer has come: all pieces before `piece`, and so many bytes of that one. A value.
struct Cursor {
  std::uint64_t piece = 0;
  std::uint64_t offset = 0;
};

// Immutable.
class Pieces {
 public:
  virtual ~Pieces() = default;
  virtual std::uint64_t count() const = 0;
  // Writes the pieces from `first` on; there are enough of them.
  virtual void fill(std::uint64_t first, std::span<Piece> out) const = 0;
  Piece at(std::uint64_t index) const {
    Piece piece;
    fill(index, {&piece, 1});
    return piece;
  }
};

// The bytes of all pieces.
inline std::uint64_t bytes_of(const Pieces& pieces) {
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < pieces.count(); ++i) bytes += pieces.at(i).bytes;
  return bytes;
}
// The cursor of a transfer that was at `from` and has moved so many bytes since.
inline Cursor advanced(const Pieces& pieces, Cursor from, std::uint64_t bytes) {
  for (; from.piece < pieces.count(); from = {from.piece + 1, 0}) {
    const std::uint64_t left = pieces.at(from.piece).bytes - from.offset;
    if (bytes < left) return {from.piece, from.offset + bytes};
    bytes -= left;
  }
  return from;
}

// Piece i is rule(i).
template <typename Rule>
class PiecesByRule final : public Pieces {
 public:
  PiecesByRule(std::uint64_t count, Rule rule) : count_(count), rule_(std::move(rule)) {}
  std::uint64_t count() const override { return count_; }
  void fill(std::uint64_t first, std::span<Piece> out) const override {
    for (Piece& piece : out) piece = rule_(first++);
  }

 private:
  std::uint64_t count_;
  Rule rule_;
};

// The caller's arrays, which outlive it.
struct ArraysRule {
  void* const* local;
  const void* const* remote;
  const std::size_t* bytes;
  Piece operator()(std::uint64_t i) const {
    return {static_cast<std::byte*>(local[i]), reinterpret_cast<std::uint64_t>(remote[i]),
            bytes[i]};
  }
};
using PieceArrays = PiecesByRule<ArraysRule>;

// Owns them.
class PieceList final : public Pieces {
 public:
  explicit PieceList(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {}
  std::uint64_t count() const override { return pieces_.size(); }
  void fill(std::uint64_t first, std::span<Piece> out) const override {
    std::copy_n(pieces_.begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
  }

 private:
  std::vector<Piece> pieces_;
};

inline Status leaves_address_space(std::string_view end) {
  return {Code::kInvalidArgument,
          fmt::format("invalid {} blocks: they leave the address space", end)};
}

// Blocks at equal distances: block i begins at base + i * stride. A value.
struct Strides {
  std::uint64_t base = 0;
  std::int64_t stride = 0;
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;

  // The address of a piece of `piece_bytes`, of which each block has several.
  std::uint64_t address(std::uint64_t piece, std::uint64_t piece_bytes) const {
    const std::uint64_t pieces_a_block = bytes / piece_bytes;
    return base + piece / pieces_a_block * static_cast<std::uint64_t>(stride) +
           piece % pieces_a_block * piece_bytes;
  }
  // `end`: "local" or "remote", for messages.
  Status check(std::string_view end) const {
    if (base == 0 || bytes == 0 || count == 0)
      return {Code::kInvalidArgument,
              fmt::format("invalid {} blocks, of which the base is {:#x}, the bytes {} and the "
                          "count {}: none of them may be 0",
                          end, base, bytes, count)};
    // Both ends of the row; the other blocks are between them.
    const __int128 first = base;
    const __int128 last = first + static_cast<__int128>(count - 1) * stride;
    if (std::min(first, last) <= 0 || std::max(first, last) + bytes > UINT64_MAX)
      return leaves_address_space(end);
    return Status::ok();
  }
};

// Pages of one size: page n of an end begins at base + n * page_bytes. A value.
struct Paging {
  std::uint64_t base = 0;
  std::vector<std::uint32_t> pages;

  std::uint64_t address(std::uint64_t i, std::uint64_t page_bytes) const {
    return base + pages[i] * page_bytes;
  }
  // `end`: "local" or "remote", for messages.
  Status check(std::string_view end, std::uint64_t page_bytes) const {
    if (base == 0)
      return {Code::kInvalidArgument, fmt::format("invalid {} pages, whose base is null", end)};
    const __int128 last = *std::max_element(pages.begin(), pages.end());
    if (static_cast<__int128>(base) + (last + 1) * page_bytes > UINT64_MAX)
      return leaves_address_space(end);
    return Status::ok();
  }
};

using MadePieces = Result<std::unique_ptr<const Pieces>>;
template <typename Rule>
MadePieces make_pieces(std::uint64_t count, Rule rule) {
  return std::unique_ptr<const Pieces>(
      std::make_unique<PiecesByRule<Rule>>(count, std::move(rule)));
}
// From blocks to blocks of another size, when one size is a multiple of the other: a piece is one
// of the smaller blocks. kInvalidArgument when the ends do not fit, or leave the address space.
inline MadePieces strided_pieces(const Strides& local, const Strides& remote) {
  MEMSPAN_PASS(local.check("local"));
  MEMSPAN_PASS(remote.check("remote"));
  const bool is_same_total = static_cast<unsigned __int128>(local.bytes) * local.count ==
                             static_cast<unsigned __int128>(remote.bytes) * remote.count;
  if (!is_same_total ||
      std::max(local.bytes, remote.bytes) % std::min(local.bytes, remote.bytes) != 0)
    return Status(
        Code::kInvalidArgument,
        fmt::format("{} blocks of {} bytes here and {} of {} at the peer: both must be as "
                    "many bytes, and one size a multiple of the other",
                    local.count, local.bytes, remote.count, remote.bytes));
  return make_pieces(std::max(local.count, remote.count),
                     [local, remote, bytes = std::min(local.bytes, remote.bytes)](std::uint64_t i) {
                       return Piece{reinterpret_cast<std::byte*>(local.address(i, bytes)),
                                    remote.address(i, bytes), bytes};
                     });
}
// Page i of one end's list and page i of the other's are a piece.
inline MadePieces paged_pieces(Paging local, Paging remote, std::uint64_t page_bytes) {
  if (page_bytes == 0 || local.pages.empty() || local.pages.size() != remote.pages.size())
    return Status(
        Code::kInvalidArgument,
        fmt::format("{} pages here and {} at the peer, of {} bytes: there must be as many "
                    "of both, and nothing may be 0",
                    local.pages.size(), remote.pages.size(), page_bytes));
  MEMSPAN_PASS(local.check("local", page_bytes));
  MEMSPAN_PASS(remote.check("remote", page_bytes));
  const std::uint64_t count = local.pages.size();
  return make_pieces(
      count, [local = std::move(local), remote = std::move(remote), page_bytes](std::uint64_t i) {
        return Piece{reinterpret_cast<std::byte*>(local.address(i, page_bytes)),
                     remote.address(i, page_bytes), page_bytes};
      });
}

// kInvalidArgument names the first element that is null or 0.
inline Status check_arrays(void* const* local, const void* const* remote, const std::size_t* bytes,
                           std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    if (local[i] != nullptr && remote[i] != nullptr && bytes[i] != 0) [[likely]]
      continue;
    return {Code::kInvalidArgument,
            local[i] == nullptr    ? fmt::format("invalid localAddrs[{}], which is null", i)
            : remote[i] == nullptr ? fmt::format("invalid remoteAddrs[{}], which is null", i)
                                   : fmt::format("invalid dataSizes[{}], which is 0", i)};
  }
  return Status::ok();
}

}  // namespace memspan::transfer
