// SPDX-License-Identifier: Apache-2.0
// The endpoints that one endpoint has to do with, by name: found in the store and reached when they
// are first asked for, and again when they come back after their end.
#pragma once

#include <unordered_map>

#include "fabric/transfer/peer.h"

namespace memspan::transfer {

// Thread-safe.
class Peers {
 public:
  // `down` gets the name of a peer that has ended, once for each life, on any thread; it does not
  // wait. Peers that others still use may call it after the end of this object.
  using OnPeerDown = std::function<void(const std::string& name)>;
  // `registrations`: how often this endpoint has registered something. Outlives it.
  Peers(std::shared_ptr<Member> member, Role role, Duration patience,
        const std::atomic<std::uint64_t>& registrations, OnPeerDown on_peer_down)
      : member_(std::move(member)),
        role_(role),
        patience_(patience),
        registrations_(registrations),
        on_peer_down_(std::make_shared<const OnPeerDown>(std::move(on_peer_down))),
        renewal_(member_->add_renewal({.renew = {}, .settle = [this] { settle(); }})) {}
  ~Peers();

  // Asks the store once when it is not known or has ended, which takes 5 s at most. kNotFound,
  // kPeerLost, kStale; kInvalidArgument: the name or the roles; kTimeout: a process on another host
  // does not answer. A store that is away is waited for, unless the peer is known to have ended;
  // kStoreLost: in vain, or with Waiting::kNone at once.
  enum class Waiting { kForStore, kNone };
  Result<std::shared_ptr<Peer>> find(std::string_view name, Waiting waiting = Waiting::kForStore);
  // Moves a piece by Peer::move_at_once(), without a wait. False also if another thread is in this
  // function, or if find() has not found the peer yet.
  bool move_at_once(std::string_view name, Direction direction, const Piece& piece) {
    const std::unique_lock use(recent_, std::try_to_lock);
    if (!use) return false;
    if (recent_.peer == nullptr || recent_.spelling != name || !recent_.peer->is_live()) {
      recent_.spot = {};
      recent_.peer = known(name);
      recent_.spelling = name;
    }
    return recent_.peer != nullptr && recent_.peer->move_at_once(direction, piece, recent_.spot);
  }
  // How long find() takes at most.
  static constexpr Duration kPatience = std::chrono::seconds(5);

  // If programs register at both ends and then begin, the peer's registration is about to come, so
  // a transfer to unregistered memory waits for it: so long. 0 if this endpoint has registered
  // nothing since it last waited in vain.
  Duration patience_with(Peer& peer) const {
    const bool is_over = peer.waited_in_vain().load(std::memory_order_relaxed) ==
                         registrations_.load(std::memory_order_relaxed);
    return is_over ? Duration::zero() : patience_;
  }
  void note_waited_in_vain(Peer& peer) const {
    peer.waited_in_vain().store(registrations_.load(std::memory_order_relaxed),
                                std::memory_order_relaxed);
  }

 private:
  // The last life of a name, once its peer is given up.
  struct Departed {
    std::string generation;
    std::uint32_t renewals = 0;
    Status why;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  // Owners: this, and a call of the watch at the store. The watch itself refers to it weakly, and
  // uses peers without owning them: a peer that ended on the store's thread would end the member
  // there, and with it that thread. Peers are released without the lock.
  struct Known {
    Mutex mutex;
    std::unordered_map<std::string, std::shared_ptr<Peer>, Hash, std::equal_to<>> by_spelling
        MEMSPAN_GUARDED_BY(mutex);
    std::map<std::string, std::shared_ptr<Peer>, std::less<>> by_name MEMSPAN_GUARDED_BY(mutex);
    std::map<std::string, Departed> departed MEMSPAN_GUARDED_BY(mutex);
    std::optional<std::uint64_t> watch MEMSPAN_GUARDED_BY(mutex);  // of all records
    int noting MEMSPAN_GUARDED_BY(mutex) = 0;  // calls of watches that use a peer of by_name
    ConditionVariable returned;
    std::shared_ptr<Peer> find(std::string_view name);  // null: not known
    std::vector<std::shared_ptr<Peer>> live();
    // Before a peer leaves by_name: no watch uses it any more. A watch asks its peer for a second
    // at most.
    void await_watches() MEMSPAN_REQUIRES(mutex) {
      while (noting > 0) returned.wait_until(mutex, Deadline::never());
    }
  };

  // The peer of the last piece that was moved at once, for the thread that has set the flag. Others
  // do not wait for it.
  struct Recent {
    std::atomic<bool> is_used{false};
    std::string spelling;
    std::shared_ptr<Peer> peer;  // shared with Known
    Spot spot;
    bool try_lock() {  // pairs with unlock()
      return !is_used.load(std::memory_order_relaxed) &&
             !is_used.exchange(true, std::memory_order_acquire);
    }
    void unlock() { is_used.store(false, std::memory_order_release); }
  };

  // Null: not known by this spelling, or it has ended.
  std::shared_ptr<Peer> known(std::string_view spelling) {
    std::shared_ptr<Peer> peer;
    {
      MutexLock lock(known_->mutex);
      if (const auto found = known_->by_spelling.find(spelling); found != known_->by_spelling.end())
        peer = found->second;
    }
    return peer != nullptr && peer->is_live() ? peer : nullptr;
  }
  Result<std::shared_ptr<Peer>> attach(const std::string& name, Waiting waiting);
  // Gives up all that have ended: their memory and descriptors.
  void reap();
  // Ok when its end is not known.
  Departed departed(const std::string& name) {
    MutexLock lock(known_->mutex);
    const auto found = known_->departed.find(name);
    return found != known_->departed.end() ? found->second : Departed{};
  }
  Result<EndpointRecord> ask_store(const std::string& name, Deadline deadline);
  Status check_reach(const EndpointRecord& record) const;
  // One watch for the changes of all records. Watches of single peers would be n * n for n
  // endpoints that know each other, and with etcd as many connections.
  Status watch_records(Deadline deadline);
  static void note_record(Peer& peer, std::string_view bytes) {
    const auto now = decode_record(bytes);
    if (now.is_ok() && now->generation == peer.record().generation)
      peer.note_renewals(now->renewals);
    else
      peer.note_replaced();
  }
  static void note_change(Known& known, const StoreChange& change);
  // Looks at the records of all live peers, because changes while the store was away were not
  // reported.
  void settle();

  const std::shared_ptr<Member> member_;
  const Role role_;
  const Duration patience_;
  const std::atomic<std::uint64_t>& registrations_;
  const std::shared_ptr<const OnPeerDown> on_peer_down_;  // shared with the peers
  const std::shared_ptr<Known> known_ = std::make_shared<Known>();
  Recent recent_;
  const std::uint64_t renewal_;  // may be called from its beginning on
};

}  // namespace memspan::transfer
