// SPDX-License-Identifier: Apache-2.0
// How a process becomes a numbered member of a job, whatever started it:
//   launched    oshrun left a Launch in the environment: nothing is exchanged
//   rendezvous  rank, size and the store's address are known (torchrun's variables, -ipport, a
//               unique id): rank 0 hosts the store, the lowest rank of each node makes the node
//               segment and the heap and publishes their descriptors
//   foreign     another vendor's launcher started it: rank 0 hosts a store and publishes its
//               address through that launcher; the rest is as for rendezvous
//   exchange    the members can exchange texts through the caller; the rest is as for rendezvous
//   single      none of these: a job of one
#pragma once

#include "core/agreement.h"
#include "net/own_addresses.h"
#include "node/descriptor_broker.h"
#include "node/process_watch.h"
#include "store/connect.h"
#include "store/recipes/store_group.h"
#include "store/server.h"
#include "store/store_address.h"
#include "world/carrier_choice.h"
#include "world/foreign_launcher.h"
#include "world/launch.h"

namespace memspan::inline world {

// The user's or the environment's description of the job.
struct Rendezvous {
  int rank = 0;
  int size = 1;
  StoreAddress store;
  StoreSecurity security = {};
  std::string job = "job";          // keeps jobs apart that meet at one store
  bool is_store_elsewhere = false;  // it runs already (memspan-store); else rank 0 hosts it
  // Set by a unique id: the store's server, already listening in this process.
  std::shared_ptr<StoreServer> hosted;  // owners: the unique id's maker and the Membership
};

// A launcher's socket. It stays open until the process ends or calls exec(), and then the launcher
// sees it close. A value; owns nothing.
struct Lifeline {
  int descriptor = -1;
  std::uint64_t inode = 0;  // shows whether the program has reused the number
};

// A member's address in a job that met by exchange. A value.
struct MemberAddress {
  Host host;
  std::string kernel;
  ProcessIdentity process;
  std::string broker;  // the broker's address for Membership::channel
};

// Move-only. Destruction order is member order, last first.
struct Membership {
  Membership(int its_rank, int its_size) : rank(its_rank), size(its_size), nodes(its_size) {}
  int rank;
  int size;
  NodeMap nodes;
  CarrierOptions carrier;                  // how PEs of other nodes reach this one
  std::optional<Endpoint> store_endpoint;  // of a rendezvous, or of oshrun's job on several hosts
  std::string how;                         // how it came to be, for users
  std::string job;                         // of a rendezvous
  CreatedGroup group;                      // of the job's members at the store; of a rendezvous
  bool is_store_elsewhere = false;         // of a rendezvous
  std::shared_ptr<StoreServer> server;     // rank 0 of a rendezvous only; shared with the unique id
  std::unique_ptr<KeyValueStore> store;    // of a rendezvous
  // Exchanges what all must know before links can be made; World::create() consumes it. May use the
  // store.
  Exchange exchange;
  std::unique_ptr<NodeSegment> segment;
  // The segments of this node's PEs: the PE with index i at i * heap_stride.
  std::unique_ptr<Pages> heap;
  std::unique_ptr<PeerWatch> detector;  // null when a launcher watches
  // Only in a job that met by exchange; else null and empty.
  std::unique_ptr<DescriptorBroker> broker;
  Channel channel = Channel::kPrivate;  // the channel that carried addresses
  std::vector<MemberAddress> members;
  std::optional<Host> own_host;  // instead of Host::own()
  Lifeline lifeline;
  std::unique_ptr<LauncherChannel> launcher;  // if MPI in this process may still need it
  // How this process joins again if another vendor's launcher published the store's address.
  std::optional<Rendezvous> again;
  bool is_launched = false;  // by oshrun, which sees deaths on all nodes

