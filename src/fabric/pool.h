// SPDX-License-Identifier: Apache-2.0
// A pool: memory that processes contribute, at the same addresses in all of them.
//
//   create  claims the address range (address_registry.h) and maps this process's contributions
//   join    writes a record into the store under the process's lease; maps the contributions of
//           members on this host, which their descriptor brokers hand over; watches for later ones
//   leave   removes the record and unmaps the others' contributions
//
// When a join returns, the members on this host have mapped this process's memory, and when a leave
// returns, none of them has it mapped (node/mapper_table.h). Neither waits longer than a second for
// a member that is stopped or copies from or to that memory. Such a member does its part later, and
// only copies between the two wait.
//
// A member whose lease ended may run on, or continue after a stop, with the others' memory mapped.
// Each member therefore admits the joins that the store lists to its own memory, and no others:
// every piece of a copy on this host looks whether its owner still admits this process. Loads and
// stores of the program do not.
#pragma once

#include "core/pages.h"
#include "fabric/address_registry.h"
#include "fabric/tags.h"
#include "node/mapper_table.h"
#include "observe/counters.h"
#include "store/fields.h"

namespace memspan::inline fabric {

inline constexpr std::uint64_t kMostHostBytes = std::uint64_t{2} << 40;
inline constexpr std::uint64_t kMostDeviceBytes = std::uint64_t{64} << 30;

// One address range of a pool: a window of addresses for every rank, and how much of each is mapped
// here.
//
//   base | window 0         | window 1         | ...     each `stride` bytes
//        | mapped |.........| mapped   |.......|         . reserved, nothing there
//
// A copy holds a window while it uses it, and a held window is not unmapped. Holding takes two
// atomic instructions and no lock, and no thread waits for holders: retire() refuses new ones, and
// the last user unmaps.
//
// Thread-safe. An empty range has no addresses.
class RankWindows {
 public:
  // The range must outlive it; null: a range of no bytes.
  RankWindows(DeviceRange* range, std::uint64_t stride, std::uint32_t ranks)
      : range_(range),
        base_(range == nullptr ? 0 : reinterpret_cast<std::uint64_t>(range->base())),
        stride_(stride),
        bytes_(stride * ranks),
        windows_(std::make_unique<Window[]>(ranks)) {}

  std::uint64_t stride() const { return stride_; }
  std::uint64_t bytes() const { return bytes_; }
  std::byte* begin_of(std::uint32_t rank) const {
    return reinterpret_cast<std::byte*>(base_ + rank * stride_);
  }

  // Holds the window and returns its bytes, mapped until release(). 0: nothing is mapped or held.
  std::uint64_t hold(std::uint32_t rank) {
    Window& window = windows_[rank];
    std::uint32_t users = window.users.load(std::memory_order_relaxed);
    do {
      if ((users & kOpen) == 0) return 0;
    } while (!window.users.compare_exchange_weak(users, users + 1,  // pairs with map()
                                                 std::memory_order_acquire,
                                                 std::memory_order_relaxed));
    return window.bytes;
  }
  // The right to copy from and to a window that the caller holds.
  const Admission& admission(std::uint32_t rank) const { return windows_[rank].admission; }
  // True: the caller was the last user of a retired window, and calls unmap().
  [[nodiscard]] bool release(std::uint32_t rank) {
    // Pairs with itself: the last user comes after the copies of all others.
    return windows_[rank].users.fetch_sub(1, std::memory_order_acq_rel) == 2;
  }
  // Refuses new holders. True: no copy holds the window, and the caller calls unmap(). False: the
  // last holder does, or nothing was mapped.
  [[nodiscard]] bool retire(std::uint32_t rank) {
    return windows_[rank].users.fetch_and(~kOpen, std::memory_order_acq_rel) == (kOpen | 1);
  }
  // Whether nothing is mapped, so that map() may be called.
  bool is_free(std::uint32_t rank) const {
    return windows_[rank].users.load(std::memory_order_acquire) == 0;  // pairs with unmap()
  }

