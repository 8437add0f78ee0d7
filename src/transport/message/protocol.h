// SPDX-License-Identifier: Apache-2.0
// The frames of the transport `message`: a header of 64 bytes, little-endian, and a payload for
// some types. A connection carries requests and answers both ways.
//
//   0 type  1 kind  2 width  3 flags   4 payload bytes   8 tag   16 region number  20 generation
//   24 offset   32 length   40 operand   48 compare   56 seal (session.h)
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "transport/link.h"

namespace memspan::inline transport {

enum class FrameType : std::uint8_t {
  // Requests. `tag` is a context for those without an answer; others repeat it in the answer.
  kHello = 1,  // the first frame of the process that connects: identifies it (struct Hello)
  kPut,        // writes the payload to the place
  kGet,        // requests `length` bytes of the place
  kAtomic,     // kind, width, operand, compare at the place; with kWantsAnswer, the value before
  kFlush,      // answered when all frames before it are applied
  kMessage,    // the payload is for the handler; `tag`, `operand`, `compare` are its MessageTag
  // Answers, in the order of the requests.
  kData,     // the payload is the bytes for a kGet
  kFetched,  // `operand` is the value before an atomic
  kFlushed,
  kRefused,  // `kind` is a Refusal, the payload a sentence; kWantsAnswer: it is the answer
  // Both ways.
  kBye,  // the sender requests nothing more; with kLeaves, it ends the connection
  // Signs of life, out of the order of requests and answers.
  kBeat,   // another one comes soon; answered at once
  kAlive,  // the answer
  // One-sided access (NativeAccess): a request, and its answer.
  kKey,    // requests a key of `length` bytes at most for `operand` bytes at the place
  kKeyed,  // the payload is the key; empty: no key
  // Answers to kHello; kRefused is the third one.
  kWelcome,  // the connection is open
  kYield,    // use the connection that the sender is about to make
};
inline constexpr FrameType kLastFrameType = FrameType::kYield;

// True also for a message.
inline bool is_request(FrameType type) {
  return (type >= FrameType::kPut && type <= FrameType::kMessage) || type == FrameType::kKey;
}

inline bool is_answer(FrameType type) {
  return (type >= FrameType::kData && type <= FrameType::kRefused) || type == FrameType::kKeyed;
}

// Bits of `flags`.
inline constexpr std::uint8_t kWantsAnswer = 1;
inline constexpr std::uint8_t kAfterPut = 2;  // do not apply the atomic if the put was refused
inline constexpr std::uint8_t kLeaves = 4;    // kBye: the process ends
inline constexpr std::uint8_t kApart = 8;     // kHello: one of several connections; do not yield
inline constexpr std::uint8_t kAllFlags = kWantsAnswer | kAfterPut | kLeaves | kApart;

// Why an owner refused a frame.
enum class Refusal : std::uint8_t { kRegion = 1, kGeneration, kBounds, kWord, kHello, kMemory };
inline constexpr std::uint8_t kLastRefusal = static_cast<std::uint8_t>(Refusal::kMemory);

// The code that the requester's call returns.
inline Code code_of(Refusal refusal) {
  if (refusal == Refusal::kRegion || refusal == Refusal::kMemory) return Code::kNotFound;
  if (refusal == Refusal::kGeneration) return Code::kStale;
  return refusal == Refusal::kHello ? Code::kAuth : Code::kInvalidArgument;
}

// The header up to the seal, as it is sent.
struct Frame {
  FrameType type = FrameType::kBye;
  std::uint8_t kind = 0;
  std::uint8_t width = 0;
  std::uint8_t flags = 0;
  std::uint32_t payload = 0;
  std::uint64_t tag = 0;
  RegionId region = {};
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t operand = 0;
  std::uint64_t compare = 0;
  bool operator==(const Frame&) const = default;
};

inline constexpr std::size_t kFrameBytes = 64;
inline constexpr std::size_t kSealOffset = 56;
static_assert(sizeof(Frame) == kSealOffset && std::is_trivially_copyable_v<Frame>);
inline constexpr std::uint32_t kProtocolVersion = 7;
// Larger puts and gets are several frames, so that an answer's copy is bounded.
inline constexpr std::uint32_t kMostPayload = 1 << 20;
inline constexpr std::uint32_t kMostMessage = 1 << 20;
inline constexpr std::uint32_t kMostText = 1024;     // of a refusal, of a greeting
inline constexpr std::uint32_t kMostKey = 16 << 10;  // UCX's address of a host with many devices
// A key is for one window of a region; windows begin at multiples of this. So only the used part of
// a heap is registered (and pinned).
inline constexpr std::uint64_t kNativeWindow = std::uint64_t{64} << 20;

using FrameHeader = std::array<std::byte, kFrameBytes>;
// Writes all but the seal. Both processors that we build for are little-endian.
inline void encode(const Frame& frame, FrameHeader& out) {
  std::memcpy(out.data(), &frame, sizeof frame);
}

inline std::uint32_t most_payload(FrameType type) {
  if (type == FrameType::kPut || type == FrameType::kData) return kMostPayload;
  if (type == FrameType::kMessage) return kMostMessage;
  if (type == FrameType::kHello || type == FrameType::kRefused) return kMostText;
  return type == FrameType::kKeyed ? kMostKey : 0;
}

// kInvalidArgument if it is not a frame. Does not check the seal.
inline Result<Frame> decode(std::span<const std::byte, kFrameBytes> header) {
  const auto broken = [](std::string_view what, std::uint64_t value) {
    return Status(Code::kInvalidArgument, fmt::format("not a frame: {} is {}", what, value));
  };
  Frame frame;
  std::memcpy(&frame, header.data(), sizeof frame);
  if (frame.type < FrameType::kHello || frame.type > kLastFrameType)
    return broken("its type", static_cast<std::uint64_t>(frame.type));
  if ((frame.flags & ~kAllFlags) != 0) return broken("its flags", frame.flags);
  if (frame.payload > most_payload(frame.type)) return broken("its payload", frame.payload);
  return frame;
}

// Drawn by the connecting side for one connection.
struct Nonce {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees a null pointer in it
  auto operator<=>(const Nonce&) const = default;
};

// kHello. The payload is the version, a line feed and the name; the rest is in the header, so the
// seal covers it. Neither the form of kHello and kRefused nor their seals depend on the protocol:
// processes of all versions read them.
struct Hello {
  std::int32_t peer = 0;
  std::string name = {};  // for messages
  Nonce nonce = {};
  std::uint64_t proof = 0;  // Session::proof() by the secret of the process that connects
  bool is_apart = false;
  std::uint64_t protocol = kProtocolVersion;
  std::string version = MEMSPAN_VERSION;

  std::string payload() const { return (version + '\n' + name).substr(0, kMostText); }
  Frame frame() const {
    return {.type = FrameType::kHello,
            .flags = is_apart ? kApart : std::uint8_t{0},
            .payload = static_cast<std::uint32_t>(payload().size()),
            .tag = static_cast<std::uint64_t>(peer),
            .offset = proof,
            .length = protocol,
            .operand = nonce.low,
            .compare = nonce.high};
  }
  // kInvalidArgument if the peer's number is invalid.
  static Result<Hello> read(const Frame& frame, std::span<const std::byte> payload) {
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
};

}  // namespace memspan::inline transport
