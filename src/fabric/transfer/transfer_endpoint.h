// SPDX-License-Identifier: Apache-2.0
// A named endpoint of this process: what it has registered, and its transfers with others.
#pragma once

#include "core/environment.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "core/random.h"
#include "device/host/copy.h"
#include "fabric/transfer/name_claim.h"
#include "fabric/transfer/registered_memory.h"
#include "fabric/transfer/worker.h"
#include "net/metrics_server.h"
#include "observe/counters.h"
#include "transport/cma/vector_copy.h"

namespace memspan::transfer {

// Thread-safe, except for its end.
class Endpoint {
 public:
  // kUnavailable: a living process has the name. kInvalidArgument: the name is invalid.
  static Result<std::unique_ptr<Endpoint>> open(std::shared_ptr<Member> member,
                                                std::string_view name, Role role,
                                                Deadline deadline) {
    MEMSPAN_PASS_ASSIGN(auto normal, normal_name(name));
    catch_copy_faults();
    EndpointRecord record{.name = normal,
                          .generation = random_hex(8),
                          .role = role,
                          .broker_address = member->broker().address(),
                          .who = member->identity()};
    MEMSPAN_TRY(chosen_device().status(), "making an endpoint");
    MEMSPAN_PASS(check_copy_setting());
    MEMSPAN_PASS_ASSIGN(auto patience, registration_patience());
    MEMSPAN_PASS_ASSIGN(auto pages, RegistrationPages::create());
    MEMSPAN_PASS_ASSIGN(auto notifications, NotificationQueue::create());
    MEMSPAN_PASS_ASSIGN(auto worker, Worker::create());
    let_peers_copy();
    std::unique_ptr<Endpoint> made(new Endpoint(std::move(member), std::move(record),
                                                std::move(pages), std::move(notifications),
                                                std::move(worker), patience));
    MEMSPAN_TRY_ASSIGN(made->listed_,
                       ListedMember::list(MemberKind::kEndpoint, normal, 0, 1, serve_metrics),
                       "making an endpoint");
    std::vector<Fd> descriptors(2);
    MEMSPAN_TRY_ASSIGN(descriptors[0], made->memory_.pages().duplicate(), "making an endpoint");
    MEMSPAN_TRY_ASSIGN(descriptors[1], made->notifications_.sending_end(), "making an endpoint");
    MEMSPAN_PASS(
        made->member_->broker().publish(made->record_.published_name(), std::move(descriptors)));
    made->member_->services().add(
        made->record_.published_name(),
        [endpoint = made.get()](std::string_view request) { return endpoint->answer(request); });
    MEMSPAN_PASS(made->member_->be_reachable(deadline));
    MEMSPAN_PASS_ASSIGN(made->name_, NameClaim::take(made->member_, made->record_, deadline));
    return made;
  }
  // Peers are refused from its beginning on.
  ~Endpoint() {
    member_->services().remove(record_.published_name());
    memory_.close();
    worker_->end();
    peers_.reset();
    memory_.take_back_adopted();
    member_->broker().retract(record_.published_name());
    if (name_ == nullptr) return;
    KeyValueStore& store = member_->store();
    const bool is_told = member_->has_remote_access() && member_->store_state().is_ok();
    const std::string key = destroyed_key(record_);
    if (is_told)
      member_->tell_end(
          [&](const Deadline& deadline) { return store.set(key, "", deadline, KeyLife::kLease); });
    name_.reset();
    if (is_told)
      member_->tell_end(
          [&](const Deadline& deadline) { return store.remove(key, deadline).status(); });
  }

  RegisteredMemory& memory() { return memory_; }

  // Moves all pieces, or those before the one that the failure names. Waits for memory that the
  // peer has not registered yet: Peers::patience_with().
  // kHost: no end is device memory, and no device is asked. Not inline, because the engine would
  // take 40 KiB on the stack of a small piece.
  enum class Ends { kAny, kHost };
  [[gnu::noinline]] Status transfer(Direction direction, std::string_view peer,
                                    const Pieces& pieces, Ends ends = Ends::kAny) {
    const EndsWith ends_early(is_ending_, kDestroyed);
    MEMSPAN_PASS_ASSIGN(auto found, peers_->find(peer));
    CopyEngine engine(*found, direction, pieces, Cursor{},
                      ends == Ends::kAny ? found->device() : nullptr);
    Status status = engine.move_all();
    if (!status.is_ok() && is_ending_.load(std::memory_order_acquire))
      return {Code::kUnavailable, kDestroyed};
    if (!engine.is_refused()) [[likely]]
      return status;
    return wait_for_registration(*found, engine, std::move(status));
  }
  Status transfer(Direction direction, std::string_view peer, const Piece& piece) {
    if (peers_->move_at_once(peer, direction, piece)) [[likely]]
      return Status::ok();
    return transfer(direction, peer, PieceList({piece}));
  }
  // As submit_to_stream().
  Status submit(Direction direction, std::string_view peer, const Pieces& pieces,
                const DeviceStream& stream) {
    const EndsWith ends_early(is_ending_, kDestroyed);
    MEMSPAN_PASS_ASSIGN(auto found, peers_->find(peer));
    return submit_to_stream(*found, direction, pieces, stream);
  }

