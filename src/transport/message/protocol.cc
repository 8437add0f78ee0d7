// SPDX-License-Identifier: Apache-2.0
#include "transport/message/protocol.h"

#include <fmt/format.h>

#include <cstring>

namespace memspan {
namespace {

std::uint32_t most_payload(FrameType type) {
  if (type == FrameType::kPut || type == FrameType::kData) return kMostPayload;
  if (type == FrameType::kMessage) return kMostMessage;
  if (type == FrameType::kHello || type == FrameType::kRefused) return kMostText;
  return type == FrameType::kKeyed ? kMostKey : 0;
}

Status broken(std::string_view what, std::uint64_t value) {
  return {Code::kInvalidArgument, fmt::format("not a frame: {} is {}", what, value)};
}

}  // namespace

bool is_request(FrameType type) {
  return (type >= FrameType::kPut && type <= FrameType::kMessage) || type == FrameType::kKey;
}

bool is_answer(FrameType type) {
  return (type >= FrameType::kData && type <= FrameType::kRefused) || type == FrameType::kKeyed;
}

Code code_of(Refusal refusal) {
  if (refusal == Refusal::kRegion || refusal == Refusal::kMemory) return Code::kNotFound;
  if (refusal == Refusal::kGeneration) return Code::kStale;
  return refusal == Refusal::kHello ? Code::kAuth : Code::kInvalidArgument;
}

// Both processors that we build for are little-endian.
void encode(const Frame& frame, FrameHeader& out) {
  std::memcpy(out.data(), &frame, sizeof frame);
}

Result<Frame> decode(std::span<const std::byte, kFrameBytes> header) {
  Frame frame;
  std::memcpy(&frame, header.data(), sizeof frame);
  if (frame.type < FrameType::kHello || frame.type > kLastFrameType)
    return broken("its type", static_cast<std::uint64_t>(frame.type));
  if ((frame.flags & ~kAllFlags) != 0) return broken("its flags", frame.flags);
  if (frame.payload > most_payload(frame.type)) return broken("its payload", frame.payload);
  return frame;
}

Frame Hello::frame() const {
  return {.type = FrameType::kHello,
          .flags = is_apart ? kApart : std::uint8_t{0},
          .payload = static_cast<std::uint32_t>(payload().size()),
          .tag = static_cast<std::uint64_t>(peer),
          .offset = proof,
          .length = protocol,
          .operand = nonce.low,
          .compare = nonce.high};
}

Result<Hello> Hello::read(const Frame& frame, std::span<const std::byte> payload) {
  if (frame.tag > INT32_MAX)
    return Status(
        Code::kInvalidArgument,
        fmt::format("the peer's number is {}; allowed are 0 to {}", frame.tag, INT32_MAX));
  const std::string_view text(reinterpret_cast<const char*>(payload.data()), payload.size());
  const std::size_t line = std::min(text.find('\n'), text.size());
  return Hello{.peer = static_cast<std::int32_t>(frame.tag),
               .name = std::string(text.substr(std::min(line + 1, text.size()))),
               .nonce = {frame.operand, frame.compare},
               .proof = frame.offset,
               .is_apart = (frame.flags & kApart) != 0,
               .protocol = frame.length,
               .version = std::string(text.substr(0, line))};
}

}  // namespace memspan
