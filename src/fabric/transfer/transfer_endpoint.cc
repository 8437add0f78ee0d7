// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/transfer_endpoint.h"

#include <sys/prctl.h>

#include "core/environment.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "core/random.h"
#include "device/host/copy.h"
#include "net/metrics_server.h"
#include "store/recipes/change_queue.h"

namespace memspan::transfer {
namespace {

// A process on this host answers at once, or is stopped and so alive.
constexpr Duration kAnswerPatience = std::chrono::seconds(2);
// The store gives up a silent member on another host after 3 s.
constexpr Duration kDeathPatience = std::chrono::seconds(5);
// For answers that a reachable store gives at once.
constexpr Duration kRenewalPatience = std::chrono::seconds(2);
// How often a claim is repeated after the loss of the store has cut it short.
constexpr int kMostInterruptions = 8;

// A process on another host cannot be asked.
bool may_be_dead(Member& member, const EndpointRecord& holder, const Deadline& deadline) {
  if (!member.is_near(holder.who)) return true;
  const auto answer = member.broker().fetch_and_wait(holder.broker_address, holder.published_name(),
                                                     deadline.within(kAnswerPatience));
  return answer.code() == Code::kUnavailable || answer.code() == Code::kNotFound;
}

// Ok once it is removed, or soon.
Status wait_for_removal(KeyValueStore& store, const std::string& key, const Deadline& deadline) {
  ChangeQueue changes(store);
  MEMSPAN_TRY(changes.watch(key, deadline), "watching a name");
  // It may have gone before the watch began.
  if (store.get_now(key, deadline).code() == Code::kNotFound || changes.pop(deadline))
    return Status::ok();
  return end_of_wait("it was not given up");
}

// Writes the record under the session's lease, if the key is free or has a record of the same
// endpoint, also one of an earlier session. Returns the record that has the name then.
Result<EndpointRecord> write(KeyValueStore& session, const EndpointRecord& record,
                             const Deadline& deadline) {
  const std::string key = record_key(record.name);
  const std::string mine = encode(record);
  auto got = session.compare_and_swap(key, "", mine, deadline, KeyLife::kLease);
  if (!got.is_ok()) return got.status();
  auto holder = decode_record(*got);
  if (!holder.is_ok() || holder->generation != record.generation) return holder;
  got = session.compare_and_swap(key, *got, mine, deadline, KeyLife::kLease);
  return got.is_ok() ? decode_record(*got) : Result<EndpointRecord>(got.status());
}

constexpr Duration kTellAfter = std::chrono::seconds(3);

// As long as MemFabric's registering sleeps, on which programs rely as a barrier.
Result<Duration> registration_patience() {
  constexpr std::int64_t kUsual = 8;
  constexpr std::int64_t kMost = 86400;
  MEMSPAN_PASS_ASSIGN(auto seconds, environment_integer("MEMSPAN_TRANS_WAIT", 0, kMost));
  return Duration(std::chrono::seconds(seconds.value_or(kUsual)));
}

}  // namespace

// A name at the store, which one living process has at a time. The claim outlives the store: when
// the store comes back, the record is written again. If another process has the name by then, that
// is logged once, and the name comes back when that process ends.
// Thread-safe, except for its end.
class NameClaim : NotCopyable {
 public:
  // Writes the record under the lease of the member's session. kUnavailable: a living process has
  // the name. Waits a few seconds for one that has just died, until the store learns of it.
  static Result<std::unique_ptr<NameClaim>> take(std::shared_ptr<Member> member,
                                                 const EndpointRecord& record, Deadline deadline) {
    const auto state = std::make_shared<State>(record);
    std::unique_ptr<NameClaim> made(new NameClaim(std::move(member), state));
    // Before the first claim: a session that begins during the claim then also has the record.
    made->renewal_ =
        made->member_->add_renewal({.renew = [state](KeyValueStore& session, Deadline until) {
          return renew(state, session, until);
        }});
    MEMSPAN_PASS(made->claim(deadline));
    return made;
  }
  // Gives the name up. If the store is away, the name ends with the session.
  ~NameClaim() {
    EndpointRecord record;
    {
      MutexLock lock(state_->mutex);
      state_->is_over = true;
      if (state_->has_name) record = state_->record;
    }
    member_->remove_renewal(renewal_);
    if (record.name.empty() || !member_->store_state().is_ok()) return;
    member_->tell_end([&](const Deadline& deadline) -> Status {
      KeyValueStore& store = member_->store();
      const std::string key = record_key(record.name);
      MEMSPAN_TRY_ASSIGN(const std::string bytes, store.get_now(key, deadline),
                         "giving up the name");
      const auto holder = decode_record(bytes);
      if (!holder.is_ok() || holder->generation != record.generation) return Status::ok();
      return store.remove(key, deadline).status();
    });
  }

 private:
  // The mutex is held during a write into a session. No thread that needs it holds that write up.
  struct State {
    explicit State(EndpointRecord mine) : record(std::move(mine)) {}
    EndpointRecord current() MEMSPAN_EXCLUDES(mutex) {
      MutexLock lock(mutex);
      return record;
    }

