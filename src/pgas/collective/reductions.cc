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

// The sources of members member_of(0), member_of(1), ...
template <typename MemberOf>
Status reduce_copies(const PrefixReduction& prefix, void* dest, const void* source,
                     std::size_t bytes, MemberOf member_of) {
  const Team& team = prefix.team;
  const RouteTable& table = team.world().routes();
  const SymmetricRegion& region = table.region_of(source);
  alignas(kCacheLine) std::byte copy[kPieceBytes];
  Status status;
  combine(prefix, dest, bytes, [&](int i) -> const void* {
    const Route& route = region.routes[team.peer_of(member_of(i))];
    if (route.is_direct()) return route.address(source);
    if (Status got = get(table, route, copy, source, bytes); !got.is_ok()) status = got;
    return copy;
  });
  return status;
}

// dest may be source: only this member reads or writes this slice, on every member.
Status reduce_slice(const PrefixReduction& all, std::byte* dest, const std::byte* source,
                    std::size_t bytes) {
  const RouteTable& table = all.team.world().routes();
  const std::size_t piece = all.whole_elements(kPieceBytes);
  alignas(kCacheLine) std::byte sum[kPieceBytes];
  for (std::size_t done = 0; done < bytes; done += piece) {
    const std::size_t now = std::min(piece, bytes - done);
    MEMSPAN_TRY(reduce_sources(all, sum, source + done, now), "reduction");
    MEMSPAN_TRY(push_to_all(all.team, table, dest + done, sum, now), "reduction");
  }
  return complete_pushes(table);
}

Status reduce_by_slices(const PrefixReduction& all, std::byte* dest, const std::byte* source,
                        std::size_t bytes) {
  auto members = static_cast<std::size_t>(all.team.size());
  auto index = static_cast<std::size_t>(all.team.index());
  // Slices of whole cache lines, so that no two members write one line.
  const std::size_t line = all.whole_elements(kCacheLine);
  const std::size_t slice = (bytes / members + line) / line * line;
  const std::size_t first = std::min(bytes, index * slice);
  const std::size_t last = std::min(bytes, first + slice);
  MEMSPAN_PASS(all.team.barrier_checked(all.what, {all.kind, bytes}));
  if (all.team.nodes() != nullptr) return reduce_among_nodes(all, dest, source, bytes);
  MEMSPAN_PASS(reduce_slice(all, dest + first, source + first, last - first));
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
  const std::size_t piece = prefix.whole_elements(kPieceBytes);
  for (std::size_t done = 0; done < bytes; done += piece)
    MEMSPAN_TRY(reduce_sources(prefix, dest + done, source + done, std::min(piece, bytes - done)),
                "scan");
  return prefix.team.barrier(prefix.what);
}

// The reductions and scans where dest or source is memory of a device: the device does the puts and
// gets, and the host combines in buffers.

// The size of all members' pieces together.
constexpr std::size_t kBufferBytes = std::size_t{4} << 20;

// Combines the same piece of the first members' sources, in buffers of the host.
class Combination {
 public:
  Combination(Team& team, const ReductionKernel& kernel, int members)
      : team_(team),
        kernel_(kernel),
        members_(static_cast<std::size_t>(members)),
        piece_(std::max<std::size_t>(
            kBufferBytes / static_cast<std::size_t>(team.size()) / kernel.bytes, 1)),
        buffers_(members_ + 1, std::vector<std::byte>(bytes())) {
    for (std::size_t member = 0; member < members_; ++member)
      sources_.push_back(buffers_[member].data());
  }

  // The size of a whole piece: the same on all members.
  std::size_t bytes() const { return piece_ * kernel_.bytes; }

  // Zeros if there are no members.
  Result<const std::byte*> of(const std::byte* source, std::size_t bytes) {
    const RouteTable& table = team_.world().program_routes();
    for (std::size_t member = 0; member < members_; ++member)
      MEMSPAN_PASS(
          pull(team_, table, static_cast<int>(member), buffers_[member].data(), source, bytes));
    std::byte* const result = buffers_.back().data();
    if (members_ != 0)
      kernel_.combine(result, sources_.data(), static_cast<int>(members_), bytes / kernel_.bytes);
    return result;
  }

 private:
  Team& team_;
  const ReductionKernel& kernel_;
  const std::size_t members_;
  const std::size_t piece_;                      // elements
  std::vector<std::vector<std::byte>> buffers_;  // of each member, and the result
  std::vector<const void*> sources_;
};

