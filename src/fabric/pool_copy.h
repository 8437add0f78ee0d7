// SPDX-License-Identifier: Apache-2.0
// Copies from and to the addresses of a pool. The address of an end decides its kind. Memory mapped
// here is plain memory, so one copy serves any two ranks of this host. An end on another host makes
// the copy one of links (RemoteCopies).
#pragma once

#include <algorithm>
#include <list>
#include <span>

#include "device/host/copy.h"
#include "device/host/guarded_copy.h"
#include "fabric/pool.h"

namespace memspan::inline fabric {

// The place of an address in a pool.
struct PoolPlace {
  RangeKind kind = RangeKind::kHost;
  std::uint32_t rank = 0;
  std::uint64_t offset = 0;  // in the rank's window
};
// Empty when the address is outside the pool.
std::optional<PoolPlace> find_place(Pool& pool, const void* pointer);

// The windows that one end of a row of copies needs. They are held from their first use on, because
// holding a window for each piece would cost more than a small piece.
class HeldWindows : NotCopyable {
 public:
  explicit HeldWindows(Pool& pool) : pool_(pool) {}
  ~HeldWindows() { release(); }

  enum class Found {
    kLocal,  // outside the pool
    kHeld,   // in an address range of the pool, mapped, and stays so until release()
    kNot,    // in an address range of the pool, but not entirely mapped, or the rank does not admit
             // this process
  };
  Found find(const void* pointer, std::uint64_t bytes) {
    return last_->contains(reinterpret_cast<std::uint64_t>(pointer), bytes) &&
                   last_->admission.is_valid()
               ? Found::kHeld
               : look(pointer, bytes);
  }
  void release();
  bool is_empty() const {
    return std::all_of(held_.begin(), held_.end(),
                       [](const Held& held) { return held.mapped == 0; });
  }

 private:
  struct Held {
    Held() {}  // NOLINT: clearing what an empty one does not use is a part of a small copy's time
    std::uint64_t begin = 0;
    std::uint64_t mapped = 0;  // 0: it is empty
    RankWindows* windows;
    std::uint32_t rank;
    Admission admission;

    bool contains(std::uint64_t address, std::uint64_t bytes) const {
      const std::uint64_t offset = address - begin;
      return offset < mapped && bytes <= mapped - offset;
    }
  };
  Found look(const void* pointer, std::uint64_t bytes);
  void release(Held& held);

  Pool& pool_;
  std::array<Held, 4> held_;  // each at the place that its rank gives it
  Held* last_ = held_.data();
};

// The caller's statement about an end; a local end may also be in the pool.
enum class CopyEnd { kLocal, kPool };
struct CopyEnds {
  CopyEnd from = CopyEnd::kLocal;
  CopyEnd to = CopyEnd::kLocal;
};

// When the copier waits for a copy with an end on another host: at once, so that a failure belongs
// to that piece, or for all together.
enum class CopyCompletion { kEach, kTogether };

// A value; borrows both ends.
struct CopyPiece {
  const void* from = nullptr;
  void* to = nullptr;
  std::uint64_t bytes = 0;
};

// One end of a copy. A value.
struct CopyPlace {
  std::byte* mapped = nullptr;                 // can be loaded and stored here
  std::shared_ptr<const RemoteWindow> remote;  // else
  std::uint64_t offset = 0;                    // in the remote window
  bool is_device = false;                      // `mapped` is for the device's copies only
  bool is_of_peer = false;                     // `mapped` is another rank's memory

