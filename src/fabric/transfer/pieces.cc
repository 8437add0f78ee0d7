// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/pieces.h"

#include <fmt/format.h>

namespace memspan::transfer {
namespace {

struct StridedRule {
  Strides local;
  Strides remote;
  std::uint64_t piece_bytes;
  std::uint64_t address(const Strides& end, std::uint64_t piece) const {
    const std::uint64_t pieces_a_block = end.bytes / piece_bytes;
    return end.base + piece / pieces_a_block * static_cast<std::uint64_t>(end.stride) +
           piece % pieces_a_block * piece_bytes;
  }
  Piece operator()(std::uint64_t i) const {
    return {reinterpret_cast<std::byte*>(address(local, i)), address(remote, i), piece_bytes};
  }
};

struct PagedRule {
  Paging local;
  Paging remote;
  std::uint64_t page_bytes;
  Piece operator()(std::uint64_t i) const {
    return {reinterpret_cast<std::byte*>(local.base + local.pages[i] * page_bytes),
            remote.base + remote.pages[i] * page_bytes, page_bytes};
  }
};

template <typename Rule>
MadePieces make_pieces(std::uint64_t count, Rule rule) {
  return std::unique_ptr<const Pieces>(
      std::make_unique<PiecesByRule<Rule>>(count, std::move(rule)));
}

Status leaves_address_space(std::string_view end) {
  return {Code::kInvalidArgument,
          fmt::format("invalid {} blocks: they leave the address space", end)};
}

Status check_strides(std::string_view end, const Strides& strides) {
  if (strides.base == 0 || strides.bytes == 0 || strides.count == 0)
    return {Code::kInvalidArgument,
            fmt::format("invalid {} blocks, of which the base is {:#x}, the bytes {} and the count "
                        "{}: none of them may be 0",
                        end, strides.base, strides.bytes, strides.count)};
  // Both ends of the row; the other blocks are between them.
  const __int128 first = strides.base;
  const __int128 last = first + static_cast<__int128>(strides.count - 1) * strides.stride;
  if (std::min(first, last) <= 0 || std::max(first, last) + strides.bytes > UINT64_MAX)
    return leaves_address_space(end);
  return Status::ok();
}

Status check_pages(std::string_view end, const Paging& paging, std::uint64_t page_bytes) {
  if (paging.base == 0)
    return {Code::kInvalidArgument, fmt::format("invalid {} pages, whose base is null", end)};
  const __int128 last = *std::max_element(paging.pages.begin(), paging.pages.end());
  if (static_cast<__int128>(paging.base) + (last + 1) * page_bytes > UINT64_MAX)
    return leaves_address_space(end);
  return Status::ok();
}

}  // namespace

Cursor advanced(const Pieces& pieces, Cursor from, std::uint64_t bytes) {
  for (; from.piece < pieces.count(); from = {from.piece + 1, 0}) {
    const std::uint64_t left = pieces.at(from.piece).bytes - from.offset;
    if (bytes < left) return {from.piece, from.offset + bytes};
    bytes -= left;
  }
  return from;
}

std::uint64_t bytes_of(const Pieces& pieces) {
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < pieces.count(); ++i) bytes += pieces.at(i).bytes;
  return bytes;
}

MadePieces strided_pieces(const Strides& local, const Strides& remote) {
  MEMSPAN_PASS(check_strides("local", local));
  MEMSPAN_PASS(check_strides("remote", remote));
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
                     StridedRule{local, remote, std::min(local.bytes, remote.bytes)});
}

MadePieces paged_pieces(Paging local, Paging remote, std::uint64_t page_bytes) {
  if (page_bytes == 0 || local.pages.empty() || local.pages.size() != remote.pages.size())
    return Status(
        Code::kInvalidArgument,
        fmt::format("{} pages here and {} at the peer, of {} bytes: there must be as many "
                    "of both, and nothing may be 0",
                    local.pages.size(), remote.pages.size(), page_bytes));
  MEMSPAN_PASS(check_pages("local", local, page_bytes));
  MEMSPAN_PASS(check_pages("remote", remote, page_bytes));
  const std::uint64_t count = local.pages.size();
  return make_pieces(count, PagedRule{std::move(local), std::move(remote), page_bytes});
}

Status check_arrays(void* const* local, const void* const* remote, const std::size_t* bytes,
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
