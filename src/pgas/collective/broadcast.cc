// SPDX-License-Identifier: Apache-2.0
#include "pgas/collective/among_nodes.h"
#include "pgas/collective/collective.h"
#include "pgas/collective/pushes.h"

namespace memspan::pgas {
namespace {

// The data is in the root's line if it fits, else in its eager buffer; the root continues at once.
Status broadcast_eagerly(Team& team, const char* what, void* dest, const void* source,
                         std::size_t bytes, int root, RootsDest roots_dest) {
  const bool is_root = team.index() == root;
  const CollectiveSignature signature{CollectiveKind::kBroadcast, bytes, root};
  std::uint64_t words[kSignatureWord] = {};
  const bool is_in_words = bytes <= sizeof words;
  const auto used = is_in_words && is_root
                        ? static_cast<int>((bytes + sizeof words[0] - 1) / sizeof words[0])
                        : 0;
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
    for (int i = 0; i * sizeof words[0] < bytes; ++i) words[i] = team.word(root, i);
    copy_bytes(dest, words, bytes);
  } else {
    copy_bytes(dest, team.eager_buffer(root), bytes);
  }
  return Status::ok();
}

// All members read the root's source, between two barriers.
Status broadcast_by_pull(Team& team, const char* what, void* dest, const void* source,
                         std::size_t bytes, int root, RootsDest roots_dest) {
  const RouteTable& table = team.world().routes();
  MEMSPAN_PASS(team.barrier_checked(what, {CollectiveKind::kBroadcast, bytes, root}));
  if (team.nodes() != nullptr)
    MEMSPAN_PASS(broadcast_among_nodes(team, what, dest, source, bytes, root));
  else if (team.index() != root)
    MEMSPAN_PASS(get(table, table.route_of(source, team.peer_of(root)), dest, source, bytes));
  if (team.index() == root && dest != source && roots_dest == RootsDest::kWritten)
    std::memmove(dest, source, bytes);
  return team.barrier(what);
}

}  // namespace

Status broadcast(Team& team, const char* what, void* dest, const void* source, std::size_t bytes,
                 int root, RootsDest roots_dest) {
  if (bytes <= team.eager_bytes())
    return broadcast_eagerly(team, what, dest, source, bytes, root, roots_dest);
  return broadcast_by_pull(team, what, dest, source, bytes, root, roots_dest);
}

}  // namespace memspan::pgas
