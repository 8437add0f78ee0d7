// SPDX-License-Identifier: Apache-2.0
#include "world/membership.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>

#include "core/environment.h"
#include "memory/address_plan.h"
#include "memory/budget.h"
#include "net/unix_socket.h"
#include "store/client.h"
#include "store/recipes/rank_recipe.h"
#include "store/recipes/store_group.h"

namespace memspan::inline world {
namespace {

constexpr auto kAnswerLimit = std::chrono::seconds(10);

struct LauncherExchange {
  const Launch launch;
  const NodeSegment& segment;
  std::unique_ptr<StoreClient> store = nullptr;
  std::unique_ptr<StoreGroup> group = nullptr;

  Result<std::vector<std::string>> operator()(const std::string& mine) {
    if (store == nullptr) MEMSPAN_TRY(connect(), "connecting to the launcher's store");
    auto all = group->allgather(mine, Deadline::never(),
                                [this](const std::vector<int>& missing) { return look(missing); });
    if (all.is_ok()) return all;
    return all.status().annotate("exchanging addresses over the launcher's store");
  }

 private:
  Status connect() {
    MEMSPAN_PASS(launch.is_network() ? connect_over_network() : connect_on_host());
    // A process may leave the job and join it again.
    const auto generation = segment.peer(launch.rank).generation.load();
    group = std::make_unique<StoreGroup>(*store, fmt::format("join/{}", generation), launch.rank,
                                         launch.size);
    return Status::ok();
  }

  Status connect_over_network() {
    MEMSPAN_TRY_ASSIGN(const Endpoint endpoint, Endpoint::parse(launch.store_url),
                       "reading the launcher's address");
    const auto& secret = segment.header().secret;
    MEMSPAN_TRY_ASSIGN(store,
                       StoreClient::connect({.endpoint = endpoint,
                                             .security = {.kind = StoreSecurity::Kind::kSecret,
                                                          .secret = {secret, sizeof secret}},
                                             .member = fmt::format("PE {}", launch.rank)},
                                            Deadline::after(kAnswerLimit)),
                       "connecting");
    return Status::ok();
  }

  // One end of a new pair goes to the launcher over the inherited socket, which stays open.
  Status connect_on_host() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      return Status::from_errno("making a pair of sockets");
    Fd ours(ends[0]);
    const Fd theirs(ends[1]);
    MEMSPAN_PASS_ASSIGN(const Fd inherited, duplicate(launch.store, "using the launcher's socket"));
    MEMSPAN_PASS(unix_send(inherited, "s", {theirs.get()}));
    MEMSPAN_TRY_ASSIGN(store,
                       StoreClient::adopt(std::move(ours), fmt::format("PE {}", launch.rank),
                                          Deadline::after(kAnswerLimit)),
                       "connecting");
    return Status::ok();
  }

