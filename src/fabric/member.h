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

#include <initializer_list>
#include <optional>
#include <utility>

#include "fabric/remote_access.h"
#include "node/descriptor_broker.h"
#include "store/connect.h"
#include "store/reconnecting_store.h"
#include "transport/registry.h"

namespace memspan {

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
                                              Deadline deadline);
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
  void tell_end(const Tell& tell);
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
  MemberIdentity identity() const;
  const Endpoint& store_endpoint() const { return store_endpoint_; }
  bool is_near(const MemberIdentity& other) const { return other.host == host_; }
  // The first candidate (best first) that leads to a member. kUnreachable names both processes.
  Result<std::string_view> choose_transport(
      const MemberIdentity& other, std::initializer_list<std::string_view> candidates) const;
  // Whether MEMSPAN_TRANSPORT lets processes of this host map each other's memory.
  bool may_map() const { return allowed_.has("mapped"); }
  // Whether it lets messages reach memory.
  bool may_send() const { return allowed_.has("message"); }

  // The services that members on other hosts may call.
  Services& services() { return services_; }
  // Lets them ask for this process's address. The first call asks the store.
  Status be_reachable(Deadline deadline) MEMSPAN_EXCLUDES(reaching_);
  // Excludes a member on another host (RemoteAccess::exclude) if its lease has ended, because
  // another process may have its place. Does nothing if it has only left a pool. Asks the store.
  void exclude_if_ended(const MemberIdentity& who) MEMSPAN_EXCLUDES(mutex_);
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
  void forget_in_child();
  // Made at the first call.
  Result<RemoteAccess*> remote_access() MEMSPAN_EXCLUDES(mutex_);
  // A reachable member on another host. kTimeout: it does not publish its address. During the wait
  // `check_presence` is called now and then, and its failure is returned.
  using CheckPresence = std::function<Status(const Deadline& deadline)>;
  Result<std::shared_ptr<RemotePeer>> remote_peer(const MemberIdentity& who,
                                                  const CheckPresence& check_presence,
                                                  Deadline deadline) MEMSPAN_EXCLUDES(mutex_);

 private:
  Member(AllowedTransports allowed, std::unique_ptr<DescriptorBroker> broker,
         std::unique_ptr<KeyValueStore> store, ReconnectingStore* reconnecting,
         Endpoint store_endpoint)
      : allowed_(std::move(allowed)),
        store_endpoint_(std::move(store_endpoint)),
        broker_(std::move(broker)),
        store_(std::move(store)),
        reconnecting_(reconnecting) {}
  Status set_presence(KeyValueStore& store, const Deadline& deadline) const;
  void tell_address();
  Result<std::string> ask_address(const MemberIdentity& who, const CheckPresence& check_presence,
                                  const Deadline& deadline);

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

}  // namespace memspan
