// SPDX-License-Identifier: Apache-2.0
#include "fabric/remote_copies.h"

#include <algorithm>

#include "device/host/find_fault.h"

namespace memspan {
namespace {

// The size of a relay's buffer.
constexpr std::uint64_t kRelayBytes = std::uint64_t{1} << 20;

Status check_local(std::byte* begin, std::uint64_t bytes, MemoryAccess access) {
  const auto fault = find_fault(begin, bytes, access);
  return fault ? local_fault(*fault, access == MemoryAccess::kRead) : Status::ok();
}

RemotePlace place_in(const CopyPlace& place, std::uint64_t at = 0) {
  return {place.remote->region, place.offset + at};
}

}  // namespace

Status local_fault(const CopyFault& fault, bool is_source) {
  const char* const name = is_source ? "src" : "dest";
  const auto* const address = reinterpret_cast<const void*>(fault.address);
  return {Code::kInvalidArgument,
          fault.is_forbidden
              ? fmt::format("invalid param, {}: the memory at {} of this process may not be {}",
                            name, address, is_source ? "read" : "written")
              : fmt::format("invalid param, {}: there is no memory at {} of this process", name,
                            address)};
}

// A region is retracted when its owner leaves.
Status RemoteCopies::result_of(const Route& route, const Status& status) {
  const RemoteWindow& window = *route.window;
  if (status.code() == Code::kPeerLost) window.peer->mark_lost();
  if (status.code() == Code::kStale) {
    retracted_ = route.window;
    return {Code::kPeerLost, fmt::format("{} is not in the pool: it has left", window.name)};
  }
  if (status.code() == Code::kNotFound)
    return {Code::kStale, fmt::format("the memory of rank {} at the address that was asked for is "
                                      "gone: its owner has made it smaller; {}",
                                      window.rank, status.message())};
  return status.annotate(window.name);
}

Status RemoteCopies::begin(const CopyPlace& from, const CopyPlace& to, std::uint64_t bytes) {
  if (to.remote == nullptr && !to.is_device)
    return get(route_to(from.remote), from, to.mapped, bytes);
  if (from.remote != nullptr || from.is_device) return relay(from, to, bytes);
  MEMSPAN_PASS(check_local(from.mapped, bytes, MemoryAccess::kRead));
  Route& route = route_to(to.remote);
  return result_of(route,
                   route.link().put(route.until(deadline_), place_in(to), from.mapped, bytes));
}

// Gets are collected, so that many are under way at once. A get that has ended writes no more.
Status RemoteCopies::get(Route& route, const CopyPlace& from, std::byte* to, std::uint64_t bytes) {
  constexpr std::size_t kMostPieces = 1024;
  constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20;
  MEMSPAN_PASS(check_local(to, bytes, MemoryAccess::kWrite));
  route.gets.push_back({to, &route.window->region, from.offset, bytes});
  route.bytes += bytes;
  const bool is_full = route.gets.size() == kMostPieces || route.bytes >= kMostBytes;
  return is_full ? flush_gets(route) : Status::ok();
}

Status RemoteCopies::flush_gets(Route& route) {
  if (route.gets.empty()) return Status::ok();
  const Status status = route.link().move(route.until(deadline_), MoveDirection::kGet, route.gets);
  route.gets.clear();
  route.bytes = 0;
  return result_of(route, status);
}

// Through a buffer here: links move bytes from and to memory of the host only.
Status RemoteCopies::relay(const CopyPlace& from, const CopyPlace& to, std::uint64_t bytes) {
  const std::uint64_t room = std::min(kRelayBytes, bytes);
  const auto buffer = std::make_unique<std::byte[]>(room);
  for (std::uint64_t at = 0; at < bytes; at += room) {
    const std::span<std::byte> part(buffer.get(), std::min(room, bytes - at));
    MEMSPAN_PASS(read(from, at, part));
    MEMSPAN_PASS(write(to, at, part));
  }
  return Status::ok();
}

Status RemoteCopies::read(const CopyPlace& place, std::uint64_t at, std::span<std::byte> into) {
  if (place.remote == nullptr) return device_.copy(into.data(), place.mapped + at, into.size());
  Route& route = route_to(place.remote);
  return result_of(route, route.link().get(route.until(deadline_), into.data(), place_in(place, at),
                                           into.size()));
}

Status RemoteCopies::write(const CopyPlace& place, std::uint64_t at,
                           std::span<const std::byte> from) {
  if (place.remote == nullptr) return device_.copy(place.mapped + at, from.data(), from.size());
  Route& route = route_to(place.remote);
  return result_of(route, route.link().put(route.until(deadline_), place_in(place, at), from.data(),
                                           from.size()));
}

Status RemoteCopies::settle() {
  Status first;
  for (const auto& route : routes_) {
    Status status = flush_gets(*route);
    if (status.is_ok()) status = result_of(*route, route->until(deadline_).quiet());
    if (first.is_ok()) first = std::move(status);
  }
  routes_.clear();
  return first;
}

}  // namespace memspan
