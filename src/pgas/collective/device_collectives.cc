// SPDX-License-Identifier: Apache-2.0
#include "pgas/collective/device_collectives.h"

#include <algorithm>
#include <vector>

#include "pgas/collective/pushes.h"

namespace memspan::pgas::on_device {
namespace {

// The size of all members' pieces together.
constexpr std::size_t kBufferBytes = std::size_t{4} << 20;

// A collective's way to its members: each of its ends may be memory of the host or of a device.
class Ways {
 public:
  explicit Ways(Team& team) : team_(team), table_(team.world().program_routes()) {}

  Status put(int member, void* dest, const void* source, std::size_t bytes) const {
    if (bytes == 0 || (member == team_.index() && dest == source)) return Status::ok();
    return pgas::put(table_, route_of(member, dest), dest, source, bytes);
  }
  Status put_to_all(void* dest, const void* source, std::size_t bytes) const {
    for (int i = 0; i < team_.size(); ++i)
      MEMSPAN_PASS(put(member_after(team_, i), dest, source, bytes));
    return Status::ok();
  }
  Status put_strided(int member, void* dest, const void* source, const Strides& strides,
                     std::size_t element_bytes) const {
    if (strides.count == 0) return Status::ok();
    return pgas::put_strided(table_, route_of(member, dest), dest, source, strides, element_bytes);
  }
  Status get(int member, void* to, const void* source, std::size_t bytes) const {
    if (bytes == 0) return Status::ok();
    return pgas::get(table_, route_of(member, source), to, source, bytes);
  }
  // Earlier puts have arrived once this and a barrier are over.
  Status complete() const { return quiet_links(table_); }

 private:
  const Route& route_of(int member, const void* address) const {
    return table_.route_of(address, team_.peer_of(member));
  }

  Team& team_;
  const RouteTable& table_;
};

std::byte* at(void* base, std::size_t offset) {
  return static_cast<std::byte*>(base) + offset;
}
const std::byte* at(const void* base, std::size_t offset) {
  return static_cast<const std::byte*>(base) + offset;
}
std::size_t index_of(const Team& team) {
  return static_cast<std::size_t>(team.index());
}

// Combines the same piece of the first members' sources, in buffers of the host.
class Combination {
 public:
  Combination(const Ways& ways, const ReductionKernel& kernel, int members, int all_members)
      : ways_(ways),
        kernel_(kernel),
        members_(members),
        piece_(std::max<std::size_t>(
            kBufferBytes / static_cast<std::size_t>(all_members) / kernel.bytes, 1)) {
    if (members == 0) return;
    for (int member = 0; member <= members; ++member) buffers_.emplace_back(bytes());
    for (int member = 0; member < members; ++member)
      sources_.push_back(buffers_[index(member)].data());
  }
  // The size of a whole piece: the same on all members.
  std::size_t bytes() const { return piece_ * kernel_.bytes; }
  // Zeros if there are no members.
  Result<const std::byte*> of(const std::byte* source, std::size_t bytes) {
    if (members_ == 0) {
      zeros_.assign(bytes, std::byte{});
      return zeros_.data();
    }
    for (int member = 0; member < members_; ++member)
      MEMSPAN_PASS(ways_.get(member, buffers_[index(member)].data(), source, bytes));
    kernel_.combine(buffers_.back().data(), sources_.data(), members_, bytes / kernel_.bytes);
    return buffers_.back().data();
  }

 private:
  static std::size_t index(int member) { return static_cast<std::size_t>(member); }

