// SPDX-License-Identifier: Apache-2.0
// A named endpoint of this process: what it has registered, and its transfers with others.
#pragma once

#include "fabric/transfer/registered_memory.h"
#include "fabric/transfer/request.h"
#include "observe/counters.h"

namespace memspan::transfer {

class NameClaim;

// Thread-safe, except for its end.
class Endpoint {
 public:
  // kUnavailable: a living process has the name. kInvalidArgument: the name is invalid.
  static Result<std::unique_ptr<Endpoint>> open(std::shared_ptr<Member> member,
                                                std::string_view name, Role role,
                                                Deadline deadline);
  // Peers are refused from its beginning on.
  ~Endpoint();

  RegisteredMemory& memory() { return memory_; }

  // Moves all pieces, or those before the one that the failure names. Waits for memory that the
  // peer has not registered yet: Peers::patience_with().
  // kHost: no end is device memory, and no device is asked.
  enum class Ends { kAny, kHost };
  Status transfer(Direction direction, std::string_view peer, const Pieces& pieces,
                  Ends ends = Ends::kAny);
  Status transfer(Direction direction, std::string_view peer, const Piece& piece) {
    if (peers_->move_at_once(peer, direction, piece)) [[likely]]
      return Status::ok();
    return transfer(direction, peer, PieceList({piece}));
  }
  // As submit_to_stream().
  Status submit(Direction direction, std::string_view peer, const Pieces& pieces,
                const DeviceStream& stream);

  const std::string& name() const { return record_.name; }
  Worker& worker() { return *worker_; }
  // As Worker::post().
  Status post(const std::shared_ptr<Request>& request) { return worker_->post(request, *peers_); }

  // As NotificationQueue and counters.h; kUnavailable once the endpoint is to be destroyed.
  Result<Notification> receive(Deadline deadline) const { return notifications_.receive(deadline); }
  // Finds a peer, as a transfer to it would; see Peers::find().
  Status reach(std::string_view peer);
  int messages_event() const { return notifications_.descriptor(); }
  Status wait_for_counter(std::uint32_t counter, std::uint64_t value, Deadline deadline) const {
    return transfer::wait_for_counter(counters(), counter, value, is_ending_, deadline);
  }
  table_layout::Counters& counters() const { return memory_.pages().counters(); }
  // Ends every wait for messages and counters, for good.
  void end_waits() {
    is_ending_.store(true, std::memory_order_seq_cst);
    notify(counters().added);
    notifications_.end();
  }

 private:
  Endpoint(std::shared_ptr<Member> member, EndpointRecord record, RegistrationPages pages,
           NotificationQueue notifications, std::shared_ptr<Worker> worker, Duration patience);
  // For endpoints on other hosts; runs on a thread that takes their messages.
  Result<std::string> answer(std::string_view request);
  Status wait_for_registration(Peer& peer, CopyEngine& engine, Status refusal);

  const std::shared_ptr<Member> member_;
  const EndpointRecord record_;
  const NotificationQueue notifications_;
  std::atomic<bool> is_ending_{false};  // waits end
  RegisteredMemory memory_;
  std::unique_ptr<NameClaim> name_;
  ListedMember listed_;
  const std::shared_ptr<Worker> worker_;  // shared with the peers, which report their ends to it
  std::unique_ptr<Peers> peers_;
};

}  // namespace memspan::transfer