// Each member combines a slice of all sources and puts it to all. dest may be source: only this
// member reads or writes that slice.
Status reduce_on_device(Team& team, const char* what, void* dest, const void* source,
                        std::size_t count, const ReductionKernel& kernel) {
  const RouteTable& table = team.world().program_routes();
  const std::size_t bytes = count * kernel.bytes;
  MEMSPAN_PASS(team.barrier_checked(what, {CollectiveKind::kReduce, bytes}));
  const std::size_t slice = (count / static_cast<std::size_t>(team.size()) + 1) * kernel.bytes;
  const std::size_t first = std::min(bytes, static_cast<std::size_t>(team.index()) * slice);
  const std::size_t last = std::min(bytes, first + slice);
  Combination all(team, kernel, team.size());
  for (std::size_t done = first; done < last; done += all.bytes()) {
    const std::size_t now = std::min(all.bytes(), last - done);
    MEMSPAN_TRY_ASSIGN(const std::byte* sum,
                       all.of(static_cast<const std::byte*>(source) + done, now), "reduction");
    MEMSPAN_PASS(push_to_all(team, table, static_cast<std::byte*>(dest) + done, sum, now));
  }
  MEMSPAN_PASS(complete_pushes(table));
  return team.barrier(what);
}

// dest may be source, so no member writes a piece before all have read it.
Status scan_on_device(Team& team, const char* what, ScanKind kind, void* dest, const void* source,
                      std::size_t count, const ReductionKernel& kernel) {
  const RouteTable& table = team.world().program_routes();
  const std::size_t bytes = count * kernel.bytes;
  MEMSPAN_PASS(team.barrier_checked(what, {CollectiveKind::kScan, bytes}));
  Combination before(team, kernel, team.index() + (kind == ScanKind::kInclusive ? 1 : 0));
  for (std::size_t done = 0; done < bytes; done += before.bytes()) {
    const std::size_t now = std::min(before.bytes(), bytes - done);
    MEMSPAN_TRY_ASSIGN(const std::byte* prefix,
                       before.of(static_cast<const std::byte*>(source) + done, now), "scan");
    MEMSPAN_PASS(team.barrier(what));
    MEMSPAN_PASS(
        push(team, table, team.index(), static_cast<std::byte*>(dest) + done, prefix, now));
  }
  return team.barrier(what);
}

}  // namespace

Status reduce_in_flags(const PrefixReduction& prefix, void* dest, const void* source,
                       std::size_t bytes) {
  Team& team = prefix.team;
  std::uint64_t words[kSignatureWord] = {};
  copy_bytes(words, source, bytes);
  const auto used = static_cast<int>((bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
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
                      std::size_t bytes) {
  return reduce_copies(prefix, dest, source, bytes, [](int member) { return member; });
}

Status reduce_sources(const PrefixReduction& all, std::span<const int> members, void* dest,
                      const void* source, std::size_t bytes) {
  PrefixReduction some = all;
  some.members = static_cast<int>(members.size());
  return reduce_copies(some, dest, source, bytes, [&](int i) { return members[i]; });
}

Status reduce(Team& team, const char* what, void* dest, const void* source, std::size_t count,
              const ReductionKernel& kernel) {
  if (is_on_device(team, dest, source)) [[unlikely]]
    return reduce_on_device(team, what, dest, source, count, kernel);
  const PrefixReduction all{team, what, kernel, CollectiveKind::kReduce, team.size()};
  const std::size_t bytes = count * kernel.bytes;
  if (bytes <= kFlagBytes) return reduce_in_flags(all, dest, source, bytes);
  if (bytes <= team.eager_bytes()) return reduce_eagerly(all, dest, source, bytes);
  return reduce_by_slices(all, static_cast<std::byte*>(dest), static_cast<const std::byte*>(source),
                          bytes);
}

Status scan(Team& team, const char* what, void* dest, const void* source, ScanKind kind,
            std::size_t count, const ReductionKernel& kernel) {
  if (is_on_device(team, dest, source)) [[unlikely]]
    return scan_on_device(team, what, kind, dest, source, count, kernel);
  const int members = team.index() + (kind == ScanKind::kInclusive ? 1 : 0);
  const PrefixReduction prefix{team, what, kernel, CollectiveKind::kScan, members};
  auto* to = static_cast<std::byte*>(dest);
  const auto* from = static_cast<const std::byte*>(source);
  const std::size_t bytes = count * kernel.bytes;
  if (bytes <= std::max(kFlagBytes, team.eager_bytes()))
    return scan_in_pieces(prefix, to, from, bytes);
  const std::uint64_t is_in_place[] = {dest == source ? 1u : 0u};
  MEMSPAN_PASS(team.barrier_checked(what, {prefix.kind, bytes}, is_in_place, 1));
  for (int member = 0; member < team.size(); ++member)
    if (team.word(member, 0) != 0) return scan_in_pieces(prefix, to, from, bytes);
  return scan_by_reading(prefix, to, from, bytes);
}

}  // namespace memspan::pgas