    Mutex mutex;
    EndpointRecord record MEMSPAN_GUARDED_BY(mutex);
    bool has_name MEMSPAN_GUARDED_BY(mutex) = false;  // had it once
    bool is_taken MEMSPAN_GUARDED_BY(mutex) = false;  // by another process; logged
    bool is_over MEMSPAN_GUARDED_BY(mutex) = false;
    std::uint64_t watched_in MEMSPAN_GUARDED_BY(mutex) =
        0;  // the session whose watch reports that it is free
  };
  NameClaim(std::shared_ptr<Member> member, std::shared_ptr<State> state)
      : member_(std::move(member)), state_(std::move(state)) {}
  Status claim(const Deadline& deadline) {
    const Deadline patience = deadline.within(kDeathPatience);
    int interruptions = 0;
    while (true) {
      const EndpointRecord record = state_->current();
      const auto holder = write(member_->store(), record, deadline);
      if (holder.code() == Code::kStoreLost && !deadline.has_passed() &&
          ++interruptions < kMostInterruptions)
        continue;
      if (!holder.is_ok())
        return holder.status().annotate(fmt::format("claiming the name {}", record.name));
      if (holder->generation == record.generation) break;
      if (may_be_dead(*member_, *holder, patience) &&
          wait_for_removal(member_->store(), record_key(record.name), patience).is_ok())
        continue;
      return {Code::kUnavailable, fmt::format("process {} has an endpoint {} already",
                                              holder->who.process, record.name)};
    }
    MutexLock lock(state_->mutex);
    state_->has_name = true;
    return Status::ok();
  }
  static Status renew(const std::shared_ptr<State>& state, KeyValueStore& session,
                      const Deadline& deadline) {
    MutexLock lock(state->mutex);
    if (state->is_over) return Status::ok();
    EndpointRecord next = state->record;
    ++next.renewals;
    auto holder = write(session, next, deadline);
    const auto is_another = [&] { return holder.is_ok() && holder->generation != next.generation; };
    if (is_another() && !state->has_name) return Status::ok();  // claim() deals with that
    if (is_another() && state->watched_in != session.lease()) {
      auto watch = session.watch(
          record_key(next.name),
          [state, &session](const StoreChange& change) {
            if (change.event == StoreEvent::kRemoved)
              static_cast<void>(renew(state, session, Deadline::after(kRenewalPatience)));
          },
          deadline);
      if (!watch.is_ok()) return watch.status();
      state->watched_in = session.lease();
      holder = write(session, next, deadline);  // it may have become free before the watch began
    }
    if (!holder.is_ok()) {
      if (holder.code() != Code::kStoreLost && holder.code() != Code::kTimeout)
        log_line(
            LogLevel::kError,
            fmt::format("endpoint {} is at the store no more, and new peers cannot find it: {}",
                        next.name, holder.status().message()));
      return holder.status();
    }
    if (is_another()) {
      if (!std::exchange(state->is_taken, true))
        log_line(LogLevel::kError,
                 fmt::format("endpoint {} has lost its name: {} has taken it while the store was "
                             "away. New peers find that one; transfers from here continue",
                             next.name, holder->who.name()));
      return Status::ok();
    }
    state->record = std::move(next);
    state->has_name = true;
    if (std::exchange(state->is_taken, false))
      log_line(LogLevel::kWarn, fmt::format("endpoint {} has its name again", state->record.name));
    return Status::ok();
  }

  const std::shared_ptr<Member> member_;
  const std::shared_ptr<State> state_;  // shared with watches of sessions
  std::uint64_t renewal_ = 0;
};

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
  MEMSPAN_PASS_ASSIGN(auto pages, RegistrationPages::create());
  MEMSPAN_PASS_ASSIGN(auto notifications, NotificationQueue::create());
  MEMSPAN_PASS_ASSIGN(auto worker, Worker::create());
  // If the Yama module restricts ptrace, peers may still reach this process's memory.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
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

Endpoint::Endpoint(std::shared_ptr<Member> member, EndpointRecord record, RegistrationPages pages,
                   NotificationQueue notifications, std::shared_ptr<Worker> worker,
                   Duration patience)
    : member_(std::move(member)),
      record_(std::move(record)),
      notifications_(std::move(notifications)),
      memory_(member_->broker(), record_, std::move(pages)),
      worker_(std::move(worker)),
      peers_(std::make_unique<Peers>(
          member_, record_.role, patience, memory_.changes(),
          [worker = worker_](const std::string& peer) { worker->note_peer_down(peer); })) {}

Endpoint::~Endpoint() {
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

// kUnavailable: the queue is full.
Result<std::string> Endpoint::answer(std::string_view request) {
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

Status Endpoint::reach(std::string_view peer) {
  const EndsWith ends(is_ending_, kDestroyed);
  const auto found = peers_->find(peer);
  return found.is_ok() ? (*found)->ask() : found.status();
}

Status Endpoint::submit(Direction direction, std::string_view peer, const Pieces& pieces,
                        const DeviceStream& stream) {
  const EndsWith ends_early(is_ending_, kDestroyed);
  MEMSPAN_PASS_ASSIGN(auto found, peers_->find(peer));
  return submit_to_stream(*found, direction, pieces, stream);
}

Status Endpoint::transfer(Direction direction, std::string_view peer, const Pieces& pieces,
                          Ends ends) {
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
