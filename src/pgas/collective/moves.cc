// SPDX-License-Identifier: Apache-2.0
// The collectives that move elements as they are.

#include "pgas/collective/steps.h"

namespace memspan::inline pgas {
namespace {

// The offset of the block of `member`, in any unit.
std::ptrdiff_t block_of(int member, std::size_t block) {
  return member * static_cast<std::ptrdiff_t>(block);
}

// The data is in the root's line if it fits, else in its eager buffer; the root continues at once.
Status broadcast_eagerly(Team& team, const char* what, void* dest, const void* source,
                         std::size_t bytes, int root, RootsDest roots_dest) {
  const bool is_root = team.index() == root;
  const CollectiveSignature signature{CollectiveKind::kBroadcast, bytes, root};
  std::uint64_t words[kSignatureWord] = {};
  const bool is_in_words = bytes <= sizeof words;
  const int used = is_in_words && is_root ? words_for(bytes) : 0;
  if (is_root && is_in_words) {
    copy_bytes(words, source, bytes);
  } else if (is_root) {
    MEMSPAN_PASS(team.make_room(what));
    copy_bytes(team.my_eager_buffer(), source, bytes);
  }
  MEMSPAN_PASS(team.barrier_of_root(what, signature, root, words, used));
  if (is_root) {
    if (roots_dest == RootsDest::kWritten && dest != source) std::memmove(dest, source, bytes);
  } else if (is_in_words) {
    for (int i = 0; i < words_for(bytes); ++i) words[i] = team.word(root, i);
    copy_bytes(dest, words, bytes);
  } else {
    copy_bytes(dest, team.eager_buffer(root), bytes);
  }
  return Status::ok();
}

// The slots of members that give bytes_of(member), one after the other.
template <typename BytesOf>
std::vector<Slot> slots_of(const Team& team, BytesOf bytes_of) {
  std::vector<Slot> slots;
  std::size_t before = 0;
  for (int member = 0; member < team.size(); ++member) {
    slots.push_back({before, bytes_of(member)});
    before += slots.back().bytes;
  }
  return slots;
}

}  // namespace

Status barrier(Team& team, const char* what) {
  // On mapped memory the barrier's release and acquire make all earlier puts visible to all.
  MEMSPAN_PASS(complete_pushes(team.world().routes()));
  return team.barrier(what);
}

Status broadcast(Team& team, const char* what, void* dest, const void* source, std::size_t bytes,
                 int root, RootsDest roots_dest) {
  const RouteTable& table = routes_for(team, dest, source);
  if (table.device == nullptr && bytes <= team.eager_bytes())
    return broadcast_eagerly(team, what, dest, source, bytes, root, roots_dest);
  MEMSPAN_PASS(team.barrier_checked(what, {CollectiveKind::kBroadcast, bytes, root}));
  if (goes_among_nodes(team, table))
    MEMSPAN_PASS(broadcast_among_nodes(team, what, dest, source, bytes, root));
  else if (team.index() != root)
    MEMSPAN_PASS(pull(team, table, root, dest, source, bytes));
  if (team.index() == root && roots_dest == RootsDest::kWritten)
    MEMSPAN_PASS(push(team, table, root, dest, source, bytes));
  return team.barrier(what);
}

Status fcollect(Team& team, const char* what, void* dest, const void* source, std::size_t bytes) {
  const RouteTable& table = routes_for(team, dest, source);
  if (table.device == nullptr && bytes <= team.eager_bytes()) {
    MEMSPAN_PASS(team.make_room(what));
    copy_bytes(team.my_eager_buffer(), source, bytes);
    MEMSPAN_PASS(team.barrier_checked(what, {CollectiveKind::kCollect, bytes}));
    for (int member = 0; member < team.size(); ++member)
      copy_bytes(at(dest, block_of(member, bytes)), team.eager_buffer(member), bytes);
    return Status::ok();
  }
  if (goes_among_nodes(team, table)) {
    MEMSPAN_PASS(team.barrier_checked(what, {CollectiveKind::kCollect, bytes}));
    return gather_among_nodes(team, what, at(dest, 0), source,
                              slots_of(team, [&](int) { return bytes; }));
  }
  // dest is ready on all members before any call, so no check is needed.
  MEMSPAN_PASS(push_to_all(team, table, at(dest, block_of(team.index(), bytes)), source, bytes));
  MEMSPAN_PASS(complete_pushes(table));
  return team.barrier_checked(what, {CollectiveKind::kCollect, bytes});
}

Status collect(Team& team, const char* what, void* dest, const void* source, std::size_t bytes) {
  const RouteTable& table = routes_for(team, dest, source);
  const std::uint64_t mine[] = {bytes};
  MEMSPAN_PASS(team.barrier(what, mine, 1));
  const auto bytes_of = [&](int member) { return team.word(member, 0); };
  if (goes_among_nodes(team, table))
    return gather_among_nodes(team, what, at(dest, 0), source, slots_of(team, bytes_of));
  std::size_t before = 0;
  for (int member = 0; member < team.index(); ++member) before += bytes_of(member);
  MEMSPAN_PASS(push_to_all(team, table, at(dest, 0) + before, source, bytes));
  MEMSPAN_PASS(complete_pushes(table));
  return team.barrier(what);
}

Status alltoall(Team& team, const char* what, void* dest, const void* source,
                std::size_t block_bytes) {
  const RouteTable& table = routes_for(team, dest, source);
  std::byte* const to = at(dest, block_of(team.index(), block_bytes));
  for (int i = 0; i < team.size(); ++i) {
    const int member = member_after(team, i);
    MEMSPAN_PASS(
        push(team, table, member, to, at(source, block_of(member, block_bytes)), block_bytes));
  }
  MEMSPAN_PASS(complete_pushes(table));
  return team.barrier_checked(what, {CollectiveKind::kAlltoall, block_bytes});
}

Status alltoalls(Team& team, const char* what, void* dest, const void* source,
                 std::ptrdiff_t dest_stride, std::ptrdiff_t source_stride, std::size_t count,
                 std::size_t element_bytes) {
  const RouteTable& table = routes_for(team, dest, source);
  const auto element = static_cast<std::ptrdiff_t>(element_bytes);
  std::byte* const to = at(dest, block_of(team.index(), count) * dest_stride * element);
  const Strides strides{dest_stride, source_stride, 1, count};
  for (int i = 0; i < team.size() && count != 0; ++i) {
    const int member = member_after(team, i);
    MEMSPAN_PASS(move_strided(MoveDirection::kPut, table, table.route_of(to, team.peer_of(member)),
                              to, at(source, block_of(member, count) * source_stride * element),
                              strides, element_bytes));
  }
  MEMSPAN_PASS(complete_pushes(table));
  return team.barrier_checked(what, {CollectiveKind::kAlltoalls, count * element_bytes});
}

}  // namespace memspan::inline pgas
