// SPDX-License-Identifier: Apache-2.0
// What the transport `message` of this process has counted: frames, refusals, connections.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "transport/message/message_core.h"
#include "transport/message/message_transport.h"

namespace memspan {

// nullopt for an unknown name.
inline std::optional<std::uint64_t> message_counter(const MessageTransport& transport,
                                                    std::string_view name) {
  const MessageCore& core = transport.core();
  const OwnerCounters& counted = core.services.counters;
  const auto refused = [&](Refusal refusal) {
    return &counted.refused[static_cast<std::size_t>(refusal)];
  };
  if (name == "native registrations")
    return core.services.native == nullptr ? 0 : core.services.native->registrations();
  const std::pair<std::string_view, const std::atomic<std::uint64_t>*> counters[] = {
      {"puts applied", &counted.puts},
      {"gets answered", &counted.gets},
      {"messages received", &counted.messages},
      {"bytes of messages", &counted.message_bytes},
      {"refused: no such region", refused(Refusal::kRegion)},
      {"refused: stale region", refused(Refusal::kGeneration)},
      {"refused: out of bounds", refused(Refusal::kBounds)},
      {"refused: not a word", refused(Refusal::kWord)},
      {"refused: not admitted", refused(Refusal::kHello)},
      {"connections made", &core.connections_made},
      {"connections with bad frames", &counted.broken},
      {"native puts", &core.native_puts},
      {"native gets", &core.native_gets},
      {"native keys given", &counted.native_keys}};
  for (const auto& [known, counter] : counters)
    if (known == name) return counter->load(std::memory_order_relaxed);
  return std::nullopt;
}

}  // namespace memspan
