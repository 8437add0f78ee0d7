// SPDX-License-Identifier: Apache-2.0
// The path to one peer's memory without the peer's processor, for large puts and gets of a link by
// messages, in builds with MEMSPAN_NATIVE_RMA (docs/design/0014-native-rma.md). At the first use of
// a window it asks the owner for the key, and it keeps what the key opens.
//
// A put is complete when its call returns, and earlier posts are applied before it begins. So a
// link keeps its order on either path.
#pragma once

#include <tuple>

#include "transport/link.h"
#include "transport/message/carrier.h"
#include "transport/message/requester.h"

namespace memspan {

// The smallest native size; gets from open, mapped windows are native at any size. A native put
// waits about 2 us for the network's acknowledgment; frames of smaller puts do not wait. At 200
// Gbit/s this many bytes take 2.6 us.
inline constexpr std::size_t kNativeFrom = std::size_t{64} << 10;

// Thread-safe.
class NativePath {
 public:
  // `access` null: no native operations.
  NativePath(Requester& requester, NativeAccess* access) : requester_(requester), access_(access) {}

  // Returns how many bytes, from the first one, were moved; messages move the rest. kTimeout,
  // kPeerLost and interrupts as in Link.
  Result<std::size_t> move(const OperationContext& context, MoveDirection direction,
                           std::byte* local, const RemotePlace& place, std::size_t bytes);

 private:
  using Window = std::shared_ptr<NativeMemory>;  // shared by the table and calls
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;  // RegionId, window

  static Key key_of(const RemoteRegion& region, std::uint64_t offset) {
    return {region.id.number, region.id.generation, offset / kNativeWindow};
  }
  Status lost() {
    const Turn turn(requester_.engine);
    return requester_.lost();
  }
  bool is_on(const RemoteRegion& region) const;
  bool is_mapped(const RemotePlace& place, std::size_t bytes);
  // Null: use messages.
  Result<Window> window(const RemoteRegion& region, std::uint64_t begin, const Deadline& deadline);
  Result<Window> ask(const RemoteRegion& region, std::uint64_t begin, const Deadline& deadline);

  Requester& requester_;
  NativeAccess* const access_;
  // The peer has no native path, or it has failed.
  std::atomic<bool> is_off_{false};
  Mutex mutex_;
  std::map<Key, Window> windows_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan
