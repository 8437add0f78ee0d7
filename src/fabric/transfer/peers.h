// SPDX-License-Identifier: Apache-2.0
// The endpoints that one endpoint has to do with, by name: found in the store and reached when they
// are first asked for, and again when they come back after their end.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/mutex.h"
#include "fabric/member.h"
#include "fabric/transfer/peer.h"

namespace memspan::transfer {

// Thread-safe.
class Peers {
 public:
  // `down` gets the name of a peer that has ended, once for each life, on any thread; it does not
  // wait. Peers that others still use may call it after the end of this object.
  using OnPeerDown = std::function<void(const std::string& name)>;
  Peers(std::shared_ptr<Member> member, Role role, Duration patience, OnPeerDown on_peer_down)
      : member_(std::move(member)),
        role_(role),
        patience_(patience),
        on_peer_down_(std::make_shared<const OnPeerDown>(std::move(on_peer_down))),
        renewal_(member_->add_renewal({.renew = {}, .settle = [this] { settle(); }})) {}
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  // Asks the store once when it is not known or has ended, which takes 5 s at most. kNotFound,
  // kPeerLost, kStale; kInvalidArgument: the name or the roles; kTimeout: a process on another host
  // does not answer. A store that is away is waited for, unless the peer is known to have ended;
  // kStoreLost: in vain, or with Waiting::kNone at once.
  enum class Waiting { kForStore, kNone };
  Result<std::shared_ptr<Peer>> find(std::string_view name, Waiting waiting = Waiting::kForStore);
  // How long find() takes at most.
  static constexpr Duration kPatience = std::chrono::seconds(5);

  // This endpoint has registered something. If programs register at both ends and then begin, the
  // peer's registration is about to come, so a transfer to unregistered memory waits for it.
  void note_registration() { registrations_.fetch_add(1, std::memory_order_relaxed); }
  // How long it waits. 0 if this endpoint has registered nothing since it last waited in vain.
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
  // One name. Owners: the maps and the threads that use it. The watch at the store refers to it
  // weakly, because a lost session keeps its watches: a peer that ended on the store's thread would
  // end the member there, and with it that thread.
  struct Known {
    std::uint64_t watch = 0;
    Mutex mutex;
    ConditionVariable returned;
    std::shared_ptr<Peer> peer MEMSPAN_GUARDED_BY(mutex);
    bool is_noting MEMSPAN_GUARDED_BY(mutex) = false;  // the watch uses the peer

    // Returns the peer up to now, which the caller ends without a lock. Waits for the watch, which
    // asks the peer for a second at most.
    std::shared_ptr<Peer> replace(std::shared_ptr<Peer> by) MEMSPAN_REQUIRES(mutex) {
      while (is_noting) returned.wait_until(mutex, Deadline::never());
      return std::exchange(peer, std::move(by));
    }
  };
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

  Result<std::shared_ptr<Peer>> attach(const std::string& name, Waiting waiting);
  static std::shared_ptr<Peer> peer_of(Known& known) MEMSPAN_EXCLUDES(known.mutex);
  std::shared_ptr<Peer> known_peer(const std::string& name) MEMSPAN_EXCLUDES(mutex_);
  // Gives up all that have ended: their memory, descriptors and watches.
  void reap(Deadline deadline) MEMSPAN_EXCLUDES(mutex_);
  // Ok when its end is not known.
  Departed departed(const std::string& name) MEMSPAN_EXCLUDES(mutex_);
  Result<EndpointRecord> ask_store(const std::string& name, Deadline deadline)
      MEMSPAN_EXCLUDES(mutex_);
  Status check_reach(const EndpointRecord& record) const;
  Result<std::shared_ptr<Known>> watched(const std::string& name, Deadline deadline);
  static void note_record(Peer& peer, std::string_view bytes);
  static void note_change(Known& known, const StoreChange& change);
  // Looks at the records of all live peers, because changes while the store was away were not
  // reported.
  void settle() MEMSPAN_EXCLUDES(mutex_);

  const std::shared_ptr<Member> member_;
  const Role role_;
  const Duration patience_;
  std::atomic<std::uint64_t> registrations_{0};
  const std::shared_ptr<const OnPeerDown> on_peer_down_;  // shared with the peers
  Mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Known>, Hash, std::equal_to<>> by_spelling_
      MEMSPAN_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<Known>> by_name_ MEMSPAN_GUARDED_BY(mutex_);
  std::map<std::string, Departed> departed_ MEMSPAN_GUARDED_BY(mutex_);
  const std::uint64_t renewal_;  // may be called from its beginning on
};

}  // namespace memspan::transfer