  RemotePlace at(std::uint64_t byte) const { return {remote->region, offset + byte}; }
};

// The failure of a copy whose local source, or destination, has no memory or may not be used.
inline Status local_fault(const CopyFault& fault, bool is_source) {
  const char* const name = is_source ? "src" : "dest";
  const auto* const address = reinterpret_cast<const void*>(fault.address);
  return {Code::kInvalidArgument,
          fault.is_forbidden
              ? fmt::format("invalid param, {}: the memory at {} of this process may not be {}",
                            name, address, is_source ? "read" : "written")
              : fmt::format("invalid param, {}: there is no memory at {} of this process", name,
                            address)};
}

// Copies with an end on another host. The kinds of the two ends decide the way; their owners do not
// matter.
//
//   from \ to │ mapped here │ of a device here  │ on another host
//   ──────────┼─────────────┼───────────────────┼──────────────────
//   mapped    │ copy        │ copy              │ put
//   device    │ copy        │ copy              │ by a buffer here
//   remote    │ get         │ by a buffer here  │ by a buffer here
//
// One thread at a time.
class RemoteCopies {
 public:
  // All waits for peers end at the deadline. The device is that of the places.
  RemoteCopies(Device& device, const Deadline& deadline) : device_(device), deadline_(deadline) {}
  // Afterwards no copy touches local memory.
  ~RemoteCopies() { static_cast<void>(settle()); }

  // Begins a copy. The caller may change a local source afterwards; a local destination is written
  // by settle() at the latest. kInvalidArgument: a local end has no memory. kPeerLost names the
  // rank that is gone or has left, kStale the rank whose memory is gone. Marks a peer lost if its
  // link has ended.
  Status begin(const CopyPlace& from, const CopyPlace& to, std::uint64_t bytes) {
    if (to.remote == nullptr && !to.is_device)
      return get(route_to(from.remote), from, to.mapped, bytes);
    if (from.remote != nullptr || from.is_device) return relay(from, to, bytes);
    MEMSPAN_PASS(check_local(from.mapped, bytes, MemoryAccess::kRead));
    return write(to, 0, {from.mapped, bytes});
  }
  // Waits until all copies are done. Returns their first failure if `first` is ok.
  Status settle(Status first = {}) {
    for (Route& route : routes_) {
      Status status = flush_gets(route);
      if (status.is_ok()) status = result_of(route, route.until(deadline_).quiet());
      if (first.is_ok()) first = std::move(status);
    }
    routes_.clear();
    return first;
  }
  // A window whose owner left after it gave the window, if a copy found one since the last call.
  // The owner may have joined again.
  std::shared_ptr<const RemoteWindow> take_retracted() { return std::exchange(retracted_, {}); }

