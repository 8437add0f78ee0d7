// SPDX-License-Identifier: Apache-2.0
// A peer that is admitted and sends whatever it likes: the owner writes into its regions only, and
// what it does not depend on the pieces in which the bytes come.
//
//   input   seed of the pieces (1 byte)   frames: each a header of 64 bytes, with its payload
//
// The seal of each header is set right, since no input would guess it, unless its last byte is
// 0xff.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "transport/message/frame_reader.h"
#include "transport/message/owner_side.h"

namespace memspan {
namespace {

constexpr std::size_t kRegionBytes = 192;
constexpr std::size_t kAround = 64;

class Owner final : public AnswerSink {
 public:
  Owner() {
    std::fill(memory_.begin(), memory_.end(), std::byte{0xaa});
    // Generations begin by chance; the input's are relative to them.
    id_ = regions_.add({.base = memory_.data() + kAround, .bytes = kRegionBytes, .number = 1})
              .value();
    FrameHeader greeting;
    encode(Hello{.nonce = peer_.nonce()}.frame(), greeting);
    peer_.seal(greeting, 0);
    MEMSPAN_CHECK(session_.open(greeting, 0).is_ok());
  }

  Status answer(const Frame& frame, std::span<const std::byte> payload) override {
    log_.push_back(static_cast<char>(frame.type));
    log_.append(reinterpret_cast<const char*>(payload.data()), payload.size());
    return Status::ok();
  }
  void deliver(const MessageTag& tag, Buffer bytes) override {
    log_.append(std::to_string(tag.kind));
    log_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  // False once the connection has ended.
  bool feed(std::string_view bytes, std::size_t piece) {
    while (!bytes.empty() && !is_over_) {
      std::array<iovec, 2> places;
      const std::size_t count = reader_.prepare(places);
      std::size_t moved = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t part = std::min({places[i].iov_len, bytes.size(), piece - moved});
        std::memcpy(places[i].iov_base, bytes.data(), part);
        bytes.remove_prefix(part);
        moved += part;
      }
      is_over_ = !reader_.received(moved).is_ok();
    }
    return !is_over_;
  }
  std::uint32_t generation() const { return id_.generation; }
  void check() const {
    for (std::size_t i = 0; i < kAround; ++i) {
      MEMSPAN_CHECK(memory_[i] == std::byte{0xaa});
      MEMSPAN_CHECK(memory_[kAround + kRegionBytes + i] == std::byte{0xaa});
    }
  }
  bool operator==(const Owner& other) const {
    return memory_ == other.memory_ && log_ == other.log_ && is_over_ == other.is_over_;
  }

  // Of the header that `bytes` are.
  void seal(std::string& bytes, std::uint32_t sequence) const {
    FrameHeader header;
    std::memcpy(header.data(), bytes.data(), header.size());
    peer_.seal(header, sequence);
    std::memcpy(bytes.data(), header.data(), header.size());
  }

 private:
  std::vector<std::byte> memory_ = std::vector<std::byte>(kRegionBytes + 2 * kAround);
  std::string log_;
  OwnerServices services_;
  RegionTable& regions_ = services_.regions;
  RegionId id_;
  OwnerSide side_{services_, *this};
  Session peer_ = Session::connecting({1, 2});
  Session session_ = Session::accepting({1, 2});
  FrameReader reader_{side_, session_};
  bool is_over_ = false;
};

// The frames as a peer would send them that knows the region.
std::string stream_of(std::string_view input, const Owner& owner) {
  std::string stream;
  for (std::uint32_t sequence = 0; !input.empty(); ++sequence) {
    std::string header(input.substr(0, kFrameBytes));
    input.remove_prefix(header.size());
    header.resize(kFrameBytes);
    std::uint32_t delta = 0;
    std::memcpy(&delta, header.data() + 20, sizeof delta);
    delta += owner.generation();
    std::memcpy(header.data() + 20, &delta, sizeof delta);
    if (header.back() != '\xff') owner.seal(header, sequence);
    std::uint32_t payload = 0;
    std::memcpy(&payload, header.data() + 4, sizeof payload);
    const std::string_view body = input.substr(0, std::min<std::size_t>(payload, input.size()));
    stream += header;
    stream += body;
    input.remove_prefix(body.size());
  }
  return stream;
}

void decode_everything(std::string_view input) {
  if (input.size() >= kFrameBytes) {
    FrameHeader header;
    std::memcpy(header.data(), input.data(), header.size());
    if (const auto frame = decode(header); frame.is_ok()) {
      FrameHeader again = header;
      encode(*frame, again);
      MEMSPAN_CHECK(again == header);
    }
  }
  if (const auto region = RemoteRegion::decode(input); region.is_ok())
    MEMSPAN_CHECK(region->encode() == input);
}

}  // namespace
}  // namespace memspan

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace memspan;
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  Owner at_once;
  Owner in_pieces;
  at_once.feed(stream_of(input, at_once), SIZE_MAX);
  const std::string stream = stream_of(input, in_pieces);
  std::uint32_t pieces = data[0];
  for (std::size_t at = 0; at < stream.size();) {
    pieces = pieces * 1664525 + 1013904223;
    const std::size_t piece = std::min<std::size_t>(1 + (pieces >> 24) % 97, stream.size() - at);
    if (!in_pieces.feed(std::string_view(stream).substr(at, piece), piece)) break;
    at += piece;
  }
  at_once.check();
  in_pieces.check();
  MEMSPAN_CHECK(at_once == in_pieces);
  decode_everything(input);
  return 0;
}
