// SPDX-License-Identifier: Apache-2.0
// Reductions and scans. All combine in member order, so all members get the same bits.
//
// A reduction goes three ways by size: in the arrival flag itself (a word or a few), through eager
// buffers (each member combines all copies), and by slices (each member combines one slice of all
// sources and pushes the result to all).
//
// A scan goes two ways: through the flags or the eager buffers; or, when the sources are large, by
// reading those of all members before, piece by piece. If a member overwrites its own source, the
// pieces are combined in buffers, with a barrier for each.
//
// If dest or source is memory of a device, the device does the puts and gets, and the host combines
// in buffers.

#include "pgas/collective/steps.h"

namespace memspan::inline pgas {
namespace {

// The bytes that the words of a flag carry beside the signature.
constexpr std::size_t kFlagBytes = kSignatureWord * sizeof(std::uint64_t);
// A piece that stays in the first-level cache.
constexpr std::size_t kPieceBytes = 16 << 10;

// Memory of this process for a piece of the result and a copy of one member's: in the first-level
// cache, or large if each copy is an operation of a device.
class PieceBuffers {
 public:
  explicit PieceBuffers(const PrefixReduction& all)
      : large_(all.table.device == nullptr ? 0 : 2 * kDevicePieceBytes),
        piece_(all.whole_elements(large_.empty() ? kPieceBytes : kDevicePieceBytes)) {}
  std::size_t piece() const { return piece_; }  // in bytes
  std::byte* sum() { return large_.empty() ? small_ : large_.data(); }
  std::byte* copy() { return sum() + piece_; }

 private:
  static constexpr std::size_t kDevicePieceBytes = std::size_t{2} << 20;
  alignas(kCacheLine) std::byte small_[2 * kPieceBytes];
  std::vector<std::byte> large_;
  std::size_t piece_;
};

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

// One barrier for what a flag or an eager buffer holds, after which all have read `source`, which
// may be `dest`.
bool is_small(const PrefixReduction& prefix, std::size_t bytes) {
  return prefix.table.device == nullptr && bytes <= std::max(kFlagBytes, prefix.team.eager_bytes());
}

Status reduce_in_flags(const PrefixReduction& prefix, void* dest, const void* source,
                       std::size_t bytes) {
  Team& team = prefix.team;
  std::uint64_t words[kSignatureWord] = {};
  copy_bytes(words, source, bytes);
  const int used = words_for(bytes);
  MEMSPAN_PASS(team.barrier_checked(prefix.what, {prefix.kind, bytes}, words, used));
  combine(prefix, dest, bytes, [&](int member) {
    for (int i = 0; i < used; ++i) words[i] = team.word(member, i);
    return words;
  });
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

Status reduce_small(const PrefixReduction& prefix, void* dest, const void* source,
                    std::size_t bytes) {
  const auto reduce_by = bytes <= kFlagBytes ? reduce_in_flags : reduce_eagerly;
  return reduce_by(prefix, dest, source, bytes);
}

// Not collective: reads the members' `source`, which must not change in the call, if needed by
// `copy`, which has as many bytes. `dest` is not `source`.
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

}  // namespace

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
  if (is_small(all, bytes)) return reduce_small(all, dest, source, bytes);
  auto* const to = static_cast<std::byte*>(dest);
  const auto* const from = static_cast<const std::byte*>(source);
  MEMSPAN_PASS(team.barrier_checked(what, {all.kind, bytes}));
  if (goes_among_nodes(team, table)) return reduce_among_nodes(all, to, from, bytes);
  MEMSPAN_TRY(reduce_slice(all, team.index(), to, from, bytes), "reduction");
  MEMSPAN_PASS(complete_pushes(table));
  return team.barrier(what);
}

Status scan(Team& team, const char* what, void* dest, const void* source, ScanKind kind,
            std::size_t count, const ReductionKernel& kernel) {
  const RouteTable& table = routes_for(team, dest, source);
  const int members = team.index() + (kind == ScanKind::kInclusive ? 1 : 0);
  const PrefixReduction prefix{team, what, kernel, CollectiveKind::kScan, table, members};
  const std::size_t bytes = count * kernel.bytes;
  if (is_small(prefix, bytes)) return reduce_small(prefix, dest, source, bytes);
  const std::uint64_t uses_buffers[] = {dest == source || table.device != nullptr ? 1u : 0u};
  MEMSPAN_PASS(team.barrier_checked(what, {prefix.kind, bytes}, uses_buffers, 1));
  bool must_wait = false;
  for (int member = 0; member < team.size(); ++member)
    must_wait = must_wait || team.word(member, 0) != 0;
  PieceBuffers buffers(prefix);
  for (std::size_t done = 0; done < bytes; done += buffers.piece()) {
    const std::size_t now = std::min(buffers.piece(), bytes - done);
    std::byte* const to = at(dest, 0) + done;
    std::byte* const sum = must_wait ? buffers.sum() : to;
    MEMSPAN_TRY(reduce_sources(prefix, sum, at(source, 0) + done, now, buffers.copy()), "scan");
    if (!must_wait) continue;
    // All have read the piece before a member writes it.
    MEMSPAN_PASS(team.barrier(what));
    MEMSPAN_PASS(push(team, table, team.index(), to, sum, now));
  }
  return team.barrier(what);
}

}  // namespace memspan::inline pgas
