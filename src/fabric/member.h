// SPDX-License-Identifier: Apache-2.0
// This process as a member of one store: what its pools, spaces and endpoints share.
//
// Members on the same host find each other by their descriptor brokers, whose addresses are in the
// records that they write into the store. Members on other hosts talk by messages. To meet such a
// member, a process asks for its message address by a key of the store:
//
//   this process                        store                               the other one
//   remote_peer(session) ──set──► member/<session>/wanted ──watch──► makes its RemoteAccess
//                        ◄──get── member/<session>/address ◄──set──
//
// All keys under member/<session>/, also the presence, are under that member's lease. When the
// lease of a pool's member has ended, the others refuse its process, whether it still runs or not.
// A member that joined for transfers reconnects to a lost store again and again, and keeps the
// number of its first session (docs/design/0021-stores-that-come-back.md).
#pragma once

#include <unistd.h>

#include <initializer_list>
#include <new>
#include <optional>
#include <utility>

#include "core/environment.h"
#include "core/log.h"
#include "fabric/remote_access.h"
#include "net/trusted_networks.h"
#include "node/descriptor_broker.h"
#include "store/connect.h"
#include "store/reconnecting_store.h"
#include "transport/registry.h"

namespace memspan::inline fabric {

// The effect of a lost store on a member.
enum class AfterLoss {
  kEnds,        // it is of no use any more
  kReconnects,  // it connects again whenever the store is lost: store() is a ReconnectingStore
};

// Thread-safe. Must outlive its users. The last user ends the connection, and the store then drops
// what it keeps for this process.
class Member {
 public:
  // Connects, as connect_store() does. kInvalidArgument: MEMSPAN_TRANSPORT names an unknown
  // transport.
  static Result<std::shared_ptr<Member>> join(const StoreAccess& access, AfterLoss after_loss,
                                              Deadline deadline) {
    MEMSPAN_TRY_ASSIGN(auto allowed, AllowedTransports::from_environment(), "joining a store");
    MEMSPAN_TRY_ASSIGN(auto broker, DescriptorBroker::open(), "joining a store");
    MEMSPAN_PASS_ASSIGN(std::unique_ptr<KeyValueStore> store, connect_store(access, deadline));
    ReconnectingStore* reconnecting = nullptr;
    if (after_loss == AfterLoss::kReconnects) {
      const auto again = [access](Deadline until) { return connect_store_once(access, until); };
      MEMSPAN_PASS_ASSIGN(auto made, ReconnectingStore::start(
                                         std::move(store),
                                         {.connect = again, .where = access.endpoint.to_string()}));
      reconnecting = made.get();
      store = std::move(made);
    }
    return std::shared_ptr<Member>(new Member(std::move(allowed), std::move(broker),
                                              std::move(store), reconnecting,
                                              access.endpoint.first()));
  }
  // The store's threads, which may be in tell_address(), end first.
  ~Member() { store_->end(); }

