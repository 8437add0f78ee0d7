// SPDX-License-Identifier: Apache-2.0
// Copies with an end on another host. The kinds of the two ends decide the way; their owners do not
// matter.
//
//   from \ to │ mapped here │ of a device here  │ on another host
//   ──────────┼─────────────┼───────────────────┼──────────────────
//   mapped    │ copy        │ copy              │ put
//   device    │ copy        │ copy              │ by a buffer here
//   remote    │ get         │ by a buffer here  │ by a buffer here
#pragma once

#include <algorithm>
#include <list>
#include <span>

#include "device/host/guarded_copy.h"
#include "fabric/pool.h"

namespace memspan {

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

// Copies with a remote end. One thread at a time.
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

}  // namespace memspan
