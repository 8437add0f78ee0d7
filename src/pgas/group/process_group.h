// SPDX-License-Identifier: Apache-2.0
// Processes that do collectives on ordinary memory. Data moves through pipeline buffers in shared
// memory: their owner writes them before a barrier, and the others read them after it.
//
//   heap of a member:  | arrivals | buffer 0 | buffer 1 | channel to 0 | channel to 1 | ...
//
// The two buffers are used in turn: the data of a barrier is read until the next one, so a member
// that is ahead writes the other. Hence every barrier moves data, and a long transfer has one
// barrier for each piece.
//
// The heap that a buffer or a slot of it is in changes from turn to turn, so that its last reader
// writes it next. Its lines are then in that core's caches, and move between two cores like lines
// that both read and write. With a fixed writer and a fixed reader, 16 KiB to 256 KiB took up to
// three times as long (AMD Zen 4).
//
// If members are on several nodes, each node's leader has copies of the buffers of all members of
// other nodes behind its channels. Before the barrier a member puts there the part of its buffer
// that they will read. So every member combines the same bytes in the same order.
#pragma once

#include "device/host/copy.h"
#include "pgas/group/direct_reads.h"
#include "pgas/group/idle_buffers.h"
#include "pgas/reduction/kernels.h"
#include "pgas/team.h"

namespace memspan::inline pgas {

// How a member writes its pipeline buffers, which the others read after a barrier.
//
// Data in another core's cache arrives fast if both cores share a cache, and several times more
// slowly than from memory if they do not. Which case holds differs between processors, and on a
// virtual machine from minute to minute. So it is measured (CopyChoice), with the reads. Members
// count the same calls, so all try the same way at a time; each finds by itself which one is
// faster.

// The writes of one group. One thread at a time.
class StageWrites {
 public:
  // Calls of a kind by how many bytes they move; those below kLeastBytes are written as any memory.
  void begin(std::size_t kind, std::size_t bytes);
  void write(void* to, const void* from, std::size_t bytes) {
    if (bytes == 0) return;
    if (way_ == nullptr || bytes < kLargeCopyBytes) {
      std::memcpy(to, from, bytes);
      return;
    }
    way_->copy(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
    is_unordered_ |= way_->is_past_caches;
  }
  // Before a barrier: members that are past it see the writes.
  void order() {
    if (is_unordered_) order_copies_past_caches();
    is_unordered_ = false;
  }
  // The time between the two does not count, since others may be late.
  void pause() {
    if (turn_.is_rated()) took_ += Clock::now() - since_;
  }
  void resume() {
    if (turn_.is_rated()) since_ = Clock::now();
  }
  void end();

  static constexpr std::size_t kKinds = 16;
  // Before the first trial: these calls find untouched pages.
  static constexpr std::uint32_t kCold = 8;

 private:
  static constexpr std::size_t kLeastBytes = 4096;
  static constexpr std::size_t kSizes = 8;  // 4 KiB and more, 16 KiB and more, ... 64 MiB and more

  struct Choice : CopyChoice {
    Choice() : CopyChoice(kCold, Turns::kByCount) {}
  };
  std::array<std::array<Choice, kSizes>, kKinds> choices_;
  CopyChoice* choice_ = nullptr;
  CopyChoice::Turn turn_;
  const CopyWay* way_ = nullptr;
  bool is_unordered_ = false;
  std::size_t bytes_ = 0;
  Clock::time_point since_;
  Duration took_{};
};

// The size of a pipeline buffer: small enough for those of two members to stay in their
// second-level caches, large enough for a barrier to cost little beside it.
inline constexpr std::size_t kPipelineBytes = std::size_t{512} << 10;
// The use of them by a call whose data travel with its barrier.
inline constexpr BufferUse kNoBuffer{kPipelineBytes, 0};
// The size of a member's channel, for messages with another one.
inline constexpr std::size_t kChannelBytes = std::size_t{128} << 10;
inline constexpr int kMostGroupMembers = 1024;

// How a pipeline buffer is cut: `first` bytes for all, then a slot of `bytes` bytes for each
// member. A value.
struct Slots {
  std::size_t first;
  std::size_t bytes;

  std::size_t offset_of(int member) const {
    return first + static_cast<std::size_t>(member) * bytes;
  }
};

// Collectives one thread at a time; the rest is thread-safe.
class ProcessGroup : NotCopyable {
 public:
  // Collective. `limit` bounds this and every wait of the group.
  // `host` is this process's, if not empty: else MEMSPAN_HOST_ID, or the kernel's.
  static Result<std::unique_ptr<ProcessGroup>> join(int rank, int size, const Exchange& exchange,
                                                    Duration limit, const std::string& host = {});
  // For an existing job. The World has a heap of heap_bytes(size) bytes, which only the group uses.
  explicit ProcessGroup(std::unique_ptr<World> world);
  ~ProcessGroup() { leave(); }