  const std::string& name() const { return record_.name; }
  Worker& worker() { return *worker_; }
  // As Worker::post().
  Status post(const std::shared_ptr<Request>& request) { return worker_->post(request, *peers_); }

  // As NotificationQueue and counters.h; kUnavailable once the endpoint is to be destroyed.
  Result<Notification> receive(Deadline deadline) const { return notifications_.receive(deadline); }
  // Finds a peer, as a transfer to it would; see Peers::find().
  Status reach(std::string_view peer) {
    const EndsWith ends(is_ending_, kDestroyed);
    const auto found = peers_->find(peer);
    return found.is_ok() ? (*found)->ask() : found.status();
  }
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
           NotificationQueue notifications, std::shared_ptr<Worker> worker, Duration patience)
      : member_(std::move(member)),
        record_(std::move(record)),
        notifications_(std::move(notifications)),
        memory_(member_->broker(), record_, std::move(pages)),
        worker_(std::move(worker)),
        peers_(std::make_unique<Peers>(
            member_, record_.role, patience, memory_.changes(),
            [worker = worker_](const std::string& peer) { worker->note_peer_down(peer); })) {}
  // As long as MemFabric's registering sleeps, on which programs rely as a barrier.
  static Result<Duration> registration_patience() {
    constexpr std::int64_t kUsual = 8;
    constexpr std::int64_t kMost = 86400;
    MEMSPAN_PASS_ASSIGN(auto seconds, environment_integer("MEMSPAN_TRANS_WAIT", 0, kMost));
    return Duration(std::chrono::seconds(seconds.value_or(kUsual)));
  }
  // For endpoints on other hosts; runs on a thread that takes their messages. kUnavailable: the
  // queue is full.
  Result<std::string> answer(std::string_view request) {
    MEMSPAN_PASS_ASSIGN(auto asked, decode_message<EndpointRequest>(request));
    if (!asked.is_notify) {
      MEMSPAN_PASS_ASSIGN(auto access, member_->remote_access());
      MEMSPAN_PASS_ASSIGN(auto answer, memory_.resolve(*access, asked.resolve));
      return encode_record(answer);
    }
    const CompletionAction& action = asked.action;
    if (action.has_counter) MEMSPAN_PASS(check_counter(action.counter));
    if (action.has_message) {
      const Status status =
          send_notification(notifications_.own_sending_end(), {asked.sender, action.message});
      if (status.code() == Code::kTimeout) return Status(Code::kUnavailable, status.message());
      if (!status.is_ok()) return status;
    }
    if (action.has_counter) add_to_counter(counters(), action.counter, action.value);
    return std::string();
  }
  // The peer does not report registrations, so this polls.
  Status wait_for_registration(Peer& peer, CopyEngine& engine, Status refusal) {
    constexpr Duration kNap = std::chrono::milliseconds(1);
    constexpr Duration kTellAfter = std::chrono::seconds(3);
    const Duration patience = peers_->patience_with(peer);
    if (patience == Duration::zero()) return refusal;
    const Deadline deadline = Deadline::after(patience);
    Deadline tell = Deadline::after(kTellAfter);
    while (engine.is_refused() && !deadline.has_passed()) {
      if (is_ending_.load(std::memory_order_acquire)) return {Code::kUnavailable, kDestroyed};
      if (is_interrupted()) return interruption();
      if (!tell.is_never() && tell.has_passed()) {
        log_line(
            LogLevel::kWarn,
            fmt::format("waiting {:.0f} s more for endpoint {}, which is running, to register "
                        "memory (MEMSPAN_TRANS_WAIT): {}",
                        to_seconds(deadline.remaining()), peer.record().name, refusal.message()));
        tell = Deadline::never();
      }
      std::this_thread::sleep_for(kNap);
      refusal = engine.move_all();
    }
    if (engine.is_refused()) peers_->note_waited_in_vain(peer);
    return refusal;
  }

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
