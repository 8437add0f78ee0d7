// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/transfer_endpoint.h"

#include <sys/prctl.h>
#include <unistd.h>

#include "core/environment.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "core/random.h"
#include "device/choice.h"
#include "device/host/copy.h"
#include "device/host/guarded_copy.h"
#include "fabric/transfer/endpoint_record.h"
#include "fabric/transfer/registration_table.h"

namespace memspan::transfer {
namespace {

constexpr Duration kTellAfter = std::chrono::seconds(3);

constexpr const char* kDestroyed = "the endpoint has been destroyed";
// As long as MemFabric's registering sleeps, on which programs rely as a barrier.
Result<Duration> registration_patience() {
  constexpr std::int64_t kUsual = 8;
  constexpr std::int64_t kMost = 86400;
  MEMSPAN_PASS_ASSIGN(auto seconds, environment_integer("MEMSPAN_TRANS_WAIT", 0, kMost));
  return Duration(std::chrono::seconds(seconds.value_or(kUsual)));
}

}  // namespace

Result<std::unique_ptr<Endpoint>> Endpoint::open(std::shared_ptr<Member> member,
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
  MEMSPAN_PASS_ASSIGN(auto table, RegistrationTable::create());
  MEMSPAN_PASS_ASSIGN(auto notifications, NotificationQueue::create());
  MEMSPAN_PASS_ASSIGN(auto worker, Worker::create());
  // If the Yama module restricts ptrace, peers may still reach this process's memory.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  std::unique_ptr<Endpoint> made(new Endpoint(std::move(member), std::move(record),
                                              std::move(table), std::move(notifications),
                                              std::move(worker), patience));
  MEMSPAN_TRY_ASSIGN(made->listed_, ListedMember::list(MemberKind::kEndpoint, normal, 0, 1),
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

Endpoint::~Endpoint() {
  member_->services().remove(record_.published_name());
  memory_.close();
  worker_->end();
  peers_.reset();
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

Result<std::string> Endpoint::answer(std::string_view request) {
  MEMSPAN_PASS_ASSIGN(auto asked, decode_endpoint_request(request));
  if (asked.notify) return answer_notify(*asked.notify);
  MEMSPAN_PASS_ASSIGN(auto access, member_->remote_access());
  MEMSPAN_PASS_ASSIGN(auto answer, memory_.resolve(*access, asked.resolve));
  return encode(answer);
}

// kUnavailable: the queue is full.
Result<std::string> Endpoint::answer_notify(const Notify& notify) {
  const CompletionAction& action = notify.action;
  if (action.counter) MEMSPAN_PASS(check_counter(*action.counter));
  if (action.message) {
    const Status status = notifications_.push({notify.sender, *action.message});
    if (status.code() == Code::kTimeout) return Status(Code::kUnavailable, status.message());
    if (!status.is_ok()) return status;
  }
  if (action.counter) add_to_counter(counters(), *action.counter, action.value);
  return std::string();
}

Status Endpoint::reach(std::string_view peer) {
  const EndsWith ends(is_ending_, kDestroyed);
  const auto found = peers_->find(peer);
  return found.is_ok() ? (*found)->ask() : found.status();
}

Status Endpoint::submit(Direction direction, std::string_view peer, const Pieces& pieces,
                        const DeviceStream& stream) {
  const EndsWith ends_early(is_ending_, kDestroyed);
  MEMSPAN_PASS_ASSIGN(auto found, peers_->find(peer));
  return StreamTransfer(*found, direction, stream).submit(pieces);
}

Status Endpoint::transfer(Direction direction, std::string_view peer, const Pieces& pieces,
                          Ends ends) {
  const EndsWith ends_early(is_ending_, kDestroyed);
  auto found = peers_->find(peer);
  if (!found.is_ok()) return found.status();
  CopyEngine engine(**found, direction, pieces, Cursor{},
                    ends == Ends::kAny ? (*found)->device() : nullptr);
  Status status = engine.move_all();
  if (!status.is_ok() && is_ending_.load(std::memory_order_acquire))
    return {Code::kUnavailable, kDestroyed};
  if (!engine.is_refused()) [[likely]]
    return status;
  return wait_for_registration(**found, engine, std::move(status));
}

// The peer does not report registrations, so this polls.
Status Endpoint::wait_for_registration(Peer& peer, CopyEngine& engine, Status refusal) {
  constexpr Duration kNap = std::chrono::milliseconds(1);
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

}  // namespace memspan::transfer