  static std::size_t heap_bytes(const NodeMap& nodes);

  // Takes this member out of the group for good: ends its own waits, and those of others for steps
  // that it has not done yet. The results of its steps stay. Thread-safe, also during calls.
  void leave();
  bool has_left() const { return world_->segment().peer(rank()).is_dead(); }

  World& world() const { return *world_; }
  Team& team() const { return *team_; }
  int rank() const { return world_->rank(); }
  int size() const { return world_->size(); }

  // For data that all others read: this process's pipeline buffer for its next barrier, and a
  // member's for the last one.
  std::byte* my_buffer() const { return buffer(rank(), team_->sequence() + 1); }
  const std::byte* buffer_of(int member) const {
    return is_near(member) ? buffer(member, team_->sequence()) : far_buffer_of(member);
  }
  // Puts bytes to that place of my_buffer().
  void give_all(std::size_t offset, const void* from, std::size_t bytes) {
    std::byte* const to = my_buffer() + offset;
    stage_.write(to, from, bytes);
    if (has_far_) share(offset, to, bytes);
  }
  // Shares bytes at that offset of my_buffer() with other nodes. They may be elsewhere: if
  // has_near() is false, no member reads my_buffer().
  void share(std::size_t offset, const std::byte* from, std::size_t bytes);
  // Whether another member is on this node.
  bool has_near() const { return !has_far_ || team_->nodes()->near().size() > 1; }

  // Writes data that one other member reads after the next barrier to its slot of this process's
  // buffer. For a member on another node the data is taken straight from `from`.
  void give(const Slots& slots, int member, const std::byte* from, std::size_t bytes) {
    give_at(slots.offset_of(member), slot(slots, rank(), member, team_->sequence() + 1), member,
            from, bytes);
  }
  // The data that `member` gave this one for the last barrier.
  const std::byte* given(const Slots& slots, int member) const {
    return is_near(member) ? slot(slots, member, rank(), team_->sequence())
                           : far_buffer_of(member) + slots.offset_of(rank());
  }
  // Puts bytes to the beginning of my_buffer() for only one other member.
  void give_buffer(int member, const std::byte* from, std::size_t bytes) {
    give_at(0, my_buffer(), member, from, bytes);
  }
  // A member's own slot, which all others read: this process's for its next barrier, and a member's
  // for the last one. share() at slots.offset_of(rank()) shares its bytes.
  std::byte* my_slot(const Slots& slots) const {
    return slot(slots, rank(), rank(), team_->sequence() + 1);
  }
  const std::byte* slot_of(const Slots& slots, int member) const {
    return is_near(member) ? slot(slots, member, member, team_->sequence())
                           : far_buffer_of(member) + slots.offset_of(member);
  }
  // How this member's buffer is written in the call under way.
  StageWrites& stage() { return stage_; }
  // For each step of a call, before it writes or enters its barrier: whether give_back() is due,
  // because no large call was made for a while.
  bool is_idle(const BufferUse& use) { return idle_.is_due(use); }
  // Settles the team and gives back what the call does not use of this member's next buffer.
  Status give_back(const char* what, const BufferUse& use);
  // Large values that are read where they are, not through the buffers.
  DirectReads& direct_reads() { return direct_reads_; }
  // Before a barrier: completes the shares. Fails if one of them could not be put.
  Status complete_shares();
  // Announces this member's next collective. Call it for each, or for none. Waits until all have
  // come to the last one, which may have been over here before (a broadcast's root).
  Status arrive();
  // Whether all have announced the collective that this one announced last: kTimeout if not yet.
  // They will, so a thread that waits for them waits for nothing that this member does first.
  Status wait_for_arrivals(Duration patience);

  // Bounds every wait that begins from now on, in this process.
  void set_limit(Duration limit) {
    world_->waiting().limit = limit;
    world_->operations().set_limit(limit);
  }

  // Whether this process and the member share memory.
  bool is_near(int member) const { return !has_far_ || world_->is_near(member); }
  // kNotSupported, naming both hosts, when there is a member on another one.
  Status check_one_node(const char* what) const;

  // leave() waits for a far member that messages were put to.
  void note_messages_to(int member) {
    has_messages_[member].store(true, std::memory_order_relaxed);
  }

  // The part of `owner`'s heap, near this process, for messages between it and `member`.
  std::byte* channel(int owner, int member) const;

