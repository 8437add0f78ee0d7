// SPDX-License-Identifier: Apache-2.0
#include "transport/message/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace memspan {
namespace {

// Both processors that we build for are little-endian.
template <typename T>
void put_at(FrameHeader& out, std::size_t at, T value) {
  std::memcpy(out.data() + at, &value, sizeof value);
}
template <typename T>
T get_at(std::span<const std::byte, kFrameBytes> header, std::size_t at) {
  T value;
  std::memcpy(&value, header.data() + at, sizeof value);
  return value;
}

std::uint32_t most_payload(FrameType type) {
  switch (type) {
    case FrameType::kPut:
    case FrameType::kData:
      return kMostPayload;
    case FrameType::kMessage:
      return kMostMessage;
    case FrameType::kHello:
    case FrameType::kRefused:
      return kMostText;
    case FrameType::kKeyed:
      return kMostKey;
    default:
      return 0;
  }
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
  switch (refusal) {
    case Refusal::kRegion:
    case Refusal::kMemory:
      return Code::kNotFound;
    case Refusal::kGeneration:
      return Code::kStale;
    case Refusal::kHello:
      return Code::kAuth;
    case Refusal::kBounds:
    case Refusal::kWord:
      break;
  }
  return Code::kInvalidArgument;
}

void encode(const Frame& frame, FrameHeader& out) {
  put_at(out, 0, frame.type);
  put_at(out, 1, frame.kind);
  put_at(out, 2, frame.width);
  put_at(out, 3, frame.flags);
  put_at(out, 4, frame.payload);
  put_at(out, 8, frame.tag);
  put_at(out, 16, frame.region.number);
  put_at(out, 20, frame.region.generation);
  put_at(out, 24, frame.offset);
  put_at(out, 32, frame.length);
  put_at(out, 40, frame.operand);
  put_at(out, 48, frame.compare);
}

Result<Frame> decode(std::span<const std::byte, kFrameBytes> header) {
  Frame frame;
  const auto type = get_at<std::uint8_t>(header, 0);
  if (type < static_cast<std::uint8_t>(FrameType::kHello) ||
      type > static_cast<std::uint8_t>(kLastFrameType))
    return broken("its type", type);
  frame.type = static_cast<FrameType>(type);
  frame.kind = get_at<std::uint8_t>(header, 1);
  frame.width = get_at<std::uint8_t>(header, 2);
  frame.flags = get_at<std::uint8_t>(header, 3);
  if ((frame.flags & ~kAllFlags) != 0) return broken("its flags", frame.flags);
  frame.payload = get_at<std::uint32_t>(header, 4);
  if (frame.payload > most_payload(frame.type)) return broken("its payload", frame.payload);
  frame.tag = get_at<std::uint64_t>(header, 8);
  frame.region = {get_at<std::uint32_t>(header, 16), get_at<std::uint32_t>(header, 20)};
  frame.offset = get_at<std::uint64_t>(header, 24);
  frame.length = get_at<std::uint64_t>(header, 32);
  frame.operand = get_at<std::uint64_t>(header, 40);
  frame.compare = get_at<std::uint64_t>(header, 48);
  return frame;
}

Frame Hello::frame() const {
  return {.type = FrameType::kHello,
          .flags = is_apart ? kApart : std::uint8_t{0},
          .payload = static_cast<std::uint32_t>(payload().size()),
          .tag = static_cast<std::uint64_t>(peer),
          .region = {},
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
