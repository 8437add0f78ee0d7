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

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "device/host/guarded_copy.h"
#include "fabric/remote_access.h"

namespace memspan {

// Memory of a member on another host. Shared by the copies that use it.
struct RemoteWindow {
  std::shared_ptr<RemotePeer> peer;
  RemoteRegion region;
  std::uint32_t rank = 0;
  std::uint64_t generation = 0;  // of the rank's join
  std::string name;              // "rank 3, process 12 on host b"
};

// One end of a copy. A value.
struct CopyPlace {
  std::byte* mapped = nullptr;                 // can be loaded and stored here
  std::shared_ptr<const RemoteWindow> remote;  // else
  std::uint64_t offset = 0;                    // in the remote window
  bool is_device = false;                      // `mapped` is for the device's copies only
};

// The failure of a copy whose local source, or destination, has no memory or may not be used.
Status local_fault(const CopyFault& fault, bool is_source);

// Copies with a remote end. One thread at a time.
class RemoteCopies {
 public:
  // All waits for peers end at the deadline. The device is that of the places.
  RemoteCopies(Device& device, const Deadline& deadline) : device_(device), deadline_(deadline) {}
  RemoteCopies(const RemoteCopies&) = delete;
  RemoteCopies& operator=(const RemoteCopies&) = delete;
  // Afterwards no copy touches local memory.
  ~RemoteCopies() { static_cast<void>(settle()); }

  // Begins a copy. The caller may change a local source afterwards; a local destination is written
  // by settle() at the latest. kInvalidArgument: a local end has no memory. kPeerLost names the
  // rank that is gone or has left, kStale the rank whose memory is gone. Marks a peer lost if its
  // link has ended.
  Status begin(const CopyPlace& from, const CopyPlace& to, std::uint64_t bytes);
  // Waits until all copies are done and returns their first failure.
  Status settle();
  // A window whose owner left after it gave the window, if a copy found one since the last call.
  // The owner may have joined again.
  std::shared_ptr<const RemoteWindow> take_retracted() { return std::exchange(retracted_, {}); }

 private:
  // The copies under way with one window's owner.
  struct Route {
    std::shared_ptr<const RemoteWindow> window;
    std::unique_ptr<OperationContext> context;
    std::vector<MovePiece> gets;  // not asked for yet
    std::uint64_t bytes = 0;      // of those
    Link& link() const { return window->peer->link(); }
    // For one call of the link.
    OperationContext& until(const Deadline& deadline) const {
      context->set_limit(deadline.remaining());
      return *context;
    }
  };
  Route& route_to(const std::shared_ptr<const RemoteWindow>& window) {
    for (const auto& route : routes_)
      if (route->window == window) return *route;
    return *routes_.emplace_back(
        std::make_unique<Route>(Route{window, std::make_unique<OperationContext>(), {}}));
  }
  Status get(Route& route, const CopyPlace& from, std::byte* to, std::uint64_t bytes);
  Status flush_gets(Route& route);
  Status relay(const CopyPlace& from, const CopyPlace& to, std::uint64_t bytes);
  Status read(const CopyPlace& place, std::uint64_t at, std::span<std::byte> into);
  Status write(const CopyPlace& place, std::uint64_t at, std::span<const std::byte> from);
  // Adds the owner's name to a link's status. Notes windows and links that are no longer usable.
  Status result_of(const Route& route, const Status& status);

  Device& device_;
  const Deadline deadline_;
  std::vector<std::unique_ptr<Route>> routes_;
  std::shared_ptr<const RemoteWindow> retracted_;
};

}  // namespace memspan
