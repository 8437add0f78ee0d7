// SPDX-License-Identifier: Apache-2.0
// Rendezvous over the store: the members meet there, then all become a job.
#include <fmt/format.h>
#include <poll.h>

#include <set>

#include "core/environment.h"
#include "net/own_addresses.h"
#include "store/recipes/all_gather.h"
#include "store/recipes/change_queue.h"
#include "store/recipes/rank_recipe.h"
#include "store/recipes/store_group.h"
#include "world/membership.h"

namespace memspan::inline world {
namespace {

constexpr const char* kSessionVariable = "SHMEM_UID_SESSION_ID";

Result<Endpoint> read_session(const std::string& text) {
  auto endpoint = Endpoint::parse_place(text);
  if (endpoint.is_ok()) return endpoint;
  return Status(
      Code::kInvalidArgument,
      fmt::format("{} is \"{}\": {}; allowed are ADDRESS:PORT, [ADDRESS]:PORT with an IPv6 "
                  "address, and HOST:PORT",
                  kSessionVariable, text, endpoint.status().message()));
}

// "eth", "eth:inet4", "eth:inet6".
Result<std::string> read_interface(const char* variable, std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const std::string_view kind = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  AddressFamily family = AddressFamily::kAny;
  if (kind == "inet4") family = AddressFamily::kIpv4;
  if (kind == "inet6") family = AddressFamily::kIpv6;
  if (name.empty() || (colon != std::string_view::npos && family == AddressFamily::kAny))
    return Status(Code::kInvalidArgument,
                  fmt::format("{} is \"{}\"; allowed are the beginning of an interface's name, "
                              "optionally followed by :inet4 or :inet6",
                              variable, text));
  if (auto address = address_of_interfaces(name, family)) return *address;
  return Status(
      Code::kUnavailable,
      fmt::format("{} is \"{}\", and no interface of this host that is up begins so and has "
                  "an address of that kind",
                  variable, text));
}

// How long PE 0 tries to listen at a port that another process has: a job that ends, or a
// connection that happens to use the port.
constexpr Duration kPortPatience = std::chrono::seconds(5);
// The other PEs, which find that process at the address, wait a second longer than PE 0.
constexpr Duration kStrangerPatience = kPortPatience + std::chrono::seconds(1);

// The prefix of a key of each member, which vanishes with the member.
std::string here_prefix(const std::string& job) {
  return job + "/here/";
}

Status check_all_here(const Membership& joined, KeyValueStore& store, Deadline deadline) {
  MEMSPAN_TRY_ASSIGN(const StoreListing here, store.list(here_prefix(joined.job), deadline),
                     "listing the members");
  std::set<std::string> ranks;
  for (const auto& [key, value] : here) ranks.insert(value);
  for (int rank = 0; rank < joined.size; ++rank)
    if (!ranks.contains(std::to_string(rank)))
      return {Code::kPeerLost, fmt::format("PE {} died or was cut off while it joined", rank)};
  return Status::ok();
}

// The process that hosts the store leaves last. The same address may serve the next job at once, so
// the others wait until this store is gone.
Status wait_for_store_to_close(Membership& member, const Deadline& deadline) {
  KeyValueStore& store = *member.store;
  const std::string here = here_prefix(member.job);
  if (member.server == nullptr) {
    MEMSPAN_PASS(store.remove(here + std::to_string(member.rank), deadline).status());
    const Status gone = store.get(member.job + "/never", deadline).status();
    return gone.code() == Code::kStoreLost ? Status::ok() : gone;
  }
  ChangeQueue changes(store);
  MEMSPAN_PASS(changes.watch(here, deadline));
  for (;;) {
    MEMSPAN_TRY_ASSIGN(const StoreListing rest, store.list(here, deadline), "listing the members");
    if (rest.size() <= 1) return Status::ok();
    for (std::size_t others = rest.size() - 1; others > 0; --others)
      MEMSPAN_PASS(changes.next(deadline).status());
  }
}

Status wait_to_leave(Membership& member, const Deadline& deadline) {
  KeyValueStore& store = *member.store;
  StoreGroup last(store, member.group.name + "/leave", member.rank, member.size);
  MEMSPAN_PASS(last.barrier(deadline));
  if (!member.is_store_elsewhere)
    return wait_for_store_to_close(member, deadline).annotate("waiting for the store to close");
  // The last member to leave removes what the group wrote.
  return StoreGroup(store, member.group, member.rank).leave(deadline);
}

StoreAccess access_to(const Rendezvous& rendezvous) {
  StoreAccess access{.endpoint = rendezvous.store,
                     .security = rendezvous.security,
                     .member = fmt::format("PE {}", rendezvous.rank),
                     .rank = rendezvous.rank};
  if (!rendezvous.is_store_elsewhere)
    access.refusal_patience = kStrangerPatience;
  else  // a store that serves another job than the user has named is the wrong one
    access.job = environment_or("MEMSPAN_JOB", "");
  return access;
}

// Whether a store of the job answers at the address, and has a PE 0.
bool has_another_zero(const Rendezvous& rendezvous) {
  constexpr Duration kLook = std::chrono::milliseconds(250);
  const Deadline deadline = Deadline::after(kLook);
  auto store = connect_store_once(access_to(rendezvous), deadline);
  return store.is_ok() && (*store)->get_now(here_prefix(rendezvous.job) + "0", deadline).is_ok();
}

Result<std::shared_ptr<StoreServer>> listen_when_free(const Rendezvous& rendezvous,
                                                      const Deadline& deadline) {
  constexpr int kPauseMs = 20;
  for (;;) {  // the port may be free a moment later
    auto server = listen_for_job(rendezvous, rendezvous.store.first());
    if (server.is_ok()) return std::shared_ptr<StoreServer>(std::move(server).value());
    if (server.code() != Code::kUnavailable || deadline.has_passed()) return server.status();
    if (has_another_zero(rendezvous)) return server.status().annotate("another process is PE 0");
    ::poll(nullptr, 0, kPauseMs);
    if (is_interrupted()) return interruption().annotate(server.status().message());
  }
}

}  // namespace

Result<Endpoint> choose_unique_id_endpoint(bool needs_secret) {
  if (auto session = environment(kSessionVariable)) return read_session(*session);
  for (const char* variable : {"SHMEM_UID_SOCK_IFNAME", "SHMEM_UID_SOCK_IFNAM"})
    if (auto text = environment(variable)) {
      MEMSPAN_TRY_ASSIGN(std::string address, read_interface(variable, *text),
                         "choosing an interface");
      return Endpoint{std::move(address), 0};
    }
  MEMSPAN_TRY_ASSIGN(std::optional<std::string> named, named_address("MEMSPAN_NET"),
                     "choosing an address");
  if (!named && needs_secret) named = first_address();
  return Endpoint{named.value_or("127.0.0.1"), 0};
}

Result<std::unique_ptr<StoreServer>> listen_for_job(const Rendezvous& rendezvous,
                                                    const Endpoint& endpoint) {
  // The host sets the size, whichever member comes first.
  StoreServerOptions options{.security = rendezvous.security};
  options.sizes[rendezvous.job] = static_cast<std::uint32_t>(rendezvous.size);
  return StoreServer::listen(endpoint, std::move(options));
}

Result<Membership> join_rendezvous(const Rendezvous& rendezvous, Duration limit) {
  Deadline deadline = Deadline::after(limit);
  Membership joined(rendezvous.rank, rendezvous.size);
  joined.how =
      fmt::format("met the others at {} ({})", rendezvous.store.to_string(),
                  rendezvous.is_store_elsewhere ? "a store of its own" : "a store of PE 0");
  joined.job = rendezvous.job;
  joined.is_store_elsewhere = rendezvous.is_store_elsewhere;
  joined.server = rendezvous.hosted;
  if (joined.rank == 0 && joined.server == nullptr && !rendezvous.is_store_elsewhere) {
    MEMSPAN_PASS(rendezvous.store.check_may_be_hosted());
    MEMSPAN_TRY_ASSIGN(joined.server, listen_when_free(rendezvous, deadline.within(kPortPatience)),
                       "hosting the job's store");
  }
  MEMSPAN_PASS_ASSIGN(joined.store, connect_store(access_to(rendezvous), deadline));
  KeyValueStore& store = *joined.store;
  // Every rank enters once, and all must agree on the size.
  MEMSPAN_TRY(take_freed_rank(store, joined.job, joined.rank, joined.size, deadline).status(),
              fmt::format("entering the job at {}", rendezvous.store.to_string()));
  const std::string rank = std::to_string(joined.rank);
  MEMSPAN_PASS(store.set(here_prefix(joined.job) + rank, rank, deadline, KeyLife::kLease));
  joined.store_endpoint = rendezvous.store.first();
  // The keys of a group may outlive a job that was killed, so each job's group is a new one.
  MEMSPAN_PASS_ASSIGN(joined.group, create_group(store, joined.job + "/join", joined.rank,
                                                 joined.size, {}, deadline));
  // Owner: the function, which ends before the store does.
  const auto group = std::make_shared<StoreGroup>(store, joined.group, joined.rank);
  const Exchange exchange = [group, deadline](const std::string& mine) {
    return group->allgather(mine, deadline);
  };
  MEMSPAN_PASS(share_host(
      joined, exchange, Channel::kPrivate, [&] { return check_all_here(joined, store, deadline); },
      deadline));
  joined.exchange = exchange;
  return joined;
}

Status leave_rendezvous(Membership& member, Duration limit) {
  if (member.store == nullptr) return Status::ok();
  member.detector.reset();
  member.exchange = nullptr;  // it uses the store
  Deadline deadline = Deadline::after(limit);
  MEMSPAN_TRY(wait_to_leave(member, deadline), "leaving the job");
  member.store.reset();
  member.server.reset();
  return Status::ok();
}

}  // namespace memspan::inline world
