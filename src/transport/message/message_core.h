// SPDX-License-Identifier: Apache-2.0
// State that the links and connections of one transport `message` share.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "core/siphash.h"
#include "transport/message/deliveries.h"
#include "transport/message/engine.h"
#include "transport/message/message_transport.h"
#include "transport/message/owner_side.h"
#include "transport/message/region_table.h"
#include "transport/message/session.h"

namespace memspan {

class Doorway;
class Requester;

// Thread-safe. Outlives all its users.
struct MessageCore {
  MessageCore(MessageOptions given, const SipKey& own_secret)
      : options(std::move(given)), secret(own_secret) {}

  MessageOptions options;
  const SipKey secret;  // of this process as an owner
  RegionTable regions;
  OwnerCounters counters;
  OwnerServices services{regions, counters};
  NonceLog nonces;
  std::atomic<std::uint64_t> connections_made{0};
  std::atomic<std::uint64_t> peers_lost{0};
  std::atomic<std::uint64_t> native_puts{0};
  std::atomic<std::uint64_t> native_gets{0};
  std::atomic<std::uint64_t> native_keys{0};  // given to peers
  std::atomic<bool> ends{false};  // the transport is being destroyed: report no more losses
  std::unique_ptr<Engine> engine;
  Deliveries deliveries{options.handlers};

  // The rest requires the turn.
  Doorway* doorway = nullptr;                 // has all connections
  std::multimap<int, Requester*> requesters;  // that have a link, by number
  // Peers that are no longer admitted. The set only grows: a number belongs to one peer forever.
  std::set<int> excluded;

  void forget_requester(int number, const Requester* one) {
    auto [found, end] = requesters.equal_range(number);
    while (found != end && found->second != one) ++found;
    if (found != end) requesters.erase(found);
  }
  // Reports "PE 3 on host b: why" to the handler, unless the transport ends.
  void tell_lost(int peer, const Status& why) {
    if (ends.load(std::memory_order_acquire)) return;
    peers_lost.fetch_add(1, std::memory_order_relaxed);
    deliveries.add_loss(peer, why);
    run_handlers_soon();
  }
  void tell_left(int peer) {
    if (ends.load(std::memory_order_acquire)) return;
    deliveries.add_departure(peer);
    run_handlers_soon();
  }
  void run_handlers_soon() {
    engine->assert_turn();
    engine->request_after_turn();
  }
};

}  // namespace memspan