 private:
  std::byte* buffer_in(int heap, std::uint64_t sequence) const {
    return world_->heap_of(heap) + kArrivalsBytes + (sequence & 1) * kPipelineBytes;
  }
  // How often the buffer of this barrier was written before. Other nodes hold copies, whose places
  // do not change.
  std::uint32_t turn(std::uint64_t sequence) const {
    return has_far_ ? 0 : static_cast<std::uint32_t>(sequence >> 1);
  }
  // The member whose heap holds at this turn the data that `member` writes for all.
  int holder_of(int member, std::uint64_t sequence) const {
    return static_cast<int>((static_cast<std::uint32_t>(member) + turn(sequence)) %
                            static_cast<std::uint32_t>(size()));
  }
  std::byte* buffer(int member, std::uint64_t sequence) const {
    return buffer_in(holder_of(member, sequence), sequence);
  }
  // Two members change the slots for each other at every turn.
  std::byte* slot(const Slots& slots, int writer, int reader, std::uint64_t sequence) const {
    if (writer == reader) {
      const int holder = holder_of(writer, sequence);
      return buffer_in(holder, sequence) + slots.offset_of(holder);
    }
    if (turn(sequence) % 2 != 0) std::swap(writer, reader);
    return buffer_in(writer, sequence) + slots.offset_of(reader);
  }
  // The copy of a far member's buffer, in the heap of `holder`.
  std::byte* copy_of_buffer(int member, std::uint64_t sequence, int holder) const {
    return channel(holder, size()) +
           (2 * static_cast<std::size_t>(member) + (sequence & 1)) * kPipelineBytes;
  }
  const std::byte* far_buffer_of(int member) const {
    return copy_of_buffer(member, team_->sequence(), node_leader());
  }
  int node_leader() const { return world_->nodes().leader_of(world_->nodes().node_of(rank())); }
  // To `near`, or to the copy of my_buffer() on the member's node.
  void give_at(std::size_t offset, std::byte* near, int member, const std::byte* from,
               std::size_t bytes) {
    if (is_near(member))
      stage_.write(near, from, bytes);
    else
      put_to_node(world_->nodes().node_of(member), offset, from, bytes);
  }
  void put_to_node(int node, std::size_t offset, const std::byte* from, std::size_t bytes);

  // The arrivals of a member, in a line of its heap that only it writes (DirectReads::gave_up_of()
  // is also there): a synchronous collective then waits for no line of another core. Behind it, in
  // the heap of each node's leader, the sum of the arrivals of all members of other nodes. A member
  // arrives at the next collective only after the last one, at which all arrived: so the sum says
  // enough.
  static constexpr std::size_t kArrivalsBytes = 2 * kFalseSharingRange;

  std::atomic<std::uint64_t>& arrivals_of(int member) const {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(world_->heap_of(member));
  }
  std::byte* far_arrivals_in(int heap) const { return world_->heap_of(heap) + kFalseSharingRange; }
  // This process's node.
  const std::vector<int>& near_members() const {
    return world_->nodes().peers_of(world_->nodes().node_of(rank()));
  }
  std::uint64_t arrived() const { return arrivals_of(rank()).load(std::memory_order_relaxed); }
  bool have_all_arrived() const;
  void wake_if_all_arrived() const;

  std::unique_ptr<World> world_;
  std::unique_ptr<Team> team_;
  StageWrites stage_;
  DirectReads direct_reads_;
  bool has_far_;                                 // there are members on other nodes
  std::vector<std::atomic<bool>> has_messages_;  // by member
  Status sharing_;                               // the first failure of a put for the next barrier
  IdleBuffers idle_;
};

// Collectives of a ProcessGroup on ordinary memory. All are blocking and called by every member in
// the same order, one thread at a time; include/memspan/group.h says what each does. Lists have an
// entry for each member. Arguments that only one member gets wrong (a root, a null) are its own
// failure, before it communicates.

Status group_barrier(ProcessGroup& group);

Status group_broadcast(ProcessGroup& group, void* values, std::size_t bytes, int root);
Status group_all_gather(ProcessGroup& group, void* const results[], const void* values,
                        std::size_t bytes);
Status group_gather(ProcessGroup& group, void* const results[], const void* values,
                    std::size_t bytes, int root);
Status group_scatter(ProcessGroup& group, void* result, const void* const values[],
                     std::size_t bytes, int root);
Status group_all_to_all(ProcessGroup& group, void* const results[],
                        const std::size_t result_bytes[], const void* const values[],
                        const std::size_t value_bytes[]);

Status group_all_reduce(ProcessGroup& group, void* result, const void* values, std::size_t count,
                        const ReductionKernel& elements);
Status group_reduce(ProcessGroup& group, void* result, const void* values, std::size_t count,
                    const ReductionKernel& elements, int root);
Status group_reduce_scatter(ProcessGroup& group, void* result, const void* const values[],
                            std::size_t count, const ReductionKernel& elements);

}  // namespace memspan::inline pgas