  // The launcher notes deaths on all nodes, also of processes that never came to the store.
  Status look(const std::vector<int>& missing) const {
    for (const int rank : missing)
      if (segment.peer(rank).is_dead())
        return {Code::kPeerLost, fmt::format("PE {} died before it joined", rank)};
    if (segment.header().exit_requested.load(std::memory_order_acquire) == 2)
      return {Code::kUnavailable, "the job was asked to end"};
    return Status::ok();
  }
};

// The launcher's descriptors stay open for a later join of this process, but not for its children.
Result<Fd> inherit(int descriptor) {
  if (fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0) {
    if (errno != EBADF)
      return Status::from_errno(fmt::format("descriptor {} of {}", descriptor, kLaunchVariable));
    return Status(
        Code::kUnavailable,
        fmt::format("descriptor {} of {} is closed: a process between oshrun and this one "
                    "did not pass it on (Python's subprocess needs close_fds=False)",
                    descriptor, kLaunchVariable));
  }
  return duplicate(descriptor, kDuplicating);
}

std::optional<std::uint64_t> inode_of_socket(int descriptor) {
  struct stat info {};
  if (fstat(descriptor, &info) != 0 || !S_ISSOCK(info.st_mode)) return std::nullopt;
  return info.st_ino;
}

// It carries no data, so a program that has closed it may join.
Lifeline hold_lifeline(int descriptor) {
  const auto inode = inode_of_socket(descriptor);
  if (!inode || fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0) return {};
  return {descriptor, *inode};
}

constexpr std::int64_t kPortOffset = 11;  // torchrun's own store has MASTER_PORT itself

// The store's place by an address and a port; nullopt when they are not set.
Result<std::optional<Endpoint>> master_from_environment() {
  auto address = environment("SHMEM_MASTER_ADDR");
  bool is_ours = address.has_value();
  if (!address) address = environment("MASTER_ADDR");
  const char* port_name = is_ours ? "SHMEM_MASTER_PORT" : "MASTER_PORT";
  auto port_text = environment(port_name);
  if (!address || !port_text) return std::optional<Endpoint>();
  std::int64_t offset = is_ours ? 0 : kPortOffset;
  MEMSPAN_TRY_ASSIGN(std::int64_t port, parse_integer(port_name, *port_text, 1, 65535 - offset),
                     "reading the environment");
  return std::optional<Endpoint>(Endpoint{*address, static_cast<std::uint16_t>(port + offset)});
}

// Explains the port in a failure that names it.
Status explain_port(const Status& failure, const Rendezvous& rendezvous) {
  const std::uint16_t port = rendezvous.store.first().port;
  const bool is_after_master = !environment("MEMSPAN_STORE") && !environment("SHMEM_MASTER_ADDR");
  if (!is_after_master || failure.message().find(fmt::format(":{}", port)) == std::string::npos)
    return failure;
  return {failure.code(),
          fmt::format("{}. Port {} is MASTER_PORT + {}: torchrun's own store has MASTER_PORT",
                      failure.message(), port, kPortOffset)};
}

// Reads rank and size; false if they are not set.
Result<bool> read_place(Rendezvous& rendezvous) {
  if (environment("RANK") && environment("WORLD_SIZE")) {
    MEMSPAN_TRY_ASSIGN(const auto size, environment_integer("WORLD_SIZE", 1, kMostPeers),
                       "reading the environment");
    MEMSPAN_TRY_ASSIGN(const auto rank, environment_integer("RANK", 0, *size - 1),
                       "reading the environment");
    rendezvous.rank = static_cast<int>(*rank);
    rendezvous.size = static_cast<int>(*size);
    return true;
  }
  MEMSPAN_TRY_ASSIGN(const auto launcher, find_foreign_launcher(), "reading the environment");
  if (!launcher || !launcher->rank || !launcher->size) return false;
  if (*launcher->rank >= *launcher->size || *launcher->size > kMostPeers)
    return Status(Code::kInvalidArgument,
                  fmt::format("{} says that this is process {} of {}; allowed are up to {}",
                              launcher->who, *launcher->rank, *launcher->size, kMostPeers));
  rendezvous.rank = *launcher->rank;
  rendezvous.size = *launcher->size;
  if (!launcher->job.empty()) rendezvous.job = launcher->job;
  return true;
}

}  // namespace

Exchange exchange_over_launcher(const Launch& launch, const NodeSegment& segment) {
  // Owner: the function and its copies.
  const std::shared_ptr<LauncherExchange> exchange(new LauncherExchange{launch, segment});
  return [exchange](const std::string& mine) { return (*exchange)(mine); };
}

void Membership::forget_in_child() {
  if (detector != nullptr) detector->forget_in_child();
  if (lifeline.descriptor >= 0 && inode_of_socket(lifeline.descriptor) == lifeline.inode)
    close(lifeline.descriptor);
}

Status claim_rank(const NodeSegment& segment, int rank) {
  PeerSlot& self = segment.peer(rank);
  PeerState state = self.state.load(std::memory_order_acquire);
  if (state == PeerState::kJoined || state == PeerState::kLost)
    return {
        Code::kUnavailable,
        fmt::format("rank {} of this job belongs to process {}, which {}{}", rank, self.pid.load(),
                    state == PeerState::kLost ? "died" : "has not left it", kRankTaken)};
  self.pid.store(getpid(), std::memory_order_relaxed);
  self.wait_status.store(-1, std::memory_order_relaxed);
  self.generation.fetch_add(1, std::memory_order_relaxed);
  if (!self.state.compare_exchange_strong(state, PeerState::kJoined, std::memory_order_acq_rel))
    return {Code::kUnavailable,
            fmt::format("rank {} of this job was taken by another process just now", rank)};
  segment.add_cores(usable_core_set());
  return Status::ok();
}

Status make_host_memory(Membership& joined) {
  const int near = joined.nodes.peers_in(joined.node());
  MEMSPAN_TRY_ASSIGN(MemoryBudget budget, measure_memory_budget(), "sizing the heap");
  const std::uint64_t stride = heap_file_stride(budget.total);
  MEMSPAN_TRY_ASSIGN(NodeSegment segment,
                     NodeSegment::create(joined.size, stride, near > usable_cores()),
                     "making the job's memory");
  MEMSPAN_TRY_ASSIGN(Pages heap, Pages::create(near * stride, "memspan-heap"),
                     "making the job's memory");
  joined.segment = std::make_unique<NodeSegment>(std::move(segment));
  joined.heap = std::make_unique<Pages>(std::move(heap));
  return Status::ok();
}

