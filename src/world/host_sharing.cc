// SPDX-License-Identifier: Apache-2.0
// Members that can exchange texts become a job on one host: the keeper makes the board and the
// heap, hands out their descriptors and watches the others, who watch it.
#include <fmt/format.h>

#include "transport/host_identity.h"
#include "world/hand_over.h"
#include "world/membership_steps.h"
#include "world/pidfd.h"

namespace memspan {
namespace {

constexpr int kKeeper = 0;  // the lowest rank of the host, and there is one host

// What goes round is "=TEXT", or "!MESSAGE" of a member that cannot go on: then nobody does,
// instead of waiting for it.
Result<std::vector<std::string>> tell(const Exchange& exchange, const Result<std::string>& mine) {
  MEMSPAN_TRY_ASSIGN(std::vector<std::string> all,
                     exchange(mine.is_ok() ? "=" + mine.value() : "!" + mine.status().message()),
                     "telling the others");
  if (!mine.is_ok()) return mine.status();
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty() || all[rank][0] != '=')
      return Status(Code::kUnavailable,
                    fmt::format("PE {}: {}", rank, all[rank].empty() ? "" : all[rank].substr(1)));
    all[rank].erase(0, 1);
  }
  return all;
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

Result<HandOver> open_host(Membership& joined, Channel channel) {
  MEMSPAN_TRY_ASSIGN(HostMemory memory, make_host_memory(joined.size), "making the job's memory");
  joined.board = std::move(memory.board);
  joined.heap = std::move(memory.heap);
  return HandOver::open(channel);
}

// What members tell of themselves, and the keeper after it where it is: "PROCESS NAMESPACE|TICKET".
constexpr char kBeforeTicket = '|';

Result<ProcessIdentity> identity_in(const std::string& text) {
  return ProcessIdentity::parse(text.substr(0, text.find(kBeforeTicket)));
}

Status keep_host(Membership& joined, const Exchange& exchange, Channel channel,
                 const std::function<Status()>& check, Deadline deadline) {
  Result<HandOver> hand_over = open_host(joined, channel);
  MEMSPAN_TRY_ASSIGN(
      const std::vector<std::string> texts,
      tell(exchange, hand_over.is_ok() ? Result<std::string>(ProcessIdentity::own().to_string() +
                                                             kBeforeTicket + hand_over->ticket())
                                       : Result<std::string>(hand_over.status())),
      "telling the address of this host's keeper");
  std::vector<ProcessIdentity> identities;
  for (const std::string& text : texts) {
    MEMSPAN_TRY_ASSIGN(const ProcessIdentity member, identity_in(text), "meeting the others");
    identities.push_back(member);
  }
  MEMSPAN_TRY_ASSIGN(std::vector<ServedMember> members,
                     hand_over->serve(identities, joined.board->descriptor(),
                                      joined.heap->descriptor(), deadline, check),
                     "handing the memory to the other processes");
  std::vector<FailureDetector::Watched> watched;
  for (int rank = 1; rank < joined.size; ++rank) {
    ServedMember& member = members[static_cast<std::size_t>(rank)];
    watched.push_back({rank, std::move(member.pidfd), std::move(member.connection)});
  }
  MEMSPAN_TRY_ASSIGN(joined.detector, FailureDetector::start(*joined.board, std::move(watched)),
                     "watching the others");
  return Status::ok();
}

Status take_from_keeper(Membership& joined, const Exchange& exchange, Deadline deadline) {
  MEMSPAN_TRY_ASSIGN(const std::vector<std::string> texts,
                     tell(exchange, ProcessIdentity::own().to_string()),
                     "waiting for the keeper of this host");
  const std::string& of_keeper = texts[kKeeper];
  MEMSPAN_TRY_ASSIGN(const ProcessIdentity keeper, identity_in(of_keeper),
                     "waiting for the keeper of this host");
  const std::string ticket =
      of_keeper.substr(std::min(of_keeper.find(kBeforeTicket), of_keeper.size() - 1) + 1);
  MEMSPAN_TRY_ASSIGN(HandedOver handed, take_over(keeper, ticket, joined.rank, deadline),
                     "taking over the memory");
  MEMSPAN_TRY_ASSIGN(Board board, Board::attach(std::move(handed.board)), "taking over the memory");
  MEMSPAN_TRY_ASSIGN(Pages heap, Pages::adopt(std::move(handed.heap)), "taking over the memory");
  joined.board = std::make_unique<Board>(std::move(board));
  joined.heap = std::make_unique<Pages>(std::move(heap));
  std::vector<FailureDetector::Watched> watched;
  watched.push_back({kKeeper, std::move(handed.keeper), std::move(handed.connection)});
  MEMSPAN_TRY_ASSIGN(joined.detector, FailureDetector::start(*joined.board, std::move(watched)),
                     "watching the keeper");
  return Status::ok();
}

Status share(Membership& joined, const Exchange& exchange, Channel channel,
             const std::function<Status()>& check, Deadline deadline) {
  MEMSPAN_TRY(joined.rank == kKeeper ? keep_host(joined, exchange, channel, check, deadline)
                                     : take_from_keeper(joined, exchange, deadline),
              "joining");
  return claim_rank(*joined.board, joined.rank);
}

}  // namespace

Status share_host(Membership& joined, const Exchange& exchange, Channel channel,
                  const std::function<Status()>& check, Deadline deadline) {
  MEMSPAN_TRY_ASSIGN(const std::vector<std::string> hosts, tell(exchange, host_identity()),
                     "waiting for all processes of the job");
  MEMSPAN_PASS(check_one_host(hosts, joined.rank));
  const Status shared = share(joined, exchange, channel, check, deadline);
  // Nobody goes on before all are on the board, or an early end would look like a death.
  return tell(exchange, shared.is_ok() ? Result<std::string>(std::string()) : shared)
      .status()
      .annotate("waiting for all processes of the job");
}

Result<Membership> join_by_exchange(int rank, int size, const Exchange& exchange, Duration limit) {
  Membership joined(rank, size);
  joined.how = "met the others in the caller's way";
  MEMSPAN_TRY(share_host(joined, exchange, Channel::kOpen, Status::ok, Deadline::after(limit)),
              "joining the job");
  return joined;
}

}  // namespace memspan