  KeyValueStore& store() { return *store_; }
  // Ok, or why a call of a store that may come back would wait for it (ReconnectingStore::state()).
  Status store_state() const {
    return reconnecting_ == nullptr ? Status::ok() : reconnecting_->state();
  }
  // Calls `tell`, which reports the end of something to the store. All ends wait 3 s together for a
  // store that does not answer; later ones only send. No end needs the answer: the store drops what
  // this process has when the connection ends.
  using Tell = std::function<Status(const Deadline& deadline)>;
  void tell_end(const Tell& tell) try {
    constexpr Duration kPatience = std::chrono::seconds(3);
    constexpr Duration kMoment = std::chrono::milliseconds(10);
    const bool was_silent = is_store_silent_.load(std::memory_order_relaxed);
    const Status told = tell(Deadline::after(was_silent ? kMoment : kPatience));
    // kStoreLost: it was lost, and has not come back in time.
    const bool is_silent = told.code() == Code::kTimeout || told.code() == Code::kStoreLost;
    is_store_silent_.store(is_silent, std::memory_order_relaxed);
    if (is_silent && !was_silent)
      log_line(LogLevel::kWarn,
               fmt::format("the store at {} does not answer; this process ends without it: {}",
                           store_endpoint_.to_string(), told.message()));
  } catch (const std::bad_alloc&) {
    // Callers are destructors. The others learn of it later, by the end of the lease.
  }
  // Restores this member's state in a store that reconnects; never called for another store.
  std::uint64_t add_renewal(ReconnectingStore::Renewal renewal) {
    return reconnecting_ == nullptr ? 0 : reconnecting_->add_renewal(std::move(renewal));
  }
  void remove_renewal(std::uint64_t renewal) {
    if (reconnecting_ != nullptr) reconnecting_->remove_renewal(renewal);
  }
  DescriptorBroker& broker() { return *broker_; }
  // Members with the same host can share memory.
  const Host& host() const { return host_; }
  MemberIdentity identity() const {
    return {.session = store_->lease(), .process = ::getpid(), .host = host_};
  }
  const Endpoint& store_endpoint() const { return store_endpoint_; }
  bool is_near(const MemberIdentity& other) const { return other.host == host_; }
  // The first candidate (best first) that leads to a member. kUnreachable names both processes.
  Result<std::string_view> choose_transport(
      const MemberIdentity& other, std::initializer_list<std::string_view> candidates) const {
    const Pair pair{.from = identity().name(), .to = other.name(), .same_node = is_near(other)};
    MEMSPAN_PASS_ASSIGN(auto choice,
                        allowed_.choose(pair, {candidates.begin(), candidates.size()}));
    return choice.name;
  }
  // Whether MEMSPAN_TRANSPORT lets processes of this host map each other's memory.
  bool may_map() const { return allowed_.has("mapped"); }
  // Whether it lets messages reach memory.
  bool may_send() const { return allowed_.has("message"); }

  // The services that members on other hosts may call.
  Services& services() { return services_; }
  // Lets them ask for this process's address. The first call asks the store.
  Status be_reachable(Deadline deadline) MEMSPAN_EXCLUDES(reaching_) {
    MutexLock lock(reaching_);
    if (watch_) return Status::ok();
    if (renewal_ == 0)
      renewal_ = add_renewal({.renew = [this](KeyValueStore& session, Deadline until) {
        return set_presence(session, until);
      }});
    MEMSPAN_TRY(set_presence(*store_, deadline), "becoming reachable for other hosts");
    const auto on_change = [this](const StoreChange& change) {
      if (change.event == StoreEvent::kSet) tell_address();
    };
    MEMSPAN_TRY_ASSIGN(watch_,
                       store_->watch(session_key(store_->lease(), "wanted"), on_change, deadline),
                       "becoming reachable for other hosts");
    return Status::ok();
  }
  // Excludes a member on another host (RemoteAccess::exclude) if its lease has ended, because
  // another process may have its place. Does nothing if it has only left a pool. Asks the store. If
  // the store does not answer, no member is excluded, and no process can have taken the place.
  void exclude_if_ended(const MemberIdentity& other) MEMSPAN_EXCLUDES(mutex_) {
    if (!has_remote_access()) return;
    const auto presence =
        store_->get_now(session_key(other.session, "presence"), Deadline::after(kTellPatience));
    if (presence.code() != Code::kNotFound) return;
    if (const auto access = remote_access(); access.is_ok()) (*access)->exclude(other);
  }
  // Held while this process claims addresses. A claim tries places before it owns one, and another
  // thread's pool may take such a place.
  Mutex& claiming() { return claiming_; }

