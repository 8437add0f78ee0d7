// SPDX-License-Identifier: Apache-2.0
// Another endpoint, as this process reaches it: one life of its name. It knows where the peer's
// registered memory is and when the peer ends.
//
//   attach_near()     on this host: registered allocations are mapped, the kernel moves other
//                     memory, or messages if it refuses, and a mapped table has the registrations
//   attach_remote()   on another host: regions on a link, which the peer is asked for
#pragma once

#include <sys/types.h>

#include <array>
#include <unordered_map>

#include "device/choice.h"
#include "fabric/member.h"
#include "fabric/transfer/endpoint_record.h"
#include "fabric/transfer/registration_table.h"
#include "fabric/transfer/remote_service.h"
#include "transport/link.h"

namespace memspan::transfer {

// Registered allocations of a peer, mapped here, by number. Their mappings are shared with copies.
// Never changed once it is shared.
using MappedAllocations = std::map<std::uint32_t, OpenedPointer>;
// A region of an endpoint, and the address of its first byte there. A value.
struct RegionExtent {
  std::uint64_t base = 0;
  RemoteRegion region;
};
// Regions of a remote peer, by base. Never changed once it is shared.
using KnownExtents = std::vector<RegionExtent>;

// The places of some pieces' remote ends. Lives on the stack.
struct ResolvedPieces {
  static constexpr std::size_t kMost = 64;
  std::size_t count = 0;                // pieces that were found
  bool is_refused = false;              // the next one is not registered
  bool is_missing = false;              // something must be fetched for the next one: Peer::fetch()
  std::uint32_t wanted_allocation = 0;  // what: an allocation to be mapped,
  std::vector<Piece> wanted_pieces;     // or regions
  std::array<std::byte*, kMost> mapped;           // null: in the other process only
  std::shared_ptr<const MappedAllocations> held;  // keeps what is mapped
  // The link that reaches all of the pieces, and each one's region. Null: those that are not mapped
  // are moved by the kernel.
  std::shared_ptr<Link> link;
  std::array<const RegionExtent*, kMost> extents;
  std::shared_ptr<const KnownExtents> held_extents;  // keeps them

  // `held` and `held_extents` stay, because an engine may still use them.
  void clear() {
    count = 0;
    is_refused = is_missing = false;
    wanted_allocation = 0;
    wanted_pieces.clear();
    link = nullptr;
  }
};

// Registered memory of a peer that a single piece was in. A value.
struct Spot {
  std::uint64_t version = 0;  // of the peer's registrations
  std::uint64_t base = 0;
  std::uint64_t end = 0;              // 0: none
  std::byte* mapped = nullptr;        // where it begins here; null: in the other process only
  std::weak_ptr<const void> mapping;  // null once the peer has freed it, or has ended

  bool contains(const Piece& piece) const {
    return piece.remote >= base && piece.remote < end && piece.bytes <= end - piece.remote;
  }
};

// Thread-safe.
class Peer {
 public:
  virtual ~Peer() = default;

  const EndpointRecord& record() const { return record_; }
  // The device that is not the host; null: this process has none.
  Device* device() const { return device_; }
  // As the kernel knows it here; 0 or less: the kernel cannot reach it.
  pid_t process() const { return process_; }

  // Asks the kernel at most once in a tick.
  bool is_live();
  // Whether the endpoint has neither ended nor been destroyed; costs two loads.
  bool is_open() const {
    return end_.load(std::memory_order_acquire) == End::kNone &&
           state_->load(std::memory_order_acquire) == table_layout::kOpen;
  }
  // Ok while it is open and its process lives.
  Status check() { return is_open() || is_live() ? Status::ok() : why_not_live(); }
  // Why is_live() is false, without waiting; ok while the peer lives.
  Status why_not_live() const;
  // Whether the peer exists now, as the endpoint itself knows it; ok if it does.
  virtual Status ask() { return is_live() ? Status::ok() : why_not_live(); }
  // The store has no record of it any more, perhaps because the peer or this process has lost the
  // store. So this asks the peer, for a second at most.
  void note_left() {
    if (!is_live()) return;
    if (const End how = how_it_left(); how != End::kNone) end(how);
  }
  // The store has this record of the name: its own, perhaps written again, or another endpoint's.
  void note_record(std::string_view bytes) {
    const auto now = decode_record(bytes);
    if (!now.is_ok() || now->generation != record_.generation) {
      if (is_live()) end(End::kLeft);
      return;
    }
    std::uint32_t known = renewals_.load(std::memory_order_relaxed);
    while (known < now->renewals &&
           !renewals_.compare_exchange_weak(known, now->renewals, std::memory_order_relaxed)) {
    }
  }
  std::uint32_t renewals() const { return renewals_.load(std::memory_order_relaxed); }
  // It reported that it was destroyed.
  void note_destroyed() { end(End::kEnded); }
  // The link to it is gone.
  virtual void note_lost() { end(End::kLost); }

