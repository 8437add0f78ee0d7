// SPDX-License-Identifier: Apache-2.0
#include "fabric/member.h"

#include <unistd.h>

#include <new>

#include "core/environment.h"
#include "core/log.h"
#include "net/trusted_networks.h"

namespace memspan {
namespace {

constexpr Duration kTellPatience = std::chrono::seconds(5);
// The interval of presence checks while a member is asked for its address.
constexpr Duration kLookInterval = std::chrono::milliseconds(200);

// `what`: "wanted", "address" or "presence".
std::string session_key(std::uint64_t session, std::string_view what) {
  return fmt::format("member/{}/{}", session, what);
}

}  // namespace

Result<std::shared_ptr<Member>> Member::join(const StoreAccess& access, AfterLoss after_loss,
                                             Deadline deadline) {
  MEMSPAN_TRY_ASSIGN(auto allowed, AllowedTransports::from_environment(), "joining a store");
  MEMSPAN_TRY_ASSIGN(auto broker, DescriptorBroker::open(), "joining a store");
  MEMSPAN_PASS_ASSIGN(std::unique_ptr<KeyValueStore> store, connect_store(access, deadline));
  ReconnectingStore* reconnecting = nullptr;
  if (after_loss == AfterLoss::kReconnects) {
    const auto again = [access](Deadline until) { return connect_store_once(access, until); };
    MEMSPAN_PASS_ASSIGN(
        auto made, ReconnectingStore::start(
                       std::move(store), {.connect = again, .where = access.endpoint.to_string()}));
    reconnecting = made.get();
    store = std::move(made);
  }
  return std::shared_ptr<Member>(new Member(std::move(allowed), std::move(broker), std::move(store),
                                            reconnecting, access.endpoint.first()));
}

Result<std::string_view> Member::choose_transport(
    const MemberIdentity& other, std::initializer_list<std::string_view> candidates) const {
  const Pair pair{.from = identity().name(),
                  .to = other.name(),
                  .same_node = is_near(other),
                  .no_process_access = {},
                  .no_message_address = {}};
  MEMSPAN_PASS_ASSIGN(auto choice, allowed_.choose(pair, {candidates.begin(), candidates.size()}));
  return choice.name;
}

void Member::forget_in_child() MEMSPAN_ATTRIBUTE_(no_thread_safety_analysis) {
  if (remote_ != nullptr) remote_->forget_in_child();
}

MemberIdentity Member::identity() const {
  return {.session = store_->lease(), .process = ::getpid(), .host = host_};
}

void Member::tell_end(const Tell& tell) try {
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

Status Member::be_reachable(Deadline deadline) {
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

Status Member::set_presence(KeyValueStore& store, const Deadline& deadline) const {
  return store.set(session_key(store_->lease(), "presence"), host_.name, deadline, KeyLife::kLease);
}

// If the store does not answer, no member is excluded, and no process can have taken the place.
void Member::exclude_if_ended(const MemberIdentity& who) {
  if (!has_remote_access()) return;
  const auto presence =
      store_->get_now(session_key(who.session, "presence"), Deadline::after(kTellPatience));
  if (presence.code() != Code::kNotFound) return;
  if (const auto access = remote_access(); access.is_ok()) (*access)->exclude(who);
}

void Member::tell_address() {
  const auto access = remote_access();
  Status status = access.status();
  if (status.is_ok())
    status = store_->set(session_key(store_->lease(), "address"), (*access)->address(),
                         Deadline::after(kTellPatience), KeyLife::kLease);
  if (!status.is_ok() && status.code() != Code::kStoreLost)
    log_line(LogLevel::kWarn,
             fmt::format("members on other hosts cannot reach this process: {}", status.message()));
}

Result<RemoteAccess*> Member::remote_access() {
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

Result<std::string> Member::ask_address(const MemberIdentity& who,
                                        const CheckPresence& check_presence,
                                        const Deadline& deadline) {
  const std::string key = session_key(who.session, "address");
  auto address = store_->get_now(key, deadline);
  if (address.code() != Code::kNotFound) return address;
  const std::string wanted = session_key(who.session, "wanted");
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

Result<std::shared_ptr<RemotePeer>> Member::remote_peer(const MemberIdentity& who,
                                                        const CheckPresence& check_presence,
                                                        Deadline deadline) {
  MEMSPAN_PASS_ASSIGN(auto access, remote_access());
  if (auto known = access->find(who); known != nullptr) return known;
  MEMSPAN_TRY_ASSIGN(auto address, ask_address(who, check_presence, deadline),
                     fmt::format("reaching {}", who.name()));
  return access->connect(who, address);
}

}  // namespace memspan