 private:
  // The copies under way with one window's owner.
  struct Route {
    explicit Route(std::shared_ptr<const RemoteWindow> to) : window(std::move(to)) {}
    const std::shared_ptr<const RemoteWindow> window;
    OperationContext context = {};
    std::vector<MovePiece> gets;  // not asked for yet
    std::uint64_t bytes = 0;      // of those
    Link& link() const { return window->peer->link(); }
    // For one call of the link.
    OperationContext& until(const Deadline& deadline) {
      context.set_limit(deadline.remaining());
      return context;
    }
  };
  static Status check_local(std::byte* begin, std::uint64_t bytes, MemoryAccess access) {
    const auto fault = find_fault(begin, bytes, access);
    return fault ? local_fault(*fault, access == MemoryAccess::kRead) : Status::ok();
  }
  Route& route_to(const std::shared_ptr<const RemoteWindow>& window) {
    for (Route& route : routes_)
      if (route.window == window) return route;
    return routes_.emplace_back(window);
  }
  // Gets are collected, so that many are under way at once. A get that has ended writes no more.
  Status get(Route& route, const CopyPlace& from, std::byte* to, std::uint64_t bytes) {
    constexpr std::size_t kMostPieces = 1024;
    constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20;
    MEMSPAN_PASS(check_local(to, bytes, MemoryAccess::kWrite));
    route.gets.push_back({to, &route.window->region, from.offset, bytes});
    route.bytes += bytes;
    const bool is_full = route.gets.size() == kMostPieces || route.bytes >= kMostBytes;
    return is_full ? flush_gets(route) : Status::ok();
  }
  Status flush_gets(Route& route) {
    if (route.gets.empty()) return Status::ok();
    const Status status =
        route.link().move(route.until(deadline_), MoveDirection::kGet, route.gets);
    route.gets.clear();
    route.bytes = 0;
    return result_of(route, status);
  }
  // Through a buffer here: links move bytes from and to memory of the host only.
  Status relay(const CopyPlace& from, const CopyPlace& to, std::uint64_t bytes) {
    constexpr std::uint64_t kMostRoom = std::uint64_t{1} << 20;
    const std::uint64_t room = std::min(kMostRoom, bytes);
    const auto buffer = std::make_unique<std::byte[]>(room);
    for (std::uint64_t at = 0; at < bytes; at += room) {
      const std::span<std::byte> part(buffer.get(), std::min(room, bytes - at));
      MEMSPAN_PASS(read(from, at, part));
      MEMSPAN_PASS(write(to, at, part));
    }
    return Status::ok();
  }
  Status read(const CopyPlace& place, std::uint64_t at, std::span<std::byte> into) {
    if (place.remote == nullptr) return device_.copy(into.data(), place.mapped + at, into.size());
    Route& route = route_to(place.remote);
    return result_of(
        route, route.link().get(route.until(deadline_), into.data(), place.at(at), into.size()));
  }
  Status write(const CopyPlace& place, std::uint64_t at, std::span<const std::byte> from) {
    if (place.remote == nullptr) return device_.copy(place.mapped + at, from.data(), from.size());
    Route& route = route_to(place.remote);
    return result_of(
        route, route.link().put(route.until(deadline_), place.at(at), from.data(), from.size()));
  }
  // Adds the owner's name to a link's status. Notes windows and links that are no longer usable.
  // A region is retracted when its owner leaves.
  Status result_of(const Route& route, const Status& status) {
    const RemoteWindow& window = *route.window;
    if (status.code() == Code::kPeerLost) window.peer->mark_lost();
    if (status.code() == Code::kStale) {
      retracted_ = route.window;
      return {Code::kPeerLost, fmt::format("{} is not in the pool: it has left", window.name)};
    }
    if (status.code() == Code::kNotFound)
      return {Code::kStale,
              fmt::format("the memory of rank {} at the address that was asked for is "
                          "gone: its owner has made it smaller; {}",
                          window.rank, status.message())};
    return status.annotate(window.name);
  }

  Device& device_;
  const Deadline deadline_;
  std::list<Route> routes_;
  std::shared_ptr<const RemoteWindow> retracted_;
};

// Does one copy after the other. One thread at a time. The pool must outlive it, and unmaps nothing
// that it uses.
class PoolCopier : NotCopyable {
 public:
  // `limit`: how long all pieces together may wait for members. `bytes`: of all the pieces
  // together.
  PoolCopier(Pool& pool, const CopyEnds& ends, Duration limit, std::uint64_t bytes,
             CopyCompletion completion = CopyCompletion::kTogether)
      : pool_(pool),
        ends_(ends),
        limit_(limit),
        completion_(completion),
        device_(pool.other_device()),
        copy_here_(device_ == nullptr ? bytes : 0, MeasuredCopy::Shape::kPieces),
        left_(bytes_at_once()),
        from_(pool),
        to_(pool) {}