  int node() const { return nodes.node_of(rank); }
  // In a child of fork(): closes the descriptors that show others that this process lives.
  void forget_in_child();
};

// kInvalidArgument (a variable is invalid), kTimeout (names the missing ranks), kNotSupported (no
// pidfd_open, or no usable launcher protocol), kUnavailable (this rank is taken),
// kPeerLost (names the PE that died while joining), kAuth (the members do not trust each other).
Result<Membership> join_launched(const Launch& launch);
Result<Membership> join_rendezvous(const Rendezvous& rendezvous, Duration limit);
// `host` instead of this process's own (MEMSPAN_HOST_ID), unless it is empty.
Result<Membership> join_by_exchange(int rank, int size, const Exchange& exchange, Duration limit,
                                    const std::string& host = {});
// Over PE 0's store, whose address the launcher passes on; of one process: join_single().
Result<Membership> join_by_foreign_launcher(const ForeignLauncher& launcher, Duration limit,
                                            const StoreSecurity& security);
Result<Membership> join_single();

// Call it after the last barrier of the job. In a job that met over a store, stops watching and
// closes the store, whose address may then serve another job. Does nothing in other jobs.
Status leave_rendezvous(Membership& member, Duration limit);

// Reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as torchrun sets them. The store listens at
// MASTER_PORT + 11, since torchrun's own store has MASTER_PORT. SHMEM_MASTER_ADDR and
// SHMEM_MASTER_PORT are used unchanged. MEMSPAN_STORE=tcp://HOST:PORT or etcd://... names a running
// store instead, and MEMSPAN_JOB the job in it. Without RANK and WORLD_SIZE, another launcher's
// variables provide rank, size and the job's name. nullopt without an address or a rank.
Result<std::optional<Rendezvous>> rendezvous_from_environment();

// Joins in the way that the environment shows; `security` protects the store of a rendezvous. A
// process of another launcher asks that launcher (foreign_launcher.h); if that fails, the join
// fails instead of starting a job of one. `again` is from an earlier membership of this process.
Result<Membership> join_from_environment(Duration limit, const StoreSecurity& security,
                                         const std::optional<Rendezvous>& again = {});

// An all-gather of texts among the processes of a job, before they can reach each other, over the
// launcher's store. It connects at the first call. A wait for a process that has died ends
// with kPeerLost; one that comes late is waited for. `segment` must outlive it.
Exchange exchange_over_launcher(const Launch& launch, const NodeSegment& segment);

// Steps that the ways of becoming a member share.
//
// Opens the job's store at that endpoint.
Result<std::unique_ptr<StoreServer>> listen_for_job(const Rendezvous& rendezvous,
                                                    const Endpoint& endpoint);

// Gives `joined` the memory of its node: new, by the node's leader, or from descriptors of it.
Status make_host_memory(Membership& joined);
Status take_host_memory(Membership& joined, Fd segment_descriptor, Fd heap_descriptor);

// Enters this process on the segment. kUnavailable when the rank is taken or its process died.
Status claim_rank(const NodeSegment& segment, int rank);

// Gives `joined` its node's memory, its place there and a detector. Every member exchanges texts
// three times; `channel` is the kind of `exchange`. While the leader waits for a member it calls
// `check`, whose failure ends the wait. A failure of one member fails all.
Status share_host(Membership& joined, const Exchange& exchange, Channel channel,
                  const std::function<Status()>& check, Deadline deadline);

// The address of a unique id's store. Processes that get the id connect to it, from this host or
// another.
//
// SHMEM_UID_SESSION_ID ("10.0.0.1:8666", "[fd00::1]:8666", "host:8666") if set. Otherwise a free
// port at the first of these addresses: of the first interface whose name begins with
// SHMEM_UID_SOCK_IFNAME ("eth", "eth:inet4", "eth:inet6"; also SHMEM_UID_SOCK_IFNAM), of
// MEMSPAN_NET, or, if a secret opens the store, of the first interface that leads to other hosts.
// Else the loopback's, because certificates name addresses and a store without TLS stays on this
// host. kInvalidArgument if a variable is invalid, kUnavailable if the interface or its address
// does not exist.
Result<Endpoint> choose_unique_id_endpoint(bool needs_secret);

}  // namespace memspan::inline world
