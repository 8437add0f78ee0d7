// SPDX-License-Identifier: Apache-2.0
#include "world/world.h"

#include <fmt/format.h>
#include <unistd.h>

#include "core/environment.h"
#include "memory/address_plan.h"
#include "memory/budget.h"
#include "transport/registry.h"
#include "world/futex.h"
#include "world/program_sharing.h"

namespace memspan {
namespace {

// About a microsecond: a pause is 40 to 140 cycles on today's processors.
constexpr int kSpins = 40;

constexpr const char* kCommitVariable = "MEMSPAN_COMMIT";
constexpr const char* kCommitNames[] = {"allocation", "touch"};  // by CommitMode

Result<CommitMode> commit_mode_from_environment() {
  const std::string text = environment_or(kCommitVariable, kCommitNames[0]);
  for (const CommitMode mode : {CommitMode::kAtAllocation, CommitMode::kAtTouch})
    if (text == kCommitNames[static_cast<int>(mode)]) return mode;
  return Status(Code::kInvalidArgument,
                fmt::format("{} is \"{}\"; allowed are {} and {}", kCommitVariable, text,
                            kCommitNames[0], kCommitNames[1]));
}

// Allocating is a meeting of all when memory is taken with it.
Status check_same_commit_mode(const Board& board, CommitMode mode) {
  std::uint32_t agreed = 0;
  const auto mine = static_cast<std::uint32_t>(mode) + 1;
  if (board.header().commit_mode.compare_exchange_strong(agreed, mine) || agreed == mine)
    return Status::ok();
  return {Code::kInvalidArgument,
          fmt::format("{} is {} in this process and {} in another one of the job; all must have "
                      "the same",
                      kCommitVariable, kCommitNames[mine - 1], kCommitNames[agreed == 1 ? 0 : 1])};
}

// One heap larger than all memory can never be filled: refuse it by name, before reserving. One
// whose memory is taken at the first use may never be filled.
Status check_heap_size(std::size_t heap_bytes, std::uint64_t stride, CommitMode mode) {
  MEMSPAN_TRY_ASSIGN(MemoryBudget budget, measure_memory_budget(), "measuring memory");
  std::uint64_t most = stride - kInternalBytes - kProgramDataBytes;
  if (mode == CommitMode::kAtAllocation) most = std::min<std::uint64_t>(budget.total, most);
  if (heap_bytes <= most) return Status::ok();
  return {Code::kOutOfMemory,
          fmt::format("a symmetric heap of {} ({} bytes) is more than the {} ({} bytes) of memory "
                      "that this host has ({})",
                      format_size(heap_bytes), heap_bytes, format_size(most), most, budget.source)};
}

Status check_same_heap_size(const Board& board, std::size_t heap_bytes) {
  std::uint64_t agreed = 0;
  if (board.header().heap_bytes.compare_exchange_strong(agreed, heap_bytes) || agreed == heap_bytes)
    return Status::ok();
  return {Code::kInvalidArgument,
          fmt::format("this process asks for a symmetric heap of {} bytes, another one of the "
                      "job for {}; all must ask for the same",
                      heap_bytes, agreed)};
}

}  // namespace

Result<std::unique_ptr<World>> World::create(Membership membership, std::size_t heap_bytes,
                                             ProgramVariables variables) {
  std::uint64_t stride = membership.board->header().heap_stride;
  heap_bytes = align_up(std::max(heap_bytes, std::size_t{1}), kHeapGranularity);
  MEMSPAN_TRY_ASSIGN(const CommitMode mode, commit_mode_from_environment(),
                     "making the symmetric heap");
  MEMSPAN_TRY(check_same_commit_mode(*membership.board, mode), "making the symmetric heap");
  MEMSPAN_TRY(check_heap_size(heap_bytes, stride, mode), "making the symmetric heap");
  MEMSPAN_TRY(check_same_heap_size(*membership.board, heap_bytes), "making the symmetric heap");
  std::unique_ptr<World> world(new World(std::move(membership), heap_bytes, mode));
  MEMSPAN_TRY(world->map_segments(variables), "making the symmetric heap");
  MEMSPAN_TRY(world->connect_peers(), "connecting to the peers");
  world->fill_table();
  allow_fences_from_peers();
  return world;
}

World::World(Membership membership, std::size_t heap_bytes, CommitMode mode)
    : membership_(std::move(membership)),
      heap_bytes_(heap_bytes),
      commit_mode_(mode),
      part_bytes_(kInternalBytes + heap_bytes),
      internal_allocator_(kInternalBytes) {
  waiting_.board = membership_.board.get();
  waiting_.self = &membership_.board->peer(membership_.rank);
  waiting_.rank = membership_.rank;
  waiting_.generation = waiting_.self->generation.load(std::memory_order_relaxed);
  waiting_.spins = membership_.board->header().oversubscribed != 0 ? 0 : kSpins;
}

World::~World() {
  // A launcher's memory is there for the next job as well; what processes made themselves goes.
  if (!membership_.job.empty()) take_back_program_data();
}

Status World::map_segments(ProgramVariables variables) {
  const bool is_the_job = variables == ProgramVariables::kShared;
  if (is_the_job) program_data_ = share_program_data(*membership_.board, *membership_.heap, rank());
  const std::size_t each = part_bytes_ + program_data_.bytes;
  const std::size_t bytes = each * static_cast<std::size_t>(size());
  if (bytes / each != static_cast<std::size_t>(size()) || bytes > kHeapWindowBytes)
    return {Code::kOutOfMemory,
            fmt::format("{} heaps of {} do not fit the address window of {}", size(),
                        format_size(each), format_size(kHeapWindowBytes))};
  MEMSPAN_TRY_ASSIGN(
      Reservation range,
      Reservation::make(bytes, is_the_job ? reinterpret_cast<void*>(kHeapWindow) : nullptr),
      "reserving addresses");
  range_ = std::make_unique<Reservation>(std::move(range));
  TransportRegistry registry;
  add_builtin_transports(registry, *range_);
  MEMSPAN_TRY_ASSIGN(transport_, registry.choose(environment_or("MEMSPAN_TRANSPORT", "")),
                     "MEMSPAN_TRANSPORT");
  return Status::ok();
}

Status World::connect_peers() {
  std::uint64_t stride = membership_.board->header().heap_stride;
  for (int peer = 0; peer < size(); ++peer) {
    auto index = static_cast<std::size_t>(peer);
    PeerSegment segment{peer, membership_.heap.get(), index * stride, part_bytes_,
                        index * part_bytes_};
    MEMSPAN_TRY_ASSIGN(std::unique_ptr<Link> link, transport_->connect(segment),
                       fmt::format("PE {}", peer));
    links_.push_back(std::move(link));
  }
  return Status::ok();
}

void World::fill_table() {
  std::byte* mine = range_->base() + static_cast<std::size_t>(rank()) * part_bytes_;
  routes_.resize(static_cast<std::size_t>(size()));
  for (std::size_t peer = 0; peer < routes_.size(); ++peer) {
    Route& route = routes_[peer];
    route.link = links_[peer].get();
    route.board = &membership_.board->peer(static_cast<int>(peer));
    if (std::byte* direct = route.link->direct(0)) route.delta = direct - mine;
    if (peer == static_cast<std::size_t>(rank()))
      route.delta = 0;  // its own memory, whatever the transport
  }
  table_.heap = {reinterpret_cast<std::uintptr_t>(mine + kInternalBytes), heap_bytes_,
                 routes_.data(), kInternalBytes};
  table_.peers = static_cast<std::uint32_t>(size());
  std::size_t file_offset =
      static_cast<std::size_t>(rank()) * membership_.board->header().heap_stride;
  heap_ = std::make_unique<SymmetricHeap>(*membership_.heap, file_offset + kInternalBytes,
                                          mine + kInternalBytes, heap_bytes_, commit_mode_);
}

Status World::connect_program_data() {
  if (program_data_.is_empty()) return Status::ok();
  data_routes_.resize(static_cast<std::size_t>(size()));
  for (int peer = 0; peer < size(); ++peer)
    MEMSPAN_TRY(connect_program_data(peer), fmt::format("the variables of PE {}", peer));
  table_.data = {reinterpret_cast<std::uintptr_t>(program_data_.base), program_data_.bytes,
                 data_routes_.data(), 0};
  return Status::ok();
}

Status World::connect_program_data(int peer) {
  Route& route = data_routes_[static_cast<std::size_t>(peer)];
  route.board = &membership_.board->peer(peer);
  if (peer == rank()) route.delta = 0;
  // Pairs with the release in share_program_data().
  if (size() == 1 || route.board->program.load(std::memory_order_acquire) != program_data_.identity)
    return Status::ok();
  const PeerSegment segment{peer, membership_.heap.get(),
                            program_data_offset(*membership_.board, peer), program_data_.bytes,
                            part_bytes_ * static_cast<std::size_t>(size()) +
                                static_cast<std::size_t>(peer) * program_data_.bytes};
  MEMSPAN_TRY_ASSIGN(std::unique_ptr<Link> link, transport_->connect(segment), "connecting");
  route.link = link.get();
  data_links_.push_back(std::move(link));
  if (std::byte* direct = route.link->direct(0); direct != nullptr && peer != rank())
    route.delta = direct - program_data_.base;
  return Status::ok();
}

std::byte* World::internal_area(int peer) const {
  return range_->base() + static_cast<std::size_t>(peer) * part_bytes_;
}

Status World::keep_pages(const void* address, std::size_t bytes) {
  const auto at =
      reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(range_->base());
  const std::size_t all = part_bytes_ * static_cast<std::size_t>(size());
  if (at < all && bytes <= all - at) return range_->keep(at, bytes);
  return {Code::kInvalidArgument,
          fmt::format("{} ({} bytes) is in no PE's heap as this process maps it", address, bytes)};
}

std::optional<std::uint64_t> World::allocate_internal(std::uint64_t bytes) {
  MutexLock lock(internal_mutex_);
  return internal_allocator_.allocate(bytes, kFalseSharingRange);
}

void World::free_internal(std::uint64_t offset) {
  MutexLock lock(internal_mutex_);
  internal_allocator_.free(offset);
}

std::uint64_t World::internal_bytes_in_use() {
  MutexLock lock(internal_mutex_);
  return internal_allocator_.bytes_in_use();
}

Status World::end(const char* what, EndKind how) {
  const Board& board = *membership_.board;
  const std::uint32_t generation = waiting_.generation;
  waiting_.self->end_kind.store(how, std::memory_order_relaxed);
  // Pairs with is_gone(). Sequentially consistent: of two that come last one sees both.
  waiting_.self->ended.store(generation, std::memory_order_seq_cst);
  board.header().ending.store(generation, std::memory_order_release);
  int next = 0;  // who has come so far has come for good
  auto all_have_come = [&] {
    while (next < size() && board.peer(next).ended.load(std::memory_order_seq_cst) >= generation)
      ++next;
    return next == size();
  };
  if (all_have_come()) {
    board.ring_all();
    return Status::ok();
  }
  const Status status =
      wait_for(waiting_, WaitsFor::kMeeting, what, Deadline::never(), all_have_come, [&] {
        for (int peer = next; peer < size(); ++peer)
          if (board.peer(peer).death.load(std::memory_order_acquire) != 0 &&
              board.peer(peer).ended.load(std::memory_order_acquire) < generation)
            return peer;
        return -1;
      });
  return status.is_ok() ? status : explain_end(status);
}

Status World::explain_end(const Status& status) const {
  const int is_waited_for = waiting_.self->wait_status.load(std::memory_order_relaxed);
  if (waiting_.self->death.load(std::memory_order_acquire) != 0 &&
      (is_waited_for == kEndedByExit || is_waited_for == kEndedByFinalize))
    return {Code::kUnavailable,
            "another PE waits in a call that needs this one; all have to make the same collective "
            "calls before they end"};
  if (status.code() != Code::kTimeout) return status;
  std::string missing;
  for (int peer = 0; peer < size(); ++peer)
    if (membership_.board->peer(peer).ended.load(std::memory_order_acquire) < waiting_.generation)
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", peer);
  return status.annotate(fmt::format("PE {} did not come", missing));
}

void World::leave() {
  membership_.board->peer(rank()).state.store(PeerState::kLeft, std::memory_order_release);
}

}  // namespace memspan
