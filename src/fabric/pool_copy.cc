// SPDX-License-Identifier: Apache-2.0
#include "fabric/pool_copy.h"

#include <fmt/format.h>

namespace memspan::inline fabric {
namespace {

// Waits until the range is mapped. Memory outside the pool always is.
Status await_end(Pool& pool, const char* name, const void* pointer, std::uint64_t bytes,
                 const Deadline& deadline) {
  const auto place = find_place(pool, pointer);
  if (!place) return Status::ok();
  MEMSPAN_TRY_ASSIGN(auto given, pool.await(place->rank, place->kind, deadline), name);
  if (place->offset <= given && bytes <= given - place->offset) return Status::ok();
  return {
      Code::kInvalidArgument,
      fmt::format("invalid param, {} {} + {} bytes is not entirely in the {} bytes of {} memory "
                  "that rank {} gave (it begins at byte {} of them)",
                  name, pointer, bytes, given, place->kind == RangeKind::kHost ? "host" : "device",
                  place->rank, place->offset)};
}

bool is_remote(Pool& pool, const void* pointer) {
  const auto place = find_place(pool, pointer);
  return place && pool.is_remote(place->rank);
}

}  // namespace

// Both ends are held as a whole for each part.
Status PoolCopier::copy(const CopyPiece& piece) {
  std::uint64_t done = 0;
  do {
    const std::uint64_t bytes = std::min(kBytesAtOnce, piece.bytes - done);
    if (left_ < bytes) give_a_turn();
    MEMSPAN_PASS_ASSIGN(const auto way, find(piece));
    left_ -= std::min(left_, bytes);
    if (way == Way::kByMessages) [[unlikely]]
      return copy_remote(piece);
    MEMSPAN_PASS(move_here({static_cast<const std::byte*>(piece.from) + done,
                            static_cast<std::byte*>(piece.to) + done, bytes}));
    done += bytes;
  } while (done < piece.bytes);
  return Status::ok();
}

// An end on this host stays held until its bytes arrive. If that end is another rank's memory, the
// copy therefore finishes at once.
Status PoolCopier::copy_remote(const CopyPiece& piece) {
  if (remote_ == nullptr) remote_ = std::make_unique<RemoteCopies>(pool_.device(), *deadline_);
  begun_.push_back(piece);
  Status status = begin(piece);
  const bool may_wait = completion_ == CopyCompletion::kTogether && from_.is_empty() &&
                        to_.is_empty() && begun_.size() < kMostBegun;
  return status.is_ok() && may_wait ? status : settle(std::move(status));
}

// Begins a piece that passed await_end(). A window that cannot be held now was mapped a moment ago.
Status PoolCopier::begin(const CopyPiece& piece) {
  Way way = Way::kByMessages;
  do {
    MEMSPAN_TRY_ASSIGN(auto from, place_of(piece.from), "src");
    MEMSPAN_TRY_ASSIGN(auto to, place_of(piece.to), "dest");
    if ((!from.is_of_peer || from_.find(piece.from, piece.bytes) == HeldWindows::Found::kHeld) &&
        (!to.is_of_peer || to_.find(piece.to, piece.bytes) == HeldWindows::Found::kHeld))
      return from.remote == nullptr && to.remote == nullptr ? move_here(piece)
                                                            : remote_->begin(from, to, piece.bytes);
    MEMSPAN_PASS_ASSIGN(way, find_late(piece));
  } while (way == Way::kByMessages);
  return move_here(piece);
}

// A member that has left may be in the pool again, with other windows. All pieces begun before are
// copied again, because it is unknown which of them were refused.
Status PoolCopier::settle(Status status) {
  status = remote_->settle(std::move(status));
  while (const auto left = remote_->take_retracted()) {
    give_a_turn();
    const Status again = pool_.await_rejoin(left->rank, left->generation, *deadline_);
    if (again.is_ok() && !deadline_->has_passed()) {
      status = copy_again();
    } else if (!again.is_ok() && again.code() != Code::kPeerLost) {
      status = again;
    }
  }
  begun_.clear();
  return status;
}

Status PoolCopier::copy_again() {
  for (const CopyPiece& piece : begun_) {
    MEMSPAN_PASS(await_ends(piece));
    MEMSPAN_PASS(remote_->settle(begin(piece)));
  }
  return Status::ok();
}

// Holds nothing while it asks for a window: the member that answers may wait for a release.
Result<CopyPlace> PoolCopier::place_of(const void* pointer) {
  const auto where = find_place(pool_, pointer);
  const bool is_of_peer = where && where->rank != pool_.rank();
  if (is_of_peer) {
    MEMSPAN_PASS_ASSIGN(auto window, pool_.remote_window(where->rank, where->kind, *deadline_));
    if (window != nullptr) return CopyPlace{.remote = std::move(window), .offset = where->offset};
  }
  return CopyPlace{.mapped = static_cast<std::byte*>(const_cast<void*>(pointer)),
                   .remote = {},
                   .is_device = is_of_device(pointer),
                   .is_of_peer = is_of_peer};
}

bool PoolCopier::is_of_device(const void* pointer) const {
  if (device_ == nullptr) return false;
  const auto place = find_place(pool_, pointer);
  return place ? place->kind == RangeKind::kDevice : device_->owns(pointer);
}

// The driver must not get host addresses without memory.
Status PoolCopier::move_by_device(const CopyPiece& piece) const {
  auto* const from = static_cast<std::byte*>(const_cast<void*>(piece.from));
  auto* const to = static_cast<std::byte*>(piece.to);
  std::optional<CopyFault> fault;
  if (!is_of_device(from)) fault = find_fault(from, piece.bytes, MemoryAccess::kRead);
  if (!fault && !is_of_device(to)) fault = find_fault(to, piece.bytes, MemoryAccess::kWrite);
  return fault ? explain(*fault, piece) : device_->copy(to, from, piece.bytes);
}

Status PoolCopier::move_here(const CopyPiece& piece) {
  if (device_ != nullptr) [[unlikely]]
    return move_by_device(piece);
  const auto copying = [&] { copy_here_(piece.to, piece.from, piece.bytes); };
  const auto fault = run_guarded(copying);
  return fault ? explain(*fault, piece) : Status::ok();
}

Status PoolCopier::explain(const CopyFault& fault, const CopyPiece& piece) const {
  const bool is_source = fault.is_in(piece.from, piece.bytes);
  if (!is_source && !fault.is_in(piece.to, piece.bytes))
    return {Code::kInvalidArgument,
            fmt::format("invalid param, there is no memory at all of src {} or dest {} + {} bytes",
                        piece.from, piece.to, piece.bytes)};
  const auto place = find_place(pool_, is_source ? piece.from : piece.to);
  if (!place) return local_fault(fault, is_source);
  return {Code::kStale,
          fmt::format("{}: the memory of rank {} at {} is gone: its owner has made it smaller",
                      is_source ? "src" : "dest", place->rank,
                      reinterpret_cast<const void*>(fault.address))};
}

// False: find() knows what to do.
bool PoolCopier::hold(const CopyPiece& piece) {
  using Found = HeldWindows::Found;
  if (piece.bytes == 0 || piece.from == nullptr || piece.to == nullptr) return false;
  const Found from = from_.find(piece.from, piece.bytes);
  const Found to = to_.find(piece.to, piece.bytes);
  if (from == Found::kHeld && to == Found::kHeld) [[likely]]
    return true;
  if (from == Found::kLocal) return to == Found::kHeld && ends_.from == CopyEnd::kLocal;
  return to == Found::kLocal && from == Found::kHeld && ends_.to == CopyEnd::kLocal;
}

// Holds both ends, or says what is wrong with them.
Result<PoolCopier::Way> PoolCopier::find(const CopyPiece& piece) {
  if (pool_.is_restricted()) MEMSPAN_PASS(check_reachability(piece));
  if (hold(piece)) return Way::kHere;
  MEMSPAN_PASS(check(piece));
  return find_late(piece);
}

void PoolCopier::give_a_turn() {
  from_.release();
  to_.release();
  left_ = bytes_at_once();
}

// Says what is wrong with the addresses or the size.
Status PoolCopier::check(const CopyPiece& piece) const {
  const auto invalid = [](std::string what) {
    return Status(Code::kInvalidArgument, std::move(what));
  };
  if (piece.from == nullptr) return invalid("invalid param, src is NULL");
  if (piece.to == nullptr) return invalid("invalid param, dest is NULL");
  if (piece.bytes == 0) return invalid("invalid param, size is 0");
  const auto outside = [&](const char* name, const void* pointer) {
    return invalid(fmt::format("invalid param, {} {} is in neither of the pool's address ranges",
                               name, pointer));
  };
  const auto from = find_place(pool_, piece.from), to = find_place(pool_, piece.to);
  if (!from && ends_.from == CopyEnd::kPool) return outside("src", piece.from);
  if (!to && ends_.to == CopyEnd::kPool) return outside("dest", piece.to);
  if (from || to) return Status::ok();
  return invalid("invalid param, neither src nor dest is in one of the pool's address ranges");
}

// Waits until both ends can be reached. Holds nothing in the wait: a pool may wait for a release.
Status PoolCopier::await_ends(const CopyPiece& piece) {
  if (!deadline_) deadline_ = Deadline::after(limit_);
  give_a_turn();
  MEMSPAN_PASS(await_end(pool_, "src", piece.from, piece.bytes, *deadline_));
  return await_end(pool_, "dest", piece.to, piece.bytes, *deadline_);
}

Status PoolCopier::check_reachability(const CopyPiece& piece) {
  MEMSPAN_PASS(check(piece));
  give_a_turn();
  const PoolPlace here{.rank = pool_.rank()};
  const std::uint32_t from = find_place(pool_, piece.from).value_or(here).rank;
  const std::uint32_t to = find_place(pool_, piece.to).value_or(here).rank;
  if (pool_.check_reachability(from, to).is_ok()) return Status::ok();
  // The tag of a member that has just joined comes with the news of it.
  MEMSPAN_PASS(await_ends(piece));
  return pool_.check_reachability(from, to);
}

// The rare cases: a mistake, or a member whose memory cannot be reached yet.
Result<PoolCopier::Way> PoolCopier::find_late(const CopyPiece& piece) {
  do {
    MEMSPAN_PASS(await_ends(piece));
    if (pool_.is_spread() && (is_remote(pool_, piece.from) || is_remote(pool_, piece.to)))
      return Way::kByMessages;
    if (from_.find(piece.from, piece.bytes) != HeldWindows::Found::kNot &&
        to_.find(piece.to, piece.bytes) != HeldWindows::Found::kNot)
      return Way::kHere;
  } while (!deadline_->has_passed());
  return Status(Code::kTimeout, "a member came and went all the time");
}

std::optional<PoolPlace> find_place(Pool& pool, const void* pointer) {
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  for (const RangeKind kind : kRangeKinds) {
    const RankWindows& windows = pool.windows(kind);
    const std::uint64_t offset = address - reinterpret_cast<std::uint64_t>(windows.begin_of(0));
    if (offset < windows.bytes())
      return PoolPlace{kind, static_cast<std::uint32_t>(offset / windows.stride()),
                       offset % windows.stride()};
  }
  return std::nullopt;
}

void HeldWindows::release(Held& held) {
  if (held.mapped == 0) return;
  pool_.release(*held.windows, held.rank);
  held.mapped = 0;
}

void HeldWindows::release() {
  for (Held& held : held_) release(held);
}

HeldWindows::Found HeldWindows::look(const void* pointer, std::uint64_t bytes) {
  const auto place = find_place(pool_, pointer);
  if (!place) return Found::kLocal;
  RankWindows& windows = pool_.windows(place->kind);
  Held& held = held_[(2 * place->rank + static_cast<std::uint32_t>(place->kind)) % held_.size()];
  if (held.mapped == 0 || held.windows != &windows || held.rank != place->rank) {
    release(held);
    const std::uint64_t mapped = pool_.hold(windows, place->rank);
    if (mapped == 0) return Found::kNot;
    held.begin = reinterpret_cast<std::uint64_t>(windows.begin_of(place->rank));
    held.mapped = mapped;
    held.windows = &windows;
    held.rank = place->rank;
    held.admission = windows.admission(place->rank);
  } else if (!held.admission.is_valid()) {
    return Found::kNot;
  }
  last_ = &held;
  return held.contains(reinterpret_cast<std::uint64_t>(pointer), bytes) ? Found::kHeld
                                                                        : Found::kNot;
}

}  // namespace memspan::inline fabric