  // Maps `bytes` > 0 of the memory that `rank` gives. The window must be free, and the admission
  // outlives the mapping.
  Status map(std::uint32_t rank, const DeviceMemory& memory, std::uint64_t bytes,
             const Admission& admission) MEMSPAN_EXCLUDES(mutex_) {
    Window& window = windows_[rank];
    const auto whole = std::min<std::size_t>(memory.bytes(), align_up(bytes, kDeviceGranularity));
    MutexLock lock(mutex_);
    MEMSPAN_PASS(range_->map(rank * stride_, memory, whole));
    window.bytes = bytes;
    window.admission = admission;
    window.users.store(kOpen | 1, std::memory_order_release);  // pairs with hold()
    return Status::ok();
  }
  // Only after release() or retire() returned true.
  void unmap(std::uint32_t rank) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    static_cast<void>(range_->unmap(rank * stride_, stride_));
    windows_[rank].users.store(0, std::memory_order_release);  // pairs with is_free()
  }

 private:
  static constexpr std::uint32_t kOpen = std::uint32_t{1} << 31;
  struct Window {
    std::uint64_t bytes = 0;  // while it is mapped
    Admission admission = Admission::of_owner();
    // The holders, and 1 while it is mapped; kOpen while it can be held.
    std::atomic<std::uint32_t> users{0};
  };

  DeviceRange* const range_;
  const std::uint64_t base_;
  const std::uint64_t stride_;
  const std::uint64_t bytes_;
  const std::unique_ptr<Window[]> windows_;
  Mutex mutex_;  // of the range's mappings
};

// If the host is the device, its device memory is also DRAM, in an address range of its own.
enum class RangeKind : std::uint8_t { kHost = 0, kDevice = 1 };
inline constexpr std::size_t kRanges = 2;
inline constexpr std::array<RangeKind, kRanges> kRangeKinds{RangeKind::kHost, RangeKind::kDevice};

// Memory of a member on another host. Shared by the copies that use it.
struct RemoteWindow {
  std::shared_ptr<RemotePeer> peer;
  RemoteRegion region;
  std::uint32_t rank = 0;
  std::uint64_t generation = 0;  // of the rank's join
  std::string name;              // "rank 3, process 12 on host b"
};

// This process's contribution to an address range. A value.
struct ContributionRequest {
  std::uint64_t most = 0;   // of any rank, rounded up to the stride; 0: the pool has no such range
  std::uint64_t bytes = 0;  // of this one
};

// Move-only value.
struct PoolOptions {
  std::string name;  // "bm/7": the same in all members
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  std::array<ContributionRequest, kRanges> contributions = {};
  Device* device = nullptr;      // of the device contribution; not null
  Fd host_memory = {};           // holds the host contribution; none: new memory
  std::optional<int> numa = {};  // the node of the host contribution; -1: that of the caller
  TagRules tags = {};
};

// Thread-safe.
class Pool {
 public:
  // The contributions keep to the limits, and one of them has a largest size. kInvalidArgument for
  // sizes beyond the addresses or what AddressRange::claim() refuses, kOutOfMemory when the host
  // lacks the memory.
  static Result<std::unique_ptr<Pool>> create(std::shared_ptr<Member> member, PoolOptions options,
                                              Deadline deadline);
  // Leaves.
  ~Pool() {
    member_->tell_end([&](const Deadline& deadline) { return leave(deadline); });
  }

