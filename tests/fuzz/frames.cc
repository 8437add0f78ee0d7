// SPDX-License-Identifier: Apache-2.0
// Bytes from the network: the cutting into frames does not depend on the pieces in which they come,
// and what can be decoded is what encode() writes.
//
//   input   seed of the pieces (1 byte)   stream
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/wire.h"
#include "support/whole_answer.h"

namespace memspan {
namespace {

struct Cut {
  std::vector<std::string> bodies;
  bool is_broken = false;
  bool has_part = false;
  bool operator==(const Cut&) const = default;
};

// `next_size` gives the size of the next piece, 1 and more.
template <typename NextSize>
Cut cut(std::string_view stream, std::size_t limit, NextSize next_size) {
  StoreFrameReader reader(limit);
  Cut result;
  while (!stream.empty()) {
    const std::string_view piece = stream.substr(0, next_size());
    reader.feed(piece);
    stream.remove_prefix(piece.size());
    while (auto body = reader.next()) result.bodies.emplace_back(*body);
  }
  result.is_broken = reader.is_broken();
  result.has_part = !reader.is_broken() && reader.has_part();
  return result;
}

std::string frame_of(std::string_view body) {
  std::string frame;
  for (int shift = 0; shift < 32; shift += 8)
    frame.push_back(static_cast<char>(body.size() >> shift & 0xff));
  return frame.append(body);
}

void decode_all(std::string_view body) {
  if (auto request = decode_request(body); request.is_ok()) {
    MEMSPAN_CHECK(check_request(*request).is_ok());
    MEMSPAN_CHECK(encode(*request) == frame_of(body));
  }
  if (auto answer = decode_answer(body); answer.is_ok())
    MEMSPAN_CHECK(encode(*answer) == frame_of(body));
  // Of a greeting in another version only the beginning is read.
  if (auto hello = decode_hello(body); hello.is_ok() && hello->version == kStoreProtocolVersion)
    MEMSPAN_CHECK(encode(*hello) == frame_of(body));
  if (auto welcome = decode_welcome(body);
      welcome.is_ok() && welcome->version == kStoreProtocolVersion)
    MEMSPAN_CHECK(encode(*welcome) == frame_of(body));
}

}  // namespace
}  // namespace memspan

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace memspan;
  if (size == 0) return 0;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::uint32_t pieces = data[0];
  const std::size_t limit = (pieces & 1) != 0 ? kMaxGreetingBytes : kMaxFrameBytes;
  const Cut at_once = cut(stream, limit, [&] { return stream.size(); });
  const Cut in_pieces = cut(stream, limit, [&] {
    pieces = pieces * 1664525 + 1013904223;
    return std::size_t{1} + (pieces >> 24) % 64;
  });
  MEMSPAN_CHECK(in_pieces == at_once);
  for (const std::string& body : at_once.bodies) decode_all(body);
  decode_all(stream);
  return 0;
}