  // Looks them up, at most ResolvedPieces::kMost, against what is registered now.
  virtual void resolve(std::span<const Piece> pieces, ResolvedPieces& resolved) = 0;
  // Moves a piece for which nothing else is to be done or fetched; no end is device memory. `spot`
  // is where the last one was. False: resolve() and CopyEngine find out why; nothing or a part of
  // it was moved.
  virtual bool move_at_once(Direction /*direction*/, const Piece& /*piece*/, Spot& /*spot*/) {
    return false;
  }
  // Fetches what was missing. kNotFound: a piece is not registered; the message names what is.
  virtual Status fetch(const ResolvedPieces& resolved, Deadline deadline) = 0;
  // A region was stale: forgets all of them.
  virtual void forget_extents() {}
  // The kernel refused to move pieces, for this reason: from now on a link moves them. False if no
  // link may.
  virtual bool use_link(const Status& /*refusal*/) { return false; }
  // Why the piece was refused: kNotFound.
  Status refusal(const Piece& piece, std::uint64_t number);
  // kTimeout: its notification queue is full, and nothing was done.
  virtual Status notify(const std::string& sender, const CompletionAction& action) = 0;
  // Writable when the queue may have space; -1: no descriptor shows that.
  virtual int queue_descriptor() const { return -1; }

  // How many registrations this endpoint had when it last waited in vain for the peer's. For Peers.
  std::atomic<std::uint64_t>& waited_in_vain() { return waited_in_vain_; }

 protected:
  // kDied: as the kernel reports. kLost: a peer of another host, whose connection broke or is
  // silent.
  enum class End : int { kNone, kDied, kLost, kEnded, kLeft };
  // For peers without a table.
  static const std::atomic<std::uint64_t> kAlwaysOpen;

  // `state` outlives it. `ended` is called once, on any thread, however the peer ends, and does not
  // wait.
  Peer(EndpointRecord record, pid_t process, const std::atomic<std::uint64_t>& state,
       std::function<void()> ended)
      : record_(std::move(record)),
        renewals_(record_.renewals),
        process_(process),
        device_(other_device()),
        state_(&state),
        ended_(std::move(ended)) {}
  void end(End why) {
    End none = End::kNone;
    if (!end_.compare_exchange_strong(none, why, std::memory_order_acq_rel)) return;
    release();
    ended_();
  }
  bool has_ended() const { return end_.load(std::memory_order_acquire) != End::kNone; }
  // Names the registrations near a piece that was refused.
  virtual std::string nearest(const Piece& piece) = 0;
  // Asks the kernel.
  virtual bool is_gone() const { return false; }
  // For when the store has no record of it any more. kNone: it still exists.
  virtual End how_it_left() = 0;
  // Gives a dead peer's memory back now, not when the peer is asked for again.
  virtual void release() {}

 private:
  const EndpointRecord record_;
  std::atomic<std::uint32_t> renewals_;
  const pid_t process_;
  Device* const device_;
  const std::atomic<std::uint64_t>* const state_;
  const std::function<void()> ended_;
  std::atomic<End> end_{End::kNone};
  std::atomic<Clock::rep> looked_at_{0};  // the process, last
  std::atomic<std::uint64_t> waited_in_vain_{0};
};

// Reach the record's endpoint. attach_near() asks the broker of its process: kTimeout, kAuth;
// kPeerLost: it died; kStale: it has ended. attach_remote() finds the way to the process: kTimeout
// when it does not answer.
using AttachPeer = Result<std::shared_ptr<Peer>>(std::shared_ptr<Member> member,
                                                 EndpointRecord record, std::function<void()> ended,
                                                 Deadline deadline);
AttachPeer attach_near;
AttachPeer attach_remote;

// The endpoints that one endpoint has to do with, by name: found in the store and reached when they
// are first asked for, and again when they come back after their end. Thread-safe.
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
        on_peer_down_(std::move(on_peer_down)),
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
    std::unordered_map<std::string, std::shared_ptr<Peer>, Hash, std::equal_to<>> by_name
        MEMSPAN_GUARDED_BY(mutex);
    std::map<std::string, Departed> departed MEMSPAN_GUARDED_BY(mutex);
    std::optional<std::uint64_t> watch MEMSPAN_GUARDED_BY(mutex);  // of all records
    int noting MEMSPAN_GUARDED_BY(mutex) = 0;  // calls of watches that use a peer of by_name
    ConditionVariable returned;
    std::shared_ptr<Peer> find(std::string_view name) {
      std::shared_ptr<Peer> peer;
      {
        MutexLock lock(mutex);
        if (const auto found = by_name.find(name); found != by_name.end()) peer = found->second;
      }
      return peer != nullptr && peer->is_live() ? peer : nullptr;
    }
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

  // Null: not known, or it has ended.
  std::shared_ptr<Peer> known(std::string_view name) {
    if (auto peer = known_->find(name); peer != nullptr) [[likely]]
      return peer;
    const auto normal = normal_name(name);
    return normal.is_ok() ? known_->find(*normal) : nullptr;
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
  // One watch for the changes of all records. Watches of single peers would be n * n for n
  // endpoints that know each other, and with etcd as many connections.
  Status watch_records(Deadline deadline);
  static void note_change(Known& known, const StoreChange& change);
  // Looks at the records of all live peers, because changes while the store was away were not
  // reported.
  void settle();

  const std::shared_ptr<Member> member_;
  const Role role_;
  const Duration patience_;
  const std::atomic<std::uint64_t>& registrations_;
  const OnPeerDown on_peer_down_;
  const std::shared_ptr<Known> known_ = std::make_shared<Known>();
  Recent recent_;
  const std::uint64_t renewal_;  // may be called from its beginning on
};

}  // namespace memspan::transfer
