// SPDX-License-Identifier: Apache-2.0
// State that the links and connections of one transport `message` share.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "core/mutex.h"
#include "core/siphash.h"
#include "transport/message/message_transport.h"
#include "transport/message/owner_side.h"
#include "transport/message/progress.h"
#include "transport/message/region_table.h"

namespace memspan {

// Thread-safe. Outlives all its users.
struct MessageCore {
  MessageCore(MessageOptions given, const SipKey& own_secret)
      : options(std::move(given)), secret(own_secret) {}

  MessageOptions options;
  const SipKey secret;  // of this process as an owner
  RegionTable regions;
  OwnerCounters counters;
  std::atomic<std::uint64_t> connections_made{0};
  std::atomic<std::uint64_t> peers_lost{0};
  std::atomic<std::uint64_t> native_puts{0};
  std::atomic<std::uint64_t> native_gets{0};
  std::atomic<std::uint64_t> native_keys{0};  // given to peers
  std::atomic<bool> ends{false};  // the transport is being destroyed: report no more losses
  std::unique_ptr<Progress> progress;

  // Peers that are no longer admitted. The set only grows: a number belongs to one peer forever.
  void exclude(int peer) MEMSPAN_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    excluded.insert(peer);
  }
  bool is_excluded(int peer) MEMSPAN_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    return excluded.contains(peer);
  }

  Mutex mutex;
  std::set<int> excluded MEMSPAN_GUARDED_BY(mutex);

  // Reports "PE 3 on host b: why" to the handler, unless the transport ends.
  void tell_lost(int peer, const Status& why) {
    if (ends.load(std::memory_order_acquire)) return;
    peers_lost.fetch_add(1, std::memory_order_relaxed);
    if (options.handlers.on_peer_lost) options.handlers.on_peer_lost(peer, why);
  }
  void tell_left(int peer) {
    if (ends.load(std::memory_order_acquire)) return;
    if (options.handlers.on_peer_left) options.handlers.on_peer_left(peer);
  }
};

}  // namespace memspan