  const Ways& ways_;
  const ReductionKernel& kernel_;
  const int members_;
  const std::size_t piece_;                      // elements
  std::vector<std::vector<std::byte>> buffers_;  // of each member, and the result
  std::vector<const void*> sources_;
  std::vector<std::byte> zeros_;
};

}  // namespace

Status broadcast(Team& team, const char* what, void* dest, const void* source, std::size_t bytes,
                 int root, RootsDest roots_dest) {
  const Ways ways(team);
  MEMSPAN_PASS(team.barrier_checked(what, {CollectiveKind::kBroadcast, bytes, root}));
  if (team.index() != root)
    MEMSPAN_PASS(ways.get(root, dest, source, bytes));
  else if (roots_dest == RootsDest::kWritten)
    MEMSPAN_PASS(ways.put(root, dest, source, bytes));
  return team.barrier(what);
}

Status fcollect(Team& team, const char* what, void* dest, const void* source, std::size_t bytes) {
  const Ways ways(team);
  MEMSPAN_PASS(ways.put_to_all(at(dest, index_of(team) * bytes), source, bytes));
  MEMSPAN_PASS(ways.complete());
  return team.barrier_checked(what, {CollectiveKind::kCollect, bytes});
}

Status collect(Team& team, const char* what, void* dest, const void* source, std::size_t bytes) {
  const Ways ways(team);
  const std::uint64_t mine[] = {bytes};
  MEMSPAN_PASS(team.barrier(what, mine, 1));
  std::size_t before = 0;
  for (int member = 0; member < team.index(); ++member) before += team.word(member, 0);
  MEMSPAN_PASS(ways.put_to_all(at(dest, before), source, bytes));
  MEMSPAN_PASS(ways.complete());
  return team.barrier(what);
}

Status alltoall(Team& team, const char* what, void* dest, const void* source,
                std::size_t block_bytes) {
  const Ways ways(team);
  for (int i = 0; i < team.size(); ++i) {
    const int member = member_after(team, i);
    MEMSPAN_PASS(ways.put(member, at(dest, index_of(team) * block_bytes),
                          at(source, static_cast<std::size_t>(member) * block_bytes), block_bytes));
  }
  MEMSPAN_PASS(ways.complete());
  return team.barrier_checked(what, {CollectiveKind::kAlltoall, block_bytes});
}

Status alltoalls(Team& team, const char* what, void* dest, const void* source,
                 std::ptrdiff_t dest_stride, std::ptrdiff_t source_stride, std::size_t count,
                 std::size_t element_bytes) {
  const Ways ways(team);
  const auto block = [&](std::size_t number, std::ptrdiff_t stride) {
    return number * count * static_cast<std::size_t>(stride) * element_bytes;  // strides are > 0
  };
  const Strides strides{dest_stride, source_stride, 1, count};
  for (int i = 0; i < team.size(); ++i) {
    const int member = member_after(team, i);
    MEMSPAN_PASS(
        ways.put_strided(member, at(dest, block(index_of(team), dest_stride)),
                         at(source, block(static_cast<std::size_t>(member), source_stride)),
                         strides, element_bytes));
  }
  MEMSPAN_PASS(ways.complete());
  return team.barrier_checked(what, {CollectiveKind::kAlltoalls, count * element_bytes});
}

// Each member combines a slice of all sources and puts it to all. dest may be source: only this
// member reads or writes that slice.
Status reduce(Team& team, const char* what, void* dest, const void* source, std::size_t count,
              const ReductionKernel& kernel) {
  const Ways ways(team);
  const std::size_t bytes = count * kernel.bytes;
  MEMSPAN_PASS(team.barrier_checked(what, {CollectiveKind::kReduce, bytes}));
  const std::size_t slice = (count / static_cast<std::size_t>(team.size()) + 1) * kernel.bytes;
  const std::size_t first = std::min(bytes, index_of(team) * slice);
  const std::size_t last = std::min(bytes, first + slice);
  Combination all(ways, kernel, team.size(), team.size());
  for (std::size_t done = first; done < last; done += all.bytes()) {
    const std::size_t now = std::min(all.bytes(), last - done);
    MEMSPAN_TRY_ASSIGN(const std::byte* sum, all.of(at(source, done), now), "reduction");
    MEMSPAN_PASS(ways.put_to_all(at(dest, done), sum, now));
  }
  MEMSPAN_PASS(ways.complete());
  return team.barrier(what);
}

// dest may be source, so no member writes a piece before all have read it.
Status scan(Team& team, const char* what, void* dest, const void* source, ScanKind kind,
            std::size_t count, const ReductionKernel& kernel) {
  const Ways ways(team);
  const std::size_t bytes = count * kernel.bytes;
  MEMSPAN_PASS(team.barrier_checked(what, {CollectiveKind::kScan, bytes}));
  const int members = team.index() + (kind == ScanKind::kInclusive ? 1 : 0);
  Combination before(ways, kernel, members, team.size());
  for (std::size_t done = 0; done < bytes; done += before.bytes()) {
    const std::size_t now = std::min(before.bytes(), bytes - done);
    MEMSPAN_TRY_ASSIGN(const std::byte* prefix, before.of(at(source, done), now), "scan");
    MEMSPAN_PASS(team.barrier(what));
    MEMSPAN_PASS(ways.put(team.index(), at(dest, done), prefix, now));
  }
  return team.barrier(what);
}

}  // namespace memspan::pgas::on_device
