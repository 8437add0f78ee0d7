// SPDX-License-Identifier: Apache-2.0
// A named endpoint of this process: what it has registered, and its transfers with others.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/mutex.h"
#include "fabric/member.h"
#include "fabric/transfer/adopted_registrations.h"
#include "fabric/transfer/copy_engine.h"
#include "fabric/transfer/device_registrations.h"
#include "fabric/transfer/endpoint_record.h"
#include "fabric/transfer/exposed_registrations.h"
#include "fabric/transfer/name_claim.h"
#include "fabric/transfer/notification_queue.h"
#include "fabric/transfer/peers.h"
#include "fabric/transfer/pieces.h"
#include "fabric/transfer/registered_allocation.h"
#include "fabric/transfer/registration_table.h"
#include "fabric/transfer/registrations.h"
#include "fabric/transfer/request.h"
#include "fabric/transfer/stream_transfer.h"
#include "fabric/transfer/worker.h"
#include "observe/counters.h"

namespace memspan::transfer {

// Thread-safe, except for its end.
class Endpoint {
 public:
  // kUnavailable: a living process has the name. kInvalidArgument: the name is invalid.
  static Result<std::unique_ptr<Endpoint>> open(std::shared_ptr<Member> member,
                                                std::string_view name, Role role,
                                                Deadline deadline);
  // Peers are refused from its beginning on.
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // As Registrations.
  Status add(std::uint64_t base, std::uint64_t bytes) MEMSPAN_EXCLUDES(mutex_);
  Status add_joined(std::span<const Range> ranges) MEMSPAN_EXCLUDES(mutex_);
  Status remove(std::uint64_t base) MEMSPAN_EXCLUDES(mutex_);
  // As AdoptedRegistrations.
  Status add_adopted(std::uint64_t base, std::uint64_t bytes) MEMSPAN_EXCLUDES(mutex_);
  // The process ends soon: its end does not give adopted memory private pages again.
  void leave_adopted_pages();
  // Registered memory on a page, which peers map.
  Result<void*> allocate(std::size_t bytes) MEMSPAN_EXCLUDES(mutex_);
  // As allocate(), on the device that this process has chosen. If that is not the host, the size is
  // in steps of its pages. After release(), running transfers of this process keep the memory until
  // they are over, and peers until they look at the registrations again.
  Result<void*> allocate_of_device(std::size_t bytes) MEMSPAN_EXCLUDES(mutex_);
  // kInvalidArgument when such memory does not begin there.
  Status release(const void* address) MEMSPAN_EXCLUDES(mutex_);

  // Moves all pieces, or those before the one that the failure names. Waits for memory that the
  // peer has not registered yet: Peers::patience_with().
  // kHost: no end is device memory, and no device is asked.
  enum class Ends { kAny, kHost };
  Status transfer(Direction direction, std::string_view peer, const Pieces& pieces,
                  Ends ends = Ends::kAny);
  Status transfer(Direction direction, std::string_view peer, const Piece& piece);
  // As StreamTransfer.
  Status submit(Direction direction, std::string_view peer, const Pieces& pieces,
                const DeviceStream& stream);

  // Shared by the caller and the worker, while it is posted.
  std::shared_ptr<Request> prepare(Direction direction, std::string peer,
                                   std::unique_ptr<const Pieces> pieces) const;
  // As Worker.
  Status post(const std::shared_ptr<Request>& request) { return worker_->post(request, *peers_); }
  Status set_on_peer_down(Worker::OnPeerDown on_peer_down) {
    return worker_->set_on_peer_down(std::move(on_peer_down));
  }
  bool is_own_thread() const { return worker_->is_own_thread(); }

  // As NotificationQueue and counters.h; kUnavailable once the endpoint is to be destroyed.
  Result<Notification> receive(Deadline deadline) const { return notifications_.receive(deadline); }
  // Finds a peer, as a transfer to it would; see Peers::find().
  Status reach(std::string_view peer);
  int messages_event() const { return notifications_.descriptor(); }
  Status wait_for_counter(std::uint32_t counter, std::uint64_t value, Deadline deadline) const;
  const table_layout::Counters& counters() const { return counters_; }
  // Ends every wait for messages and counters, for good.
  void end_waits();

 private:
  struct Allocation {
    RegisteredAllocation memory;
    std::uint32_t number;
    std::uint32_t slot;  // of the registration table
  };
  Endpoint(std::shared_ptr<Member> member, EndpointRecord record, RegistrationTable table,
           NotificationQueue notifications, std::shared_ptr<Worker> worker, Duration patience);
  // For endpoints on other hosts; runs on a thread that takes their messages.
  Result<std::string> answer(std::string_view request) MEMSPAN_EXCLUDES(mutex_);
  Result<std::string> answer_resolve(const std::vector<Piece>& pieces) MEMSPAN_EXCLUDES(mutex_);
  Result<std::string> answer_notify(const Notify& notify);
  Status wait_for_registration(Peer& peer, CopyEngine& engine, Status refusal);
  AdoptedRegistrations::Table table_for_adopted();
  bool release_of_device(const void* address) MEMSPAN_EXCLUDES(mutex_);
  Status publish_allocation(RegisteredAllocation& memory, std::uint32_t number);

  const std::shared_ptr<Member> member_;
  const EndpointRecord record_;
  const NotificationQueue notifications_;
  std::atomic<bool> is_ending_{false};  // waits end
  Mutex registering_;                   // taken before mutex_, and held while pages are replaced
  AdoptedRegistrations adopted_ MEMSPAN_GUARDED_BY(registering_);
  Mutex mutex_;
  RegistrationTable table_ MEMSPAN_GUARDED_BY(mutex_);
  table_layout::Counters& counters_;  // in the registration table's pages
  Registrations registrations_ MEMSPAN_GUARDED_BY(mutex_);
  DeviceRegistrations of_device_ MEMSPAN_GUARDED_BY(mutex_);
  std::map<const void*, Allocation> allocations_ MEMSPAN_GUARDED_BY(mutex_);
  std::map<const void*, std::shared_ptr<std::byte>> device_memory_ MEMSPAN_GUARDED_BY(mutex_);
  ExposedRegistrations exposed_ MEMSPAN_GUARDED_BY(mutex_);
  std::uint32_t last_allocation_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<NameClaim> name_;
  ListedMember listed_;
  const std::shared_ptr<Worker> worker_;  // shared with the peers, which report their ends to it
  std::unique_ptr<Peers> peers_;
};

}  // namespace memspan::transfer
