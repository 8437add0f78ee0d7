// SPDX-License-Identifier: Apache-2.0
// Reductions and scans. All combine in member order, so all members get the same bits.
//
// A reduction goes three ways by size: in the arrival flag itself (a word or a few), through eager
// buffers (each member combines all copies), and by slices (each member combines one slice of all
// sources and pushes the result to all).
//
// A scan goes two ways: in pieces through the eager buffers or the flags, one barrier each; or,
// when the sources are large and no member overwrites its own, by reading the sources of all
// members before.
//
// If dest or source is memory of a device, the device does the puts and gets, and the host combines
// in buffers.

#include "pgas/collective/steps.h"

namespace memspan::pgas {
namespace {

// copy_of(member) is where that member's elements can be read until it is called again.
template <typename CopyOf>
void combine(const PrefixReduction& prefix, void* dest, std::size_t bytes, CopyOf copy_of) {
  if (prefix.members == 0) {
    std::memset(dest, 0, bytes);
    return;
  }
  copy_bytes(dest, copy_of(0), bytes);
  for (int member = 1; member < prefix.members; ++member)
    prefix.kernel.accumulate(dest, copy_of(member), bytes / prefix.kernel.bytes);
}

Status reduce_by_slices(const PrefixReduction& all, std::byte* dest, const std::byte* source,
                        std::size_t bytes) {
  MEMSPAN_PASS(all.team.barrier_checked(all.what, {all.kind, bytes}));
  if (goes_among_nodes(all.team, all.table)) return reduce_among_nodes(all, dest, source, bytes);
  MEMSPAN_TRY(reduce_slice(all, all.team.index(), dest, source, bytes), "reduction");
  MEMSPAN_PASS(complete_pushes(all.table));
  return all.team.barrier(all.what);
}

// Each piece is read from all sources before a member writes it to dest.
Status scan_in_pieces(const PrefixReduction& prefix, std::byte* dest, const std::byte* source,
                      std::size_t bytes) {
  const std::size_t piece = prefix.whole_elements(std::max(kFlagBytes, prefix.team.eager_bytes()));
  for (std::size_t done = 0; done < bytes; done += piece) {
    const std::size_t now = std::min(piece, bytes - done);
    const auto combine = now <= kFlagBytes ? reduce_in_flags : reduce_eagerly;
    MEMSPAN_PASS(combine(prefix, dest + done, source + done, now));
  }
  return Status::ok();
}

// Piece by piece, so that the sum stays in a cache while the sources stream by.
Status scan_by_reading(const PrefixReduction& prefix, std::byte* dest, const std::byte* source,
                       std::size_t bytes) {
  alignas(kCacheLine) std::byte copy[kPieceBytes];
  const std::size_t piece = prefix.whole_elements(kPieceBytes);
  for (std::size_t done = 0; done < bytes; done += piece)
    MEMSPAN_TRY(
        reduce_sources(prefix, dest + done, source + done, std::min(piece, bytes - done), copy),
        "scan");
  return prefix.team.barrier(prefix.what);
}

// dest may be source, so no member writes a piece before all have read it.
Status scan_on_device(const PrefixReduction& prefix, std::byte* dest, const std::byte* source,
                      std::size_t bytes) {
  MEMSPAN_PASS(prefix.team.barrier_checked(prefix.what, {prefix.kind, bytes}));
  PieceBuffers buffers(prefix);
  for (std::size_t done = 0; done < bytes; done += buffers.piece()) {
    const std::size_t now = std::min(buffers.piece(), bytes - done);
    MEMSPAN_TRY(reduce_sources(prefix, buffers.sum(), source + done, now, buffers.copy()), "scan");
    MEMSPAN_PASS(prefix.team.barrier(prefix.what));
    MEMSPAN_PASS(
        push(prefix.team, prefix.table, prefix.team.index(), dest + done, buffers.sum(), now));
  }
  return prefix.team.barrier(prefix.what);
}

}  // namespace

Status reduce_in_flags(const PrefixReduction& prefix, void* dest, const void* source,
                       std::size_t bytes) {
  Team& team = prefix.team;
  std::uint64_t words[kSignatureWord] = {};
  copy_bytes(words, source, bytes);
  const int used = words_for(bytes);
  MEMSPAN_PASS(team.barrier_checked(prefix.what, {prefix.kind, bytes}, words, used));
  std::uint64_t result[kSignatureWord] = {};
  combine(prefix, result, bytes, [&](int member) {
    for (int i = 0; i < used; ++i) words[i] = team.word(member, i);
    return words;
  });
  copy_bytes(dest, result, bytes);
  return Status::ok();
}

Status reduce_eagerly(const PrefixReduction& prefix, void* dest, const void* source,
                      std::size_t bytes) {
  Team& team = prefix.team;
  MEMSPAN_PASS(team.make_room(prefix.what));
  copy_bytes(team.my_eager_buffer(), source, bytes);
  MEMSPAN_PASS(team.barrier_checked(prefix.what, {prefix.kind, bytes}));
  combine(prefix, dest, bytes, [&](int member) { return team.eager_buffer(member); });
  return Status::ok();
}

Status reduce_sources(const PrefixReduction& prefix, void* dest, const void* source,
                      std::size_t bytes, std::byte* copy) {
  const SymmetricRegion& region = prefix.table.region_of(source);
  Status status;
  combine(prefix, dest, bytes, [&](int i) -> const void* {
    const int member = prefix.listed == nullptr ? i : prefix.listed[i];
    const Route& route = region.routes[prefix.team.peer_of(member)];
    if (route.is_direct()) return route.address(source);
    if (Status got = get(prefix.table, route, copy, source, bytes); !got.is_ok()) status = got;
    return copy;
  });
  return status;
}

Status reduce_slice(const PrefixReduction& all, int index, std::byte* dest, const std::byte* source,
                    std::size_t bytes) {
  // Slices of whole cache lines, so that no two members write one line.
  const std::size_t line = all.whole_elements(kCacheLine);
  const std::size_t slice = (bytes / static_cast<std::size_t>(all.members) + line) / line * line;
  const std::size_t first = std::min(bytes, static_cast<std::size_t>(index) * slice);
  const std::size_t last = std::min(bytes, first + slice);
  PieceBuffers buffers(all);
  for (std::size_t done = first; done < last; done += buffers.piece()) {
    const std::size_t now = std::min(buffers.piece(), last - done);
    MEMSPAN_PASS(reduce_sources(all, buffers.sum(), source + done, now, buffers.copy()));
    MEMSPAN_PASS(all.listed == nullptr
                     ? push_to_all(all.team, all.table, dest + done, buffers.sum(), now)
                     : push(all.team, all.table, all.listed[0], dest + done, buffers.sum(), now));
  }
  return Status::ok();
}

Status reduce(Team& team, const char* what, void* dest, const void* source, std::size_t count,
              const ReductionKernel& kernel) {
  const RouteTable& table = routes_for(team, dest, source);
  const PrefixReduction all{team, what, kernel, CollectiveKind::kReduce, table, team.size()};
  const std::size_t bytes = count * kernel.bytes;
  if (table.device == nullptr) [[likely]] {
    if (bytes <= kFlagBytes) return reduce_in_flags(all, dest, source, bytes);
    if (bytes <= team.eager_bytes()) return reduce_eagerly(all, dest, source, bytes);
  }
  return reduce_by_slices(all, static_cast<std::byte*>(dest), static_cast<const std::byte*>(source),
                          bytes);
}

Status scan(Team& team, const char* what, void* dest, const void* source, ScanKind kind,
            std::size_t count, const ReductionKernel& kernel) {
  const RouteTable& table = routes_for(team, dest, source);
  const int members = team.index() + (kind == ScanKind::kInclusive ? 1 : 0);
  const PrefixReduction prefix{team, what, kernel, CollectiveKind::kScan, table, members};
  auto* to = static_cast<std::byte*>(dest);
  const auto* from = static_cast<const std::byte*>(source);
  const std::size_t bytes = count * kernel.bytes;
  if (table.device != nullptr) [[unlikely]]
    return scan_on_device(prefix, to, from, bytes);
  if (bytes <= std::max(kFlagBytes, team.eager_bytes()))
    return scan_in_pieces(prefix, to, from, bytes);
  const std::uint64_t is_in_place[] = {dest == source ? 1u : 0u};
  MEMSPAN_PASS(team.barrier_checked(what, {prefix.kind, bytes}, is_in_place, 1));
  for (int member = 0; member < team.size(); ++member)
    if (team.word(member, 0) != 0) return scan_in_pieces(prefix, to, from, bytes);
  return scan_by_reading(prefix, to, from, bytes);
}

}  // namespace memspan::pgas
