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
#include "fabric/transfer/endpoint_record.h"
#include "fabric/transfer/ledger.h"
#include "fabric/transfer/library_memory.h"
#include "fabric/transfer/mailbox.h"
#include "fabric/transfer/mover.h"
#include "fabric/transfer/peers.h"
#include "fabric/transfer/pieces.h"
#include "fabric/transfer/registrations.h"
#include "fabric/transfer/request.h"
#include "fabric/transfer/worker.h"

namespace memspan::transfer {

// Thread-safe, but for its end.
class Endpoint {
 public:
  // kUnavailable: a living process has the name; kInvalidArgument: it is none.
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
  // Registered memory on a page, which peers map.
  Result<void*> allocate(std::size_t bytes) MEMSPAN_EXCLUDES(mutex_);
  // kInvalidArgument when such memory does not begin there.
  Status release(const void* address) MEMSPAN_EXCLUDES(mutex_);

  // Moves all pieces, or those before the one that the failure names. Waits for what the peer has
  // not registered yet: Peers::patience_with().
  Status transfer(Direction direction, std::string_view peer, const Pieces& pieces);

  // Shared by the caller and the worker, while it is posted.
  std::shared_ptr<Request> prepare(Direction direction, std::string peer,
                                   std::unique_ptr<const Pieces> pieces) const;
  // As Worker.
  Status post(const std::shared_ptr<Request>& request) { return worker_->post(request, *peers_); }
  Status set_down(Worker::Down down) { return worker_->set_down(std::move(down)); }
  bool is_own_thread() const { return worker_->is_own_thread(); }

  // As Mailbox and counters.h; kUnavailable once the endpoint is to be destroyed.
  Result<Notification> receive(Deadline deadline) const { return mailbox_.receive(deadline); }
  // Finds a peer, as a transfer to it would; see Peers::find().
  Status reach(std::string_view peer);
  int messages_event() const { return mailbox_.descriptor(); }
  Status wait_for_counter(std::uint32_t counter, std::uint64_t value, Deadline deadline) const;
  const ledger::Counters& counters() const { return counters_; }
  // Ends every wait for messages and counters, for good.
  void end_waits();

 private:
  struct Slice {
    LibrarySlice memory;
    std::uint32_t number;
    std::uint32_t slot;  // of the ledger
  };
  Endpoint(std::shared_ptr<Member> member, EndpointRecord record, Ledger ledger, Mailbox mailbox,
           std::shared_ptr<Worker> worker, Duration patience);
  Status wait_for_registration(Peer& peer, Mover& mover, Status refusal);
  Status offer_slice(LibrarySlice& memory, std::uint32_t number);

  const std::shared_ptr<Member> member_;
  const EndpointRecord record_;
  const Mailbox mailbox_;
  std::atomic<bool> is_ending_{false};  // waits end
  Mutex mutex_;
  Ledger ledger_ MEMSPAN_GUARDED_BY(mutex_);
  ledger::Counters& counters_;  // in the ledger's pages
  Registrations registrations_ MEMSPAN_GUARDED_BY(mutex_);
  std::map<const void*, Slice> slices_ MEMSPAN_GUARDED_BY(mutex_);
  std::uint32_t last_slice_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  bool has_name_ = false;
  const std::shared_ptr<Worker> worker_;  // shared with the peers, which tell it of their ends
  std::unique_ptr<Peers> peers_;
};

}  // namespace memspan::transfer
