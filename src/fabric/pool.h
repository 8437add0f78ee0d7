// SPDX-License-Identifier: Apache-2.0
// A pool: memory that processes give, at the same addresses in all of them.
//
//   create  addresses (address_book.h) and this process's own slices, mapped in its stripes
//   join    a record of it in the store, which goes with the process, and the others' slices on
//           this host, which their doors hand over; those who come later are noticed by a watch
//   leave   the record goes, the others' slices are unmapped
//
// When a join returns, those who were there have this process's slices mapped, and when a leave
// does they have not any more (attendance.h). No step waits for a member that is stuck for longer
// than a second: it maps and is mapped when it goes on, and only copies to it wait.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/mutex.h"
#include "core/status.h"
#include "fabric/address_book.h"
#include "fabric/attendance.h"
#include "fabric/member.h"
#include "fabric/stripes.h"
#include "fabric/tags.h"

namespace memspan {

inline constexpr std::uint64_t kMostHostBytes = std::uint64_t{2} << 40;
inline constexpr std::uint64_t kMostDeviceBytes = std::uint64_t{64} << 30;

// Device memory of the host device is DRAM, too, in a space of its own.
enum class SpaceKind : std::uint8_t { kHost = 0, kDevice = 1 };
inline constexpr std::size_t kSpaces = 2;

// What this process gives to a space. A value.
struct SliceWish {
  std::uint64_t most = 0;   // of any rank: the stride, rounded up; 0: the pool has no such space
  std::uint64_t bytes = 0;  // of this one
};

// Move-only value.
struct PoolOptions {
  std::string name;  // "bm/7": the same in all members
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  std::array<SliceWish, kSpaces> slices = {};
  Fd host_memory = {};           // where the host slice lies; none: new memory
  std::optional<int> numa = {};  // the node of the host slice; -1: that of the caller
  TagRules tags = {};
};

// Thread-safe.
class Pool {
 public:
  // kInvalidArgument for sizes beyond the limits or what AddressRange::claim() refuses,
  // kOutOfMemory when the host lacks the memory.
  static Result<std::unique_ptr<Pool>> create(std::shared_ptr<Member> member, PoolOptions options,
                                              Deadline deadline);
  // Leaves.
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Waits until members on this host are mapped here and this one there, but for stuck ones. Ok
  // when joined.
  // kUnavailable when another process is in the pool with this rank.
  Status join(Deadline deadline) MEMSPAN_EXCLUDES(mutex_);
  // kUnavailable when not joined.
  Status leave(Deadline deadline) MEMSPAN_EXCLUDES(mutex_);

  std::uint32_t rank() const { return options_.rank; }
  std::uint32_t ranks() const { return options_.ranks; }
  const SliceWish& slice(SpaceKind kind) const { return options_.slices[index_of(kind)]; }
  Stripes& space(SpaceKind kind) { return kind == SpaceKind::kHost ? host_ : device_; }

  // Waits until what `rank` gives to a space is mapped, and says how many bytes that are. kPeerLost
  // when it is not in the pool, kTimeout when it does not hand its memory over, kNotSupported when
  // it is on another host, kUnreachable when this process has not joined.
  Result<std::uint64_t> await(std::uint32_t rank, SpaceKind kind, Deadline deadline)
      MEMSPAN_EXCLUDES(mutex_);
  // Whether the tags of two ranks have a way between them; kUnreachable names both.
  Status check_way(std::uint32_t from, std::uint32_t to) MEMSPAN_EXCLUDES(mutex_);
  // False while the tags allow every pair, so that nobody needs to ask.
  bool has_rules() const { return has_rules_.load(std::memory_order_acquire); }

 private:
  // What the store says of a member.
  struct Record;
  struct Peer {
    enum class Stage { kAbsent, kAsked, kMapped, kFailed };
    Stage stage = Stage::kAbsent;
    std::uint64_t news = 0;        // how many records were seen to come or go
    Status why = {};               // kFailed
    std::uint64_t generation = 0;  // of the record, while there is one
    std::array<std::uint64_t, kSpaces> bytes = {};
    std::string tag = {};
    std::optional<Attendance> attendance = {};  // its own; kMapped
    std::uint64_t asked = 0;     // which attempt; an answer to another one is dropped
    std::uint64_t question = 0;  // at the door
  };

  Pool(std::shared_ptr<Member> member, PoolOptions options, AddressRange range,
       Attendance attendance);
  static std::size_t index_of(SpaceKind kind) { return static_cast<std::size_t>(kind); }
  std::string members_prefix() const { return options_.name + "/m/"; }
  std::string offer_of(std::uint32_t rank) const {
    return options_.name + "/" + std::to_string(rank);
  }
  static Status gone(std::uint32_t rank);
  Status give(SpaceKind kind);
  Status publish(Deadline deadline) MEMSPAN_REQUIRES(joining_);
  Status part(Deadline deadline) MEMSPAN_REQUIRES(joining_) MEMSPAN_EXCLUDES(mutex_);
  void take_news(const StoreChange& change) MEMSPAN_EXCLUDES(mutex_);
  void appear(std::uint32_t rank, const std::string& text) MEMSPAN_EXCLUDES(mutex_);
  void vanish(std::uint32_t rank) MEMSPAN_EXCLUDES(mutex_);
  void ask(std::uint32_t rank, const Record& record) MEMSPAN_REQUIRES(mutex_);
  void answered(std::uint32_t rank, std::uint64_t attempt, const Record& record,
                Result<DoorAnswer> answer) MEMSPAN_EXCLUDES(mutex_);
  Status map_slices(std::uint32_t rank, const Record& record, DoorAnswer answer)
      MEMSPAN_REQUIRES(mutex_);
  Status await_news(std::uint32_t rank, const Deadline& deadline) MEMSPAN_REQUIRES(mutex_);
  bool is_asking() const MEMSPAN_REQUIRES(mutex_);
  void await_marks(bool are_set, const Deadline& deadline) MEMSPAN_EXCLUDES(mutex_);
  bool are_marks(bool are_set) MEMSPAN_EXCLUDES(mutex_);

  const std::shared_ptr<Member> member_;  // shared with what else this process has at the store
  const PoolOptions options_;
  AddressRange range_;
  Stripes host_;
  Stripes device_;
  std::array<std::optional<Pages>, kSpaces> own_;
  Attendance attendance_;
  std::atomic<bool> has_rules_;

  Mutex joining_;  // one join or leave at a time
  std::uint64_t watch_ MEMSPAN_GUARDED_BY(joining_) = 0;
  std::uint64_t joins_ MEMSPAN_GUARDED_BY(joining_) = 0;
  bool is_published_ MEMSPAN_GUARDED_BY(joining_) = false;

  Mutex mutex_;
  ConditionVariable changed_;
  bool is_joined_ MEMSPAN_GUARDED_BY(mutex_) = false;
  std::uint64_t attempts_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  std::vector<Peer> peers_ MEMSPAN_GUARDED_BY(mutex_);  // by rank
};

}  // namespace memspan
