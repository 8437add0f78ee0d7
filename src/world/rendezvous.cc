// SPDX-License-Identifier: Apache-2.0
// Meeting over the store: who is there, are all on this host, then the keeper hands out the memory.
#include <fmt/format.h>

#include <set>
#include <string>

#include "store/group.h"
#include "transport/host_identity.h"
#include "world/hand_over.h"
#include "world/membership.h"
#include "world/membership_steps.h"
#include "world/pidfd.h"

namespace memspan {
namespace {

constexpr int kKeeper = 0;  // the lowest rank of the host, and there is one host

// Every rank once, and all with the same idea of how many there are.
Status enter(StoreClient& store, const Rendezvous& rendezvous, Deadline deadline) {
  return store.take_rank(rendezvous.job, rendezvous.rank, rendezvous.size, deadline)
      .status()
      .annotate(fmt::format("entering the job at {}", rendezvous.store.to_string()));
}

// A key of each member, which goes with it.
std::string here_prefix(const Membership& joined) {
  return joined.job + "/here/";
}

Status check_all_here(const Membership& joined, StoreClient& store, Deadline deadline) {
  MEMSPAN_TRY_ASSIGN(const StoreClient::Listing here, store.list(here_prefix(joined), deadline),
                     "looking who is there");
  std::set<std::string> ranks;
  for (const auto& [key, value] : here) ranks.insert(value);
  for (int rank = 0; rank < joined.size; ++rank)
    if (!ranks.contains(std::to_string(rank)))
      return {Code::kPeerLost, fmt::format("PE {} died while it joined", rank)};
  return Status::ok();
}

Status check_one_host(const std::vector<std::string>& hosts, int rank) {
  for (std::size_t peer = 0; peer < hosts.size(); ++peer)
    if (hosts[peer] != hosts[static_cast<std::size_t>(rank)])
      return {
          Code::kNotSupported,
          fmt::format("PE {} is on another host ({}) than PE {} ({}); this version connects the "
                      "processes of one host",
                      peer, hosts[peer], rank, hosts[static_cast<std::size_t>(rank)])};
  return Status::ok();
}

// The ticket goes round as an operation of the group, since that ends when a member dies.
Status keep_host(Membership& joined, StoreClient& store, Group& group, Deadline deadline) {
  MEMSPAN_TRY_ASSIGN(HostMemory memory, make_host_memory(joined.size), "keeping the host");
  joined.board = std::move(memory.board);
  joined.heap = std::move(memory.heap);
  MEMSPAN_TRY_ASSIGN(HandOver hand_over, HandOver::open(), "keeping the host");
  MEMSPAN_TRY(group.allgather(hand_over.ticket(), deadline).status(), "keeping the host");
  MEMSPAN_TRY_ASSIGN(
      std::vector<Fd> pidfds,
      hand_over.serve(joined.size, joined.board->descriptor(), joined.heap->descriptor(), deadline,
                      [&] { return check_all_here(joined, store, deadline); }),
      "handing the memory to the other processes");
  std::vector<FailureDetector::Watched> watched;
  for (int rank = 1; rank < joined.size; ++rank)
    watched.push_back({rank, std::move(pidfds[static_cast<std::size_t>(rank)])});
  MEMSPAN_TRY_ASSIGN(joined.detector, FailureDetector::start(*joined.board, std::move(watched)),
                     "keeping the host");
  return Status::ok();
}

Status take_from_keeper(Membership& joined, Group& group, Deadline deadline) {
  MEMSPAN_TRY_ASSIGN(const std::vector<std::string> tickets, group.allgather("", deadline),
                     "waiting for the keeper of this host");
  MEMSPAN_TRY_ASSIGN(HandedOver handed, take_over(tickets[kKeeper], joined.rank, deadline),
                     "taking over the memory");
  MEMSPAN_TRY_ASSIGN(Board board, Board::attach(std::move(handed.board)), "taking over the memory");
  MEMSPAN_TRY_ASSIGN(Pages heap, Pages::adopt(std::move(handed.heap)), "taking over the memory");
  joined.board = std::make_unique<Board>(std::move(board));
  joined.heap = std::make_unique<Pages>(std::move(heap));
  std::vector<FailureDetector::Watched> watched;
  watched.push_back({kKeeper, std::move(handed.keeper)});
  MEMSPAN_TRY_ASSIGN(joined.detector, FailureDetector::start(*joined.board, std::move(watched)),
                     "watching the keeper");
  return Status::ok();
}

Status host_store(Membership& joined, const Rendezvous& rendezvous) {
  joined.server = rendezvous.hosted;
  if (joined.rank != 0 || joined.server != nullptr ||
      rendezvous.host == Rendezvous::Host::kElsewhere)
    return Status::ok();
  // The host's word on the size counts, whoever comes first.
  StoreServerOptions options{.security = rendezvous.security};
  options.sizes[rendezvous.job] = static_cast<std::uint32_t>(rendezvous.size);
  MEMSPAN_TRY_ASSIGN(joined.server, StoreServer::listen(rendezvous.store, std::move(options)),
                     "hosting the job's store");
  return Status::ok();
}

}  // namespace

Result<Membership> join_rendezvous(const Rendezvous& rendezvous, Duration limit) {
  Deadline deadline = Deadline::after(limit);
  Membership joined(rendezvous.rank, rendezvous.size);
  joined.job = rendezvous.job;
  joined.host = rendezvous.host;
  MEMSPAN_TRY(host_store(joined, rendezvous), "joining the job");
  MEMSPAN_TRY_ASSIGN(joined.store,
                     StoreClient::connect({.endpoint = rendezvous.store,
                                           .security = rendezvous.security,
                                           .member = fmt::format("PE {}", rendezvous.rank),
                                           .rank = rendezvous.rank},
                                          deadline),
                     "joining the job");
  StoreClient& store = *joined.store;
  MEMSPAN_TRY(enter(store, rendezvous, deadline), "joining the job");
  const std::string rank = std::to_string(joined.rank);
  MEMSPAN_TRY(store.set(here_prefix(joined) + rank, rank, deadline, StoreOwner::kSession),
              "joining the job");
  Group group(store, joined.job + "/join", joined.rank, joined.size);
  MEMSPAN_TRY_ASSIGN(std::vector<std::string> hosts, group.allgather(host_identity(), deadline),
                     "waiting for all processes of the job");
  MEMSPAN_TRY(check_one_host(hosts, joined.rank), "joining the job");
  MEMSPAN_TRY(joined.rank == kKeeper ? keep_host(joined, store, group, deadline)
                                     : take_from_keeper(joined, group, deadline),
              "joining the job");
  MEMSPAN_TRY(claim_rank(*joined.board, joined.rank), "joining the job");
  // Nobody goes on before all are on the board, or an early end would look like a death.
  MEMSPAN_TRY(group.barrier(deadline), "waiting for all processes of the job");
  return joined;
}

Status leave_rendezvous(Membership& member, Duration limit) {
  if (member.store == nullptr) return Status::ok();
  member.detector.reset();
  Deadline deadline = Deadline::after(limit);
  Group group(*member.store, member.job + "/leave", member.rank, member.size);
  MEMSPAN_TRY(group.barrier(deadline), "leaving the job");
  // The same address may serve the next job at once: the others wait until this store is gone.
  if (member.server == nullptr && member.host == Rendezvous::Host::kRankZero) {
    auto gone = member.store->get(member.job + "/never", deadline);
    if (gone.code() != Code::kStoreLost)
      return gone.status().annotate("waiting for the store to close");
  }
  member.store.reset();
  member.server.reset();
  return Status::ok();
}

}  // namespace memspan