  // Whether this process has met a member on another host.
  bool has_remote_access() MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return remote_ != nullptr;
  }
  // For a child of fork(), which is not this member: gives up what peers could take for the member.
  // Takes no lock, since threads of the parent may hold them.
  void forget_in_child() MEMSPAN_ATTRIBUTE_(no_thread_safety_analysis) {
    if (remote_ != nullptr) remote_->forget_in_child();
  }
  // Made at the first call.
  Result<RemoteAccess*> remote_access() MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (remote_ == nullptr) {
      // Hosts with given names are parts of one machine if all reach the store by the loopback.
      const bool is_one_machine =
          environment("MEMSPAN_HOST_ID") && TrustedNetworks().contain(store_endpoint_.host);
      const Reach reach = is_one_machine ? Reach::kOneKernel : Reach::kNetwork;
      MEMSPAN_TRY_ASSIGN(auto carrier, choose_carrier(reach, store_endpoint_),
                         "reaching other hosts");
      MEMSPAN_PASS_ASSIGN(remote_, RemoteAccess::create(services_, identity(), carrier));
    }
    return remote_.get();
  }
  // A reachable member on another host. kTimeout: it does not publish its address. During the wait
  // `check_presence` is called now and then, and its failure is returned.
  using CheckPresence = std::function<Status(const Deadline& deadline)>;
  Result<std::shared_ptr<RemotePeer>> remote_peer(const MemberIdentity& other,
                                                  const CheckPresence& check_presence,
                                                  Deadline deadline) MEMSPAN_EXCLUDES(mutex_) {
    MEMSPAN_PASS_ASSIGN(auto access, remote_access());
    if (auto known = access->find(other); known != nullptr) return known;
    MEMSPAN_TRY_ASSIGN(auto address, ask_address(other, check_presence, deadline),
                       fmt::format("reaching {}", other.name()));
    return access->connect(other, address);
  }

 private:
  static constexpr Duration kTellPatience = std::chrono::seconds(5);
  // The interval of presence checks while a member is asked for its address.
  static constexpr Duration kLookInterval = std::chrono::milliseconds(200);

  Member(AllowedTransports allowed, std::unique_ptr<DescriptorBroker> broker,
         std::unique_ptr<KeyValueStore> store, ReconnectingStore* reconnecting,
         Endpoint store_endpoint)
      : allowed_(std::move(allowed)),
        store_endpoint_(std::move(store_endpoint)),
        broker_(std::move(broker)),
        store_(std::move(store)),
        reconnecting_(reconnecting) {}
  // `what`: "wanted", "address" or "presence".
  static std::string session_key(std::uint64_t session, std::string_view what) {
    return fmt::format("member/{}/{}", session, what);
  }
  Status set_presence(KeyValueStore& store, const Deadline& deadline) const {
    return store.set(session_key(store_->lease(), "presence"), host_.name, deadline,
                     KeyLife::kLease);
  }
  void tell_address() {
    const auto access = remote_access();
    Status status = access.status();
    if (status.is_ok())
      status = store_->set(session_key(store_->lease(), "address"), (*access)->address(),
                           Deadline::after(kTellPatience), KeyLife::kLease);
    if (!status.is_ok() && status.code() != Code::kStoreLost)
      log_line(LogLevel::kWarn, fmt::format("members on other hosts cannot reach this process: {}",
                                            status.message()));
  }
  Result<std::string> ask_address(const MemberIdentity& other, const CheckPresence& check_presence,
                                  const Deadline& deadline) {
    const std::string key = session_key(other.session, "address");
    auto address = store_->get_now(key, deadline);
    if (address.code() != Code::kNotFound) return address;
    const std::string wanted = session_key(other.session, "wanted");
    MEMSPAN_PASS(store_->set(wanted, host_.name, deadline, KeyLife::kLease));
    Status there;
    do {
      there = check_presence(deadline);
      if (there.is_ok()) address = store_->get(key, deadline.within(kLookInterval));
    } while (there.is_ok() && address.code() == Code::kTimeout && !deadline.has_passed());
    static_cast<void>(store_->remove(wanted, deadline));
    if (!there.is_ok()) return there;
    if (address.code() != Code::kTimeout) return address;
    return Status(Code::kTimeout, "it did not publish its address in time");
  }

  const AllowedTransports allowed_;
  const Host host_ = Host::own();
  const Endpoint store_endpoint_;
  Services services_;
  std::unique_ptr<DescriptorBroker> broker_;
  Mutex reaching_;
  Mutex claiming_;
  std::uint64_t renewal_ MEMSPAN_GUARDED_BY(reaching_) = 0;
  std::optional<std::uint64_t> watch_ MEMSPAN_GUARDED_BY(reaching_);
  std::atomic<bool> is_store_silent_{false};  // since an end that it did not answer
  Mutex mutex_;
  std::unique_ptr<RemoteAccess> remote_ MEMSPAN_GUARDED_BY(mutex_);
  std::unique_ptr<KeyValueStore> store_;   // its threads call the others
  ReconnectingStore* const reconnecting_;  // store_, if it is one
};

}  // namespace memspan::inline fabric
