// SPDX-License-Identifier: Apache-2.0
// How a process becomes a numbered member of a job, whatever started it:
//   launched    oshrun left a Launch in the environment: nothing is exchanged
//   rendezvous  rank, size and the store's address are known (torchrun's variables, -ipport, a
//               unique id): rank 0 hosts the store, the lowest rank of each node makes the node
//               segment and the heap and publishes their descriptors
//   told        another vendor's launcher started it: rank 0 hosts a store and tells the others,
//               through that launcher, where it is; the rest is as above
//   exchange    the members can tell each other texts in a way of the caller's; the rest is as
//               above
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
#include "node/descriptor_broker.h"
#include "node/process_identity.h"
#include "node/process_watch.h"
#include "node/segment.h"
#include "store/connect.h"
#include "store/security.h"
#include "store/server.h"
#include "store/store_address.h"
#include "world/carrier_choice.h"
#include "world/exchange.h"
#include "world/foreign_launcher.h"
#include "world/launch.h"
#include "world/launcher_channel.h"
#include "world/node_map.h"

namespace memspan {

// What a person or an environment says about the job.
struct Rendezvous {
  int rank = 0;
  int size = 1;
  StoreAddress store;
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

// What members of a job that met by exchange know of each other. A value.
struct MemberAddress {
  std::string host;
  std::string kernel;
  ProcessIdentity process;
  std::string broker;  // as Membership::channel has it
};

// Move-only. Destruction order is member order, last first.
struct Membership {
  Membership(int its_rank, int its_size) : rank(its_rank), size(its_size), nodes(its_size) {}
  int rank;
  int size;
  NodeMap nodes;
  CarrierOptions carrier;                  // how PEs of other nodes reach this one
  std::optional<Endpoint> store_endpoint;  // of a rendezvous, or of oshrun's job on several hosts
  std::string how;                         // it came to be, for a person
  std::string job;                         // of a rendezvous
  std::string group;                       // of the job's members at the store; of a rendezvous
  Rendezvous::Host host = Rendezvous::Host::kRankZero;
  std::shared_ptr<StoreServer> server;   // rank 0 of a rendezvous only; shared with the unique id
  std::unique_ptr<KeyValueStore> store;  // of a rendezvous
  // For what has to be known of all before links can be made; World::create() uses it up. May use
  // the store.
  Exchange exchange;
  std::unique_ptr<NodeSegment> segment;
  // The segments of this node's PEs: the PE with index i at i * heap_stride.
  std::unique_ptr<Pages> heap;
  std::unique_ptr<PeerWatch> detector;  // null when a launcher watches
  // Of a job that met by exchange; else null and empty.
  std::unique_ptr<DescriptorBroker> broker;
  Channel channel = Channel::kPrivate;  // that addresses were told over
  std::vector<MemberAddress> members;
  std::string own_host;  // instead of host_identity(), unless it is empty
  Lifeline lifeline;
  std::unique_ptr<LauncherChannel> launcher;  // where MPI of this process may still need it
  // Of a job whose place another vendor's launcher told: how this process joins once more.
  std::optional<Rendezvous> again;
  bool is_launched = false;  // by oshrun, which sees deaths on all nodes

  // In a child of fork(): closes what tells others that this process is there.
  void forget_in_child();
};

// kInvalidArgument (a variable is wrong), kTimeout (names who did not come), kNotSupported (a
// member on another host), kUnavailable (this rank is taken by a live process), kPeerLost (who
// died while joining), kAuth (the members do not trust each other).
Result<Membership> join_launched(const Launch& launch);
Result<Membership> join_rendezvous(const Rendezvous& rendezvous, Duration limit);
// `host` instead of host_identity(), unless it is empty.
Result<Membership> join_by_exchange(int rank, int size, const Exchange& exchange, Duration limit,
                                    const std::string& host = {});
// Through PE 0's store, of which the launcher tells; of one process: join_single().
Result<Membership> join_by_foreign_launcher(const ForeignLauncher& launcher, Duration limit,
                                            const StoreSecurity& security);
Result<Membership> join_single();

// After the last barrier of the job: stops watching and, in a job that met over a store, closes
// it. When this returns the store's address may serve another job. Does nothing otherwise.
Status leave_rendezvous(Membership& member, Duration limit);

// RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as torchrun sets them (the store listens at
// MASTER_PORT + 11, since torchrun's own store has MASTER_PORT; SHMEM_MASTER_ADDR and
// SHMEM_MASTER_PORT are taken as they are). With MEMSPAN_STORE=tcp://HOST:PORT or etcd://...
// instead of an address and a port the store is there already, and MEMSPAN_JOB names the job there.
// Without RANK and WORLD_SIZE rank, size and the job's name are those that another launcher tells
// by its variables. nullopt when there is no address, or no rank.
Result<std::optional<Rendezvous>> rendezvous_from_environment();

// The way in that the environment shows; `security` protects the store of a rendezvous. One of
// another launcher's processes asks that launcher (launcher_channel.h), and where that cannot be
// the join fails: it is not a job of one. `again` is what an earlier membership of this process
// had.
Result<Membership> join_from_environment(Duration limit, const StoreSecurity& security,
                                         const std::optional<Rendezvous>& again = {});

}  // namespace memspan
