// SPDX-License-Identifier: Apache-2.0
// The requests of endpoints on other hosts and an endpoint's answers, under the name
// EndpointRecord::published_name().
//
//   resolve   pieces by address ──► the regions that contain them, up to the first without a region
//   notify    a message for its notification queue, and something to add to a counter
#pragma once

#include "fabric/transfer/pieces.h"
#include "store/fields.h"

namespace memspan::transfer {

// The action at the peer once all pieces have arrived. A value.
struct CompletionAction {
  bool has_message = false;
  std::string message = {};
  bool has_counter = false;
  std::uint32_t counter = 0;
  std::uint64_t value = 0;  // to add to it
};

// A value.
struct ResolveAnswer {
  // Each region once: the address of its first byte, and RemoteRegion::encode().
  std::vector<std::pair<std::uint64_t, std::string>> extents = {};
  std::string refusal = {};  // what is registered near the first piece without a region
  static void fields(auto& codec, auto& self) { codec(self.extents, self.refusal); }
};

// At most one of the two is asked for. A value.
struct EndpointRequest {
  std::vector<Piece> resolve = {};
  bool is_notify = false;
  std::string sender = {};  // of the notification
  CompletionAction action = {};
  static void fields(auto& codec, auto& self) {
    codec(self.resolve, self.is_notify);
    auto& action = self.action;
    if (self.is_notify)
      codec(self.sender, action.has_message, action.message, action.has_counter, action.counter,
            action.value);
  }
};

// A request or an answer that encode_record() has written.
template <typename Message>
Result<Message> decode_message(std::string_view bytes) {
  constexpr std::uint32_t kMost = 4096;  // bounds the work and memory that one message causes
  FieldReader reader(bytes);
  Message message;
  // Both begin with the length of their list.
  if (ByteReader(bytes).u32() <= kMost) reader(message);
  if (reader.is_finished()) return message;
  return Status(Code::kInvalidArgument, "what another host said to an endpoint is malformed");
}

}  // namespace memspan::transfer
