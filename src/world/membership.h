// SPDX-License-Identifier: Apache-2.0
// How a process becomes a numbered member of a job, whatever started it:
//   launched    oshrun left a Launch in the environment: nothing is exchanged
//   rendezvous  rank, size and the store's address are known (torchrun's variables, -ipport, a
//               unique id): rank 0 hosts the store, the lowest rank of the host makes the board
//               and the heap and hands their descriptors over a Unix socket
//   exchange    the members can tell each other texts in a way of the caller's, and the lowest rank
//               keeps the host as above
//   single      none of these: a job of one
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/fd.h"
#include "core/status.h"
#include "device/pages.h"
#include "store/client.h"
#include "store/endpoint.h"
#include "store/security.h"
#include "store/server.h"
#include "world/board.h"
#include "world/failure_detector.h"
#include "world/launch.h"

namespace memspan {

// What a person or an environment says about the job.
struct Rendezvous {
  int rank = 0;
  int size = 1;
  Endpoint store;
  StoreSecurity security = {};
  std::string job = "job";  // keeps jobs apart that meet at one store
  enum class Host {
    kRankZero,   // rank 0 hosts the store
    kElsewhere,  // it is there already: memspan-store
  } host = Host::kRankZero;
  // Set by a unique id: the store's server, already listening in this process.
  std::shared_ptr<StoreServer> hosted;  // owners: the unique id's maker and the Membership
};

// A launcher's socket, which stays open until the process ends or calls exec(): then the launcher
// sees it closed. A value; owns nothing.
struct Lifeline {
  int descriptor = -1;
  std::uint64_t inode = 0;  // tells whether the program has given the number to something else
};

// Move-only. Destruction order is member order, last first.
struct Membership {
  Membership(int its_rank, int its_size) : rank(its_rank), size(its_size) {}
  int rank;
  int size;
  std::string how;  // it came to be, for a person
  std::string job;  // of a rendezvous
  Rendezvous::Host host = Rendezvous::Host::kRankZero;
  std::shared_ptr<StoreServer> server;  // rank 0 of a rendezvous only; shared with the unique id
  std::unique_ptr<StoreClient> store;   // of a rendezvous
  std::unique_ptr<Board> board;
  std::unique_ptr<Pages> heap;                // all ranks' segments, rank r at r * heap_stride
  std::unique_ptr<FailureDetector> detector;  // null when a launcher watches
  Lifeline lifeline;

  // In a child of fork(): closes what tells others that this process is there.
  void forget_in_child();
};

// kInvalidArgument (a variable is wrong), kTimeout (names who did not come), kNotSupported (a
// member on another host), kUnavailable (this rank is taken by a live process), kPeerLost (who
// died while joining), kAuth (the members do not trust each other).
Result<Membership> join_launched(const Launch& launch);
Result<Membership> join_rendezvous(const Rendezvous& rendezvous, Duration limit);
// Every member's text, by rank; called by all, as often. Its failure is the join's.
using Exchange = std::function<Result<std::vector<std::string>>(const std::string& mine)>;
Result<Membership> join_by_exchange(int rank, int size, const Exchange& exchange, Duration limit);
Result<Membership> join_single();

// After the last barrier of the job: stops watching and, in a job that met over a store, closes
// it. When this returns the store's address may serve another job. Does nothing otherwise.
Status leave_rendezvous(Membership& member, Duration limit);

// RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as torchrun sets them (the store listens at
// MASTER_PORT + 11, since torchrun's own store has MASTER_PORT; SHMEM_MASTER_ADDR and
// SHMEM_MASTER_PORT are taken as they are). With MEMSPAN_STORE=tcp://HOST:PORT instead of an
// address and a port the store is a process of its own, and MEMSPAN_JOB names the job there.
// nullopt when they are not set.
Result<std::optional<Rendezvous>> rendezvous_from_environment();

// Picks one of the three by the environment; `security` protects the store of a rendezvous. An
// environment that shows another launcher (Open MPI, PMI) without a way to meet is an error, not a
// job of one.
Result<Membership> join_from_environment(Duration limit, const StoreSecurity& security);

}  // namespace memspan