  // When it returns ok, this thread sees the bytes; other threads see them when the copier has
  // ended. A piece with an end on another host is complete when finish() returned ok.
  // kInvalidArgument: an end is null, outside the pool but given as inside, not entirely in its
  // rank's memory, or local without memory, or both are local. kStale: a rank's memory is gone.
  // Other failures are those of Pool::await() and Pool::check_reachability().
  Status copy(const CopyPiece& piece);
  // Waits for the copies with other hosts and returns their first failure. Pieces that a member
  // refused because it had left begin again when it has joined again.
  Status finish() { return remote_ == nullptr ? Status::ok() : settle(Status::ok()); }
  // Copies the pieces piece_at(next) to piece_at(count - 1). If it fails, `next` is the failed
  // piece, and those before it were copied.
  template <typename PieceAt>
  Status copy_row(std::size_t& next, std::size_t count, const PieceAt& piece_at) {
    while (next < count) {
      MEMSPAN_PASS(copy_held(next, count, piece_at));
      if (next == count) break;
      MEMSPAN_PASS(copy(piece_at(next)));
      ++next;
    }
    return Status::ok();
  }

 private:
  // Copies those of a row whose ends are held, or can be without a wait, under one guard.
  template <typename PieceAt>
  Status copy_held(std::size_t& next, std::size_t count, const PieceAt& piece_at) {
    volatile std::size_t done = next;  // read after a fault
    const auto row = [&] {
      for (std::size_t i = done; i < count; ++i) {
        if (i + kAhead < count) prefetch(piece_at(i + kAhead));
        const CopyPiece piece = piece_at(i);
        if (!may_begin(piece)) return;
        copy_here_(piece.to, piece.from, piece.bytes);
        done = i + 1;
      }
    };
    const auto fault = run_guarded(row);
    next = done;
    return fault ? explain(*fault, piece_at(next)) : Status::ok();
  }

  // How many pieces ahead the copier prefetches.
  static constexpr std::size_t kAhead = 4;
  // After so many bytes, the copier releases its windows, so that those of absent ranks are
  // unmapped.
  static constexpr std::uint64_t kBytesAtOnce = std::uint64_t{16} << 20;

  // With a device no row of pieces is copied by the processor.
  std::uint64_t bytes_at_once() const { return device_ == nullptr ? kBytesAtOnce : 0; }
  void prefetch(const CopyPiece& piece) const {
    prefetch_copy(copy_here_.is_past_caches() ? nullptr : piece.to, piece.from, piece.bytes);
  }
  // Holds both ends of a piece and counts its bytes. False: use copy(), if only to learn why the
  // piece is invalid.
  bool may_begin(const CopyPiece& piece) {
    if (left_ < piece.bytes || pool_.is_restricted() || !hold(piece)) return false;
    left_ -= piece.bytes;
    return true;
  }
  bool hold(const CopyPiece& piece);
  enum class Way { kHere, kByMessages };  // the latter with an end on another host
  Result<Way> find(const CopyPiece& piece);
  Status move_here(const CopyPiece& piece);
  [[gnu::cold]] Status move_by_device(const CopyPiece& piece) const;
  bool is_of_device(const void* pointer) const;
  Status explain(const CopyFault& fault, const CopyPiece& piece) const;
  Status check(const CopyPiece& piece) const;
  void give_a_turn();
  Status await_ends(const CopyPiece& piece);
  Status check_reachability(const CopyPiece& piece);
  Result<Way> find_late(const CopyPiece& piece);
  [[gnu::cold]] Status copy_remote(const CopyPiece& piece);
  Status begin(const CopyPiece& piece);
  Status settle(Status status);
  Status copy_again();
  Result<CopyPlace> place_of(const void* pointer);

  // The most that are under way at once.
  static constexpr std::size_t kMostBegun = 4096;

  Pool& pool_;
  const CopyEnds ends_;
  const Duration limit_;
  const CopyCompletion completion_;
  Device* const device_;  // whose memory is not the host's; null: all memory here is the host's
  MeasuredCopy copy_here_;
  std::optional<Deadline> deadline_ = {};  // once a piece had to wait
  std::uint64_t left_;
  HeldWindows from_;
  HeldWindows to_;
  std::vector<CopyPiece> begun_;  // the pieces with an end on another host that are not settled
  std::unique_ptr<RemoteCopies> remote_;  // once there was such a piece; ends before what is held
};

}  // namespace memspan::inline fabric