  // Waits until this process and the members on this host have mapped each other, except stopped
  // ones. Ok if it has joined already. kUnavailable: another process is in the pool with this rank.
  Status join(Deadline deadline) MEMSPAN_EXCLUDES(mutex_);
  // kUnavailable when not joined.
  Status leave(Deadline deadline) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock joining(joining_);
    {
      MutexLock lock(mutex_);
      if (join_ == 0)
        return {Code::kUnavailable, "this process has not joined the pool, or left it"};
    }
    return detach(deadline);
  }

  std::uint32_t rank() const { return options_.rank; }
  std::uint32_t ranks() const { return options_.ranks; }
  const ContributionRequest& contribution(RangeKind kind) const {
    return options_.contributions[index_of(kind)];
  }
  // The device that copies the device memory.
  Device& device() const { return *options_.device; }
  // device(), or null if that is the host.
  Device* other_device() const { return other_device_; }
  // kNotSupported if the system refused to place the host contribution on its NUMA node.
  const Status& placement() const { return placement_; }
  // A window that was held is released with release().
  RankWindows& windows(RangeKind kind) { return kind == RangeKind::kHost ? host_ : device_; }
  // Holds the window and returns its bytes; 0: nothing is mapped, or the rank does not admit this
  // process. Nothing is held then.
  std::uint64_t hold(RankWindows& windows, std::uint32_t rank) MEMSPAN_EXCLUDES(mutex_) {
    const std::uint64_t bytes = windows.hold(rank);
    if (bytes == 0 || windows.admission(rank).is_valid()) [[likely]]
      return bytes;
    release(windows, rank);
    return 0;
  }
  void release(RankWindows& windows, std::uint32_t rank) MEMSPAN_EXCLUDES(mutex_) {
    if (windows.release(rank)) [[unlikely]]
      unmap({&windows}, rank);
  }

  // Waits until the contribution of `rank` to an address range can be reached, and returns its
  // bytes. kPeerLost: the rank is not in the pool. kTimeout: it does not hand its memory over.
  // kUnreachable: this process has not joined, or another process may have its rank.
  Result<std::uint64_t> await(std::uint32_t rank, RangeKind kind, Deadline deadline)
      MEMSPAN_EXCLUDES(mutex_);
  // Wait until so many members, including this one, or a certain member can be reached. kTimeout
  // names the missing members; kPeerLost: a member has left since the call began; kStoreLost: no
  // member can join any more; kUnavailable: this process has not joined.
  Status await_members(std::uint32_t count, const Deadline& deadline) MEMSPAN_EXCLUDES(mutex_);
  Status await_member(std::uint32_t rank, const Deadline& deadline) MEMSPAN_EXCLUDES(mutex_);
  // Ends these waits, now and later, with kUnavailable. For use before the pool ends.
  void end_waits() MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    ends_waits_ = true;
    changed_.notify_all();
  }
  // Whether a member, now, is on another host.
  bool is_remote(std::uint32_t rank) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return peers_[rank].stage == Peer::Stage::kRemote;
  }
  // False while all members have been on this host.
  bool is_spread() const { return is_spread_.load(std::memory_order_acquire); }
  // The window of a rank on another host; null when no such rank is in the pool (any more). Asks
  // the rank for it at the first call, and again when the link has ended. kPeerLost as await().
  Result<std::shared_ptr<const RemoteWindow>> remote_window(std::uint32_t rank, RangeKind kind,
                                                            Deadline deadline)
      MEMSPAN_EXCLUDES(mutex_, connecting_);
  // For a window of `generation` that was refused because that join of the rank is over. Asks the
  // store. Ok: the rank may be in the pool again. kPeerLost: it is not.
  Status await_rejoin(std::uint32_t rank, std::uint64_t generation, const Deadline& deadline)
      MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return peers_[rank].record.generation == generation ? await_event(rank, deadline)
                                                        : Status::ok();
  }
  // Whether the tags of two ranks allow copies between them; kUnreachable names both.
  Status check_reachability(std::uint32_t from, std::uint32_t to) MEMSPAN_EXCLUDES(mutex_);
  // False while the tags allow every pair, so that no check is needed.
  bool is_restricted() const { return is_restricted_.load(std::memory_order_acquire); }

 private:
  // The store's record of a member. A value.
  struct Record {
    std::uint64_t generation = 0;  // of this join: no other has the same
    MemberIdentity who;
    std::string broker_address;
    std::array<std::uint64_t, kRanges> bytes = {};
    bool has_own_host_memory = true;  // not the caller's
    std::string tag;

    static void fields(auto& codec, auto& self) {
      codec(self.generation, self.who, self.broker_address, self.bytes[0], self.bytes[1],
            self.has_own_host_memory, self.tag);
    }
  };
  using RemoteWindows = std::array<std::shared_ptr<const RemoteWindow>, kRanges>;
  struct Peer {
    enum class Stage { kAbsent, kFetching, kMapped, kRemote, kFailed };
    Stage stage = Stage::kAbsent;
    std::uint64_t events = 0;  // how many records were seen to come or go
    Status why = {};           // kFailed
    Record record = {};        // while there is one
    // Its own; until its memory is unmapped. Owners: this, and waits for its admission.
    std::shared_ptr<MapperTable> mappers = {};
    std::uint64_t mapped_in = 0;  // this process's join when it mapped the memory
    std::string next = {};        // record of a join, while memory of the last is held
    RemoteWindows windows = {};   // kRemote, once they were asked for
    std::uint64_t fetch = 0;      // the last one at the broker
    bool is_fetching() const { return stage == Stage::kFetching || !next.empty(); }
    bool is_present() const { return stage == Stage::kMapped || stage == Stage::kRemote; }
  };

  Pool(std::shared_ptr<Member> member, PoolOptions options, std::unique_ptr<AddressRange> range,
       MapperTable mappers);
  static std::size_t index_of(RangeKind kind) { return static_cast<std::size_t>(kind); }
  std::string members_prefix() const { return options_.name + "/m/"; }
  std::string member_key(std::uint32_t rank) const {
    return members_prefix() + std::to_string(rank);
  }
  std::string published_name(std::uint32_t rank) const {
    return options_.name + "/" + std::to_string(rank);
  }
  static Status gone(std::uint32_t rank);
  static constexpr const char* kIsHeld =
      "joined again, but a copy of this process still uses its old memory";
  // New memory is taken now, so that a shortage is an error here.
  Status give(RangeKind kind) {
    const std::uint64_t bytes = contribution(kind).bytes;
    if (bytes == 0) return Status::ok();
    if (kind == RangeKind::kHost || device().is_host()) return give_pages(kind, bytes);
    MEMSPAN_TRY_ASSIGN(auto memory, device().allocate(bytes, "memspan-pool"), "the pool");
    MEMSPAN_PASS(windows(kind).map(options_.rank, *memory, bytes, Admission::of_owner()));
    own_[index_of(kind)] = std::move(memory);
    return Status::ok();
  }
  Status give_pages(RangeKind kind, std::uint64_t bytes);
  Result<std::unique_ptr<DeviceMemory>> adopt(RangeKind kind, Fd descriptor, const Record& record);
  Status publish(std::uint64_t join, Deadline deadline) MEMSPAN_REQUIRES(joining_);
  Status detach(Deadline deadline) MEMSPAN_REQUIRES(joining_) MEMSPAN_EXCLUDES(mutex_);
  void on_membership_event(const StoreChange& change) MEMSPAN_EXCLUDES(mutex_);
  void on_peer_joined(std::uint32_t rank, const std::string& text) MEMSPAN_EXCLUDES(mutex_);
  void on_peer_left(std::uint32_t rank) MEMSPAN_EXCLUDES(mutex_);
  // Those of the rank's windows that no copy holds, for unmap().
  std::vector<RankWindows*> retire(std::uint32_t rank) {
    std::vector<RankWindows*> unused;
    for (const RangeKind kind : kRangeKinds)
      if (windows(kind).retire(rank)) unused.push_back(&windows(kind));
    return unused;
  }
  void unmap(const std::vector<RankWindows*>& unused, std::uint32_t rank) MEMSPAN_EXCLUDES(mutex_);
  bool is_unmapped(std::uint32_t rank) const {
    return host_.is_free(rank) && device_.is_free(rank);
  }
  // The answer to members on other hosts: this process's windows as regions.
  Result<std::string> describe_windows(std::string_view request) MEMSPAN_EXCLUDES(exposing_);
  Result<RemoteWindows> connect(std::uint32_t rank, const Record& record, const Deadline& deadline);
  // An answer is dropped if the peer has had other events since it was asked.
  void on_fetched(std::uint32_t rank, std::uint64_t events, Result<FetchedDescriptors> answer)
      MEMSPAN_EXCLUDES(mutex_);
  Status map_contributions(std::uint32_t rank, FetchedDescriptors answer) MEMSPAN_REQUIRES(mutex_);
  // Calls `look` with the time waited until it is ok, or returns its failure after the deadline.
  template <typename Look>
  Status await_presence(std::uint32_t first, std::uint32_t end, const Deadline& deadline, Look look)
      MEMSPAN_EXCLUDES(mutex_);
  // Ok while the store answers.
  Status ask_store(const Deadline& deadline) MEMSPAN_REQUIRES(mutex_) {
    mutex_.unlock();
    const Status answer = member_->store().get_now(member_key(options_.rank), deadline).status();
    mutex_.lock();
    const bool is_there =
        answer.is_ok() || answer.code() == Code::kNotFound || answer.code() == Code::kTimeout;
    return is_there ? Status::ok() : answer;
  }
  Status await_event(std::uint32_t rank, const Deadline& deadline) MEMSPAN_REQUIRES(mutex_);
  Status await_admission(std::uint32_t rank, const Deadline& deadline) MEMSPAN_REQUIRES(mutex_);
  // Ok if the store still has the record of that join. kStale: the rank has joined again since;
  // kPeerLost: it is not in the pool.
  Status check_record(std::uint32_t rank, std::uint64_t generation, const Deadline& deadline) {
    auto record = member_->store().get_now(member_key(rank), deadline);
    if (record.code() == Code::kNotFound)
      return {Code::kPeerLost, "it is not in the pool: it has left, or ended"};
    if (!record.is_ok()) return record.status();
    const auto decoded = decode_record<Record>(*record, "member");
    if (decoded.is_ok() && decoded->generation == generation) return Status::ok();
    return {Code::kStale, "it has left the pool since"};
  }
  // Waits until all members mapped here have mapped this process's memory, or until none has.
  void await_mapped_flags(bool are_set, const Deadline& deadline) MEMSPAN_EXCLUDES(mutex_) {
    static_cast<void>(mappers_.wait(deadline, [&] {
      MutexLock lock(mutex_);
      for (std::uint32_t rank = 0; rank < options_.ranks; ++rank)
        if (peers_[rank].stage == Peer::Stage::kMapped &&
            (mappers_.mapped_by(rank) == peers_[rank].record.generation) != are_set)
          return false;
      return true;
    }));
  }

  const std::shared_ptr<Member> member_;  // shared with what else this process has at the store
  const PoolOptions options_;
  Device* const other_device_;
  const std::unique_ptr<AddressRange> range_;
  RankWindows host_;
  RankWindows device_;
  std::array<std::unique_ptr<DeviceMemory>, kRanges> own_;
  MapperTable mappers_;
  Status placement_;  // const once create() returned
  std::atomic<bool> is_restricted_{false};
  std::atomic<bool> is_spread_{false};

  ListedMember listed_;

  Mutex joining_;  // one join or leave at a time
  std::uint64_t watch_ MEMSPAN_GUARDED_BY(joining_) = 0;
  std::uint64_t joins_ MEMSPAN_GUARDED_BY(joining_) = 0;
  bool is_published_ MEMSPAN_GUARDED_BY(joining_) = false;

  Mutex exposing_;
  std::uint64_t generation_ MEMSPAN_GUARDED_BY(exposing_) = 0;  // of the join; 0: none
  std::array<std::unique_ptr<ExposedRegion>, kRanges> exposed_ MEMSPAN_GUARDED_BY(exposing_);

  Mutex connecting_;  // one thread at a time asks for remote windows; taken before mutex_
  Mutex mutex_;
  ConditionVariable changed_;
  std::uint64_t join_ MEMSPAN_GUARDED_BY(mutex_) = 0;  // no other has the number; 0: not joined
  bool ends_waits_ MEMSPAN_GUARDED_BY(mutex_) = false;
  std::vector<Peer> peers_ MEMSPAN_GUARDED_BY(mutex_);  // by rank
};

}  // namespace memspan::inline fabric