Status take_host_memory(Membership& joined, Fd segment_descriptor, Fd heap_descriptor) {
  MEMSPAN_PASS_ASSIGN(NodeSegment segment, NodeSegment::attach(std::move(segment_descriptor)));
  MEMSPAN_PASS_ASSIGN(Pages heap, Pages::adopt(std::move(heap_descriptor)));
  joined.segment = std::make_unique<NodeSegment>(std::move(segment));
  joined.heap = std::make_unique<Pages>(std::move(heap));
  return Status::ok();
}

Result<Membership> join_launched(const Launch& launch) {
  Membership joined(launch.rank, launch.size);
  joined.how = "started by oshrun";
  MEMSPAN_PASS_ASSIGN(Fd segment_descriptor, inherit(launch.segment));
  MEMSPAN_PASS_ASSIGN(Fd heap_descriptor, inherit(launch.heap));
  MEMSPAN_PASS(take_host_memory(joined, std::move(segment_descriptor), std::move(heap_descriptor)));
  const NodeSegment& segment = *joined.segment;
  joined.nodes = launch.nodes();
  if (launch.is_network()) {
    MEMSPAN_TRY_ASSIGN(joined.store_endpoint, Endpoint::parse(launch.store_url),
                       "reading the launcher's address");
  }
  // Simulated hosts are all in one kernel.
  if (!joined.nodes.is_one()) {
    MEMSPAN_TRY_ASSIGN(joined.carrier,
                       choose_carrier(launch.is_network() ? Reach::kNetwork : Reach::kOneKernel,
                                      joined.store_endpoint),
                       "choosing a carrier");
  }
  const std::size_t near = joined.nodes.peers_in(joined.node());
  if (segment.peers() != launch.size || joined.heap->bytes() / segment.header().heap_stride < near)
    return Status(Code::kInvalidArgument,
                  fmt::format("{} says {} processes, the node segment {}", kLaunchVariable,
                              launch.size, segment.peers()));
  MEMSPAN_PASS(claim_rank(segment, launch.rank));
  joined.lifeline = hold_lifeline(launch.store);
  joined.is_launched = true;
  // For processes with the library from the start, share_static_segment_at_start() does this.
  segment.header().library_seen.store(1, std::memory_order_relaxed);
  joined.exchange = exchange_over_launcher(launch, segment);
  return joined;
}

Result<Membership> join_single() {
  Membership joined(0, 1);
  joined.how = "as the only process, since no variable names a job";
  MEMSPAN_TRY(make_host_memory(joined), "starting a job of one");
  MEMSPAN_TRY(claim_rank(*joined.segment, 0), "starting a job of one");
  return joined;
}

Result<std::optional<Rendezvous>> rendezvous_from_environment() {
  Rendezvous rendezvous;
  const auto url = environment("MEMSPAN_STORE");
  if (url) {
    MEMSPAN_TRY_ASSIGN(rendezvous.store, StoreAddress::parse(*url), "reading MEMSPAN_STORE");
    rendezvous.is_store_elsewhere = true;
  } else {
    MEMSPAN_PASS_ASSIGN(const auto master, master_from_environment());
    if (!master) return std::optional<Rendezvous>();
    rendezvous.store = *master;
  }
  MEMSPAN_PASS_ASSIGN(const bool has_place, read_place(rendezvous));
  if (!has_place) return std::optional<Rendezvous>();
  if (url) rendezvous.job = environment_or("MEMSPAN_JOB", rendezvous.job);
  return std::optional<Rendezvous>(std::move(rendezvous));
}

Result<Membership> join_from_environment(Duration limit, const StoreSecurity& security,
                                         const std::optional<Rendezvous>& again) {
  MEMSPAN_PASS_ASSIGN(auto launch, Launch::from_environment());
  if (launch) return join_launched(*launch);
  MEMSPAN_PASS_ASSIGN(auto rendezvous, rendezvous_from_environment());
  if (rendezvous) {
    rendezvous->security = security;
    auto joined = join_rendezvous(*rendezvous, limit);
    if (!joined.is_ok()) return explain_port(joined.status(), *rendezvous);
    return joined;
  }
  if (again) {
    MEMSPAN_TRY_ASSIGN(Membership joined, join_rendezvous(*again, limit), "joining the job again");
    joined.again = again;
    return joined;
  }
  MEMSPAN_PASS_ASSIGN(const auto launcher, find_foreign_launcher());
  return launcher ? join_by_foreign_launcher(*launcher, limit, security) : join_single();
}

}  // namespace memspan::inline world
