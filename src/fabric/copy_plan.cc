// SPDX-License-Identifier: Apache-2.0
#include "fabric/copy_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "device/host/guarded_copy.h"

namespace memspan {
namespace {

// The size of a relay's buffer.
constexpr std::uint64_t kRelayBytes = std::uint64_t{1} << 20;

Status check_local(std::byte* begin, std::uint64_t bytes, MemoryAccess access) {
  const auto fault = find_fault(begin, bytes, access);
  if (!fault) return Status::ok();
  const char* const name = access == MemoryAccess::kRead ? "src" : "dest";
  const auto* const address = reinterpret_cast<const void*>(fault->address);
  return {Code::kInvalidArgument,
          fault->is_forbidden
              ? fmt::format("invalid param, {}: the memory at {} of this process may not be {}",
                            name, address, access == MemoryAccess::kRead ? "read" : "written")
              : fmt::format("invalid param, {}: there is no memory at {} of this process", name,
                            address)};
}

RemotePlace place_in(const CopyPlace& place, std::uint64_t at = 0) {
  return {place.remote->region, place.offset + at};
}

}  // namespace

CopyPlan plan_copy(CopyPlace from, CopyPlace to, std::uint64_t bytes) {
  using Step = CopyPlan::Step;
  const bool is_from_here = from.remote == nullptr, is_to_here = to.remote == nullptr;
  Step step = Step::kRelay;
  if (is_from_here && is_to_here)
    step = Step::kCopy;
  else if (is_from_here && !from.is_device)
    step = Step::kPut;
  else if (is_to_here && !to.is_device)
    step = Step::kGet;
  return {step, std::move(from), std::move(to), bytes};
}

RemoteCopies::Route& RemoteCopies::route_to(const std::shared_ptr<const RemoteWindow>& window) {
  for (const auto& route : routes_)
    if (route->window == window) return *route;
  return *routes_.emplace_back(
      std::make_unique<Route>(Route{window, std::make_unique<OperationContext>(), {}}));
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

Status RemoteCopies::begin(const CopyPlan& plan) {
  switch (plan.step) {
    case CopyPlan::Step::kPut:
      return put(route_to(plan.to.remote), plan);
    case CopyPlan::Step::kGet:
      return get(route_to(plan.from.remote), plan);
    case CopyPlan::Step::kRelay:
      return relay(plan);
    case CopyPlan::Step::kCopy:
      break;
  }
  return {Code::kInternal, "both ends of the copy are in this process"};
}

Status RemoteCopies::put(Route& route, const CopyPlan& plan) {
  MEMSPAN_PASS(check_local(plan.from.mapped, plan.bytes, MemoryAccess::kRead));
  return result_of(route, route.link().put(route.until(deadline_), place_in(plan.to),
                                           plan.from.mapped, plan.bytes));
}

// Gets are collected, so that many are under way at once. A get that has ended writes no more.
Status RemoteCopies::get(Route& route, const CopyPlan& plan) {
  constexpr std::size_t kMostPieces = 1024;
  constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20;
  MEMSPAN_PASS(check_local(plan.to.mapped, plan.bytes, MemoryAccess::kWrite));
  route.gets.push_back({plan.to.mapped, &route.window->region, plan.from.offset, plan.bytes});
  route.bytes += plan.bytes;
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
Status RemoteCopies::relay(const CopyPlan& plan) {
  const std::uint64_t room = std::min(kRelayBytes, plan.bytes);
  const auto buffer = std::make_unique<std::byte[]>(room);
  for (std::uint64_t at = 0; at < plan.bytes; at += room) {
    const std::uint64_t bytes = std::min(room, plan.bytes - at);
    MEMSPAN_PASS(read(plan.from, at, {buffer.get(), bytes}));
    MEMSPAN_PASS(write(plan.to, at, {buffer.get(), bytes}));
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
