// SPDX-License-Identifier: Apache-2.0
// Two ways: in pieces through the scratch buffers or the flags, one meeting each; or, when the
// sources are large and nobody overwrites its own, by reading the sources of all members before.
#include <algorithm>
#include <vector>

#include "pgas/collective/collective.h"
#include "pgas/collective/exchange.h"

namespace memspan::pgas {
namespace {

constexpr std::size_t kFlagBytes = kMeetingWords * sizeof(std::uint64_t);

struct Scan {
  Team& team;
  const char* what;
  const Reduction& reduction;
  ScanKind kind;

  // How many members' elements this one's result has, from member 0 on.
  int terms() const { return team.index() + (kind == ScanKind::kInclusive ? 1 : 0); }
  // Combines the copies that copy_of(member) gives into dest; no terms are zeros.
  template <typename CopyOf>
  void combine(void* dest, std::size_t bytes, CopyOf copy_of) const {
    if (terms() == 0) {
      std::memset(dest, 0, bytes);
      return;
    }
    std::memmove(dest, copy_of(0), bytes);
    for (int member = 1; member < terms(); ++member)
      reduction.combine(dest, copy_of(member), bytes / reduction.element_bytes);
  }
};

Status scan_in_flags(const Scan& scan, std::byte* dest, const std::byte* source,
                     std::size_t bytes) {
  std::uint64_t words[kMeetingWords] = {};
  copy_bytes(words, source, bytes);
  const auto used = static_cast<int>((bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
  MEMSPAN_PASS(scan.team.meet(scan.what, words, used));
  std::uint64_t result[kMeetingWords] = {};
  scan.combine(result, bytes, [&](int member) {
    for (int i = 0; i < used; ++i) words[i] = scan.team.word(member, i);
    return words;
  });
  copy_bytes(dest, result, bytes);
  return Status::ok();
}

Status scan_by_scratch(const Scan& scan, std::byte* dest, const std::byte* source,
                       std::size_t bytes) {
  copy_bytes(scan.team.my_scratch(), source, bytes);
  MEMSPAN_PASS(scan.team.meet(scan.what));
  scan.combine(dest, bytes, [&](int member) { return scan.team.scratch(member); });
  return Status::ok();
}

// Each piece is out of everybody's source before anybody writes it to dest.
Status scan_in_pieces(const Scan& scan, std::byte* dest, const std::byte* source,
                      std::size_t bytes) {
  const bool has_scratch = scan.team.scratch_bytes() > kFlagBytes;
  const std::size_t room = has_scratch ? scan.team.scratch_bytes() : kFlagBytes;
  const std::size_t piece = room / scan.reduction.element_bytes * scan.reduction.element_bytes;
  for (std::size_t done = 0; done < bytes; done += piece) {
    const std::size_t now = std::min(piece, bytes - done);
    if (now <= kFlagBytes)
      MEMSPAN_PASS(scan_in_flags(scan, dest + done, source + done, now));
    else
      MEMSPAN_PASS(scan_by_scratch(scan, dest + done, source + done, now));
  }
  return Status::ok();
}

// Piece by piece, so that the sum stays in a cache while the sources stream by.
Status scan_by_reading(const Scan& scan, std::byte* dest, const std::byte* source,
                       std::size_t bytes) {
  constexpr std::size_t kPieceBytes = 16 << 10;
  const RouteTable& table = scan.team.world().routes();
  const std::size_t piece =
      kPieceBytes / scan.reduction.element_bytes * scan.reduction.element_bytes;
  std::vector<std::byte> copy(kPieceBytes);
  Status status;
  for (std::size_t done = 0; done < bytes; done += piece) {
    const std::size_t now = std::min(piece, bytes - done);
    scan.combine(dest + done, now, [&](int member) -> const std::byte* {
      const Route& route = table.route_of(source, scan.team.peer_of(member));
      if (route.is_direct()) return route.address(source + done);
      if (Status got = get(table, route, copy.data(), source + done, now); !got.is_ok())
        status = got;
      return copy.data();
    });
  }
  MEMSPAN_PASS(status);
  return scan.team.meet(scan.what);
}

}  // namespace

Status scan(Team& team, const char* what, ScanKind kind, void* dest, const void* source,
            std::size_t count, const Reduction& reduction) {
  const Scan scan{team, what, reduction, kind};
  auto* to = static_cast<std::byte*>(dest);
  const auto* from = static_cast<const std::byte*>(source);
  const std::size_t bytes = count * reduction.element_bytes;
  if (bytes <= std::max(kFlagBytes, team.scratch_bytes()))
    return scan_in_pieces(scan, to, from, bytes);
  const std::uint64_t is_in_place[] = {dest == source ? 1u : 0u};
  MEMSPAN_PASS(team.meet(what, is_in_place, 1));
  for (int member = 0; member < team.size(); ++member)
    if (team.word(member, 0) != 0) return scan_in_pieces(scan, to, from, bytes);
  return scan_by_reading(scan, to, from, bytes);
}

}  // namespace memspan::pgas
