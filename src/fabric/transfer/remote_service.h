// SPDX-License-Identifier: Apache-2.0
// The requests of endpoints on other hosts and an endpoint's answers, under the name
// EndpointRecord::published_name().
//
//   resolve   pieces by address ──► the regions that contain them, up to the first without a region
//   notify    a message for its notification queue, and something to add to a counter
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "fabric/transfer/pieces.h"
#include "transport/link.h"

namespace memspan::transfer {

// The action at the peer once all pieces have arrived. A value.
struct CompletionAction {
  std::optional<std::string> message;
  std::optional<std::uint32_t> counter;
  std::uint64_t value = 0;  // to add to it
};

// A region of an endpoint, and the address of its first byte there. A value.
struct RegionExtent {
  std::uint64_t base = 0;
  RemoteRegion region;
};

// A value.
struct ResolveAnswer {
  std::vector<RegionExtent> extents;  // each once
  std::string refusal;                // what is registered near the first piece without a region
};

struct Notify {
  std::string sender;
  CompletionAction action;
};

// At most one of the two is set. A value.
struct EndpointRequest {
  std::vector<Piece> resolve;  // `local` is not sent
  std::optional<Notify> notify;
};

std::string encode(const EndpointRequest& request);
Result<EndpointRequest> decode_endpoint_request(std::string_view bytes);
std::string encode(const ResolveAnswer& answer);
Result<ResolveAnswer> decode_resolve_answer(std::string_view bytes);

}  // namespace memspan::transfer
