// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/remote_service.h"

#include "core/bytes.h"

namespace memspan::transfer {
namespace {

constexpr std::uint32_t kMostPieces = 4096;

Status malformed() {
  return {Code::kInvalidArgument, "what another host said to an endpoint is malformed"};
}

}  // namespace

std::string encode(const EndpointRequest& request) {
  ByteWriter writer;
  writer.u32(static_cast<std::uint32_t>(request.resolve.size()));
  for (const Piece& piece : request.resolve) {
    writer.u64(piece.remote);
    writer.u64(piece.bytes);
  }
  writer.u8(request.notify ? 1 : 0);
  if (!request.notify) return writer.take();
  const CompletionAction& action = request.notify->action;
  writer.text(request.notify->sender);
  writer.u8(action.message ? 1 : 0);
  writer.text(action.message.value_or(""));
  writer.u8(action.counter ? 1 : 0);
  writer.u32(action.counter.value_or(0));
  writer.u64(action.value);
  return writer.take();
}

Result<EndpointRequest> decode_endpoint_request(std::string_view bytes) {
  ByteReader reader(bytes);
  EndpointRequest request;
  const std::uint32_t pieces = reader.u32();
  if (pieces > kMostPieces) return malformed();
  request.resolve.resize(pieces);
  for (Piece& piece : request.resolve) {
    piece.remote = reader.u64();
    piece.bytes = reader.u64();
  }
  if (reader.u8() != 0) {
    Notify notify;
    notify.sender = reader.text();
    const bool has_message = reader.u8() != 0;
    std::string message(reader.text());
    if (has_message) notify.action.message = std::move(message);
    const bool has_counter = reader.u8() != 0;
    const std::uint32_t counter = reader.u32();
    if (has_counter) notify.action.counter = counter;
    notify.action.value = reader.u64();
    request.notify = std::move(notify);
  }
  if (!reader.is_finished()) return malformed();
  return request;
}

std::string encode(const ResolveAnswer& answer) {
  ByteWriter writer;
  writer.u32(static_cast<std::uint32_t>(answer.extents.size()));
  for (const RegionExtent& extent : answer.extents) {
    writer.u64(extent.base);
    writer.text(extent.region.encode());
  }
  writer.text(answer.refusal);
  return writer.take();
}

Result<ResolveAnswer> decode_resolve_answer(std::string_view bytes) {
  ByteReader reader(bytes);
  ResolveAnswer answer;
  const std::uint32_t extents = reader.u32();
  if (extents > kMostPieces) return malformed();
  answer.extents.resize(extents);
  for (RegionExtent& extent : answer.extents) {
    extent.base = reader.u64();
    auto region = RemoteRegion::decode(reader.text());
    if (!region.is_ok()) return malformed();
    extent.region = std::move(region).value();
  }
  answer.refusal = reader.text();
  if (!reader.is_finished()) return malformed();
  return answer;
}

}  // namespace memspan::transfer
