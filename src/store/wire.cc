// SPDX-License-Identifier: Apache-2.0
#include "store/wire.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/bytes.h"

namespace memspan {
namespace {

// "mspS": other protocols are refused before anything else is read.
constexpr std::uint32_t kMagic = 0x5370736d;
constexpr std::size_t kLengthBytes = 4;
// The first version of the protocol whose hello has a release.
constexpr std::uint32_t kFirstWithRelease = 4;

// Reserves space for the length in front of the body.
ByteWriter begin_frame() {
  ByteWriter writer;
  writer.u32(0);
  return writer;
}

// `to_follow` bytes of the body are not in the writer.
std::string finish_frame(ByteWriter writer, std::size_t to_follow = 0) {
  std::string frame = writer.take();
  ByteWriter length;
  length.u32(static_cast<std::uint32_t>(frame.size() - kLengthBytes + to_follow));
  frame.replace(0, kLengthBytes, length.bytes());
  return frame;
}

Status malformed(std::string_view what) {
  return {Code::kInvalidArgument, fmt::format("a malformed {}", what)};
}

bool is_operation(std::uint8_t number) {
  return number >= static_cast<std::uint8_t>(StoreOperation::kSet) &&
         number <= static_cast<std::uint8_t>(StoreOperation::kPing);
}

bool is_code(std::uint8_t number) {
  return number <= static_cast<std::uint8_t>(Code::kInternal);
}

// Stops at the first missing key: the count is not trusted.
std::vector<std::string> read_keys(ByteReader& reader) {
  std::vector<std::string> keys;
  std::uint32_t count = reader.u32();
  for (std::uint32_t i = 0; i < count && reader.is_ok() && i <= kMaxKeysPerRequest; ++i)
    keys.emplace_back(reader.text());
  return keys;
}

// Operations that name no key, or whose key may be empty (a prefix: everything).
std::size_t fewest_keys(StoreOperation operation) {
  return operation == StoreOperation::kPing || operation == StoreOperation::kUnwatch ? 0 : 1;
}

bool takes_a_prefix(StoreOperation operation) {
  return operation == StoreOperation::kList || operation == StoreOperation::kWatch;
}

std::string printable(std::string_view key) {
  constexpr std::size_t kShown = 64;
  std::string text(key.substr(0, kShown));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  if (key.size() > kShown) text += "...";
  return text;
}

}  // namespace

std::string_view operation_name(StoreOperation operation) {
  switch (operation) {
    case StoreOperation::kSet:
      return "set";
    case StoreOperation::kGet:
      return "get";
    case StoreOperation::kGetNow:
      return "get_now";
    case StoreOperation::kAdd:
      return "add";
    case StoreOperation::kAppend:
      return "append";
    case StoreOperation::kCompareAndSwap:
      return "compare_and_swap";
    case StoreOperation::kRemove:
      return "remove";
    case StoreOperation::kWait:
      return "wait";
    case StoreOperation::kList:
      return "list";
    case StoreOperation::kWatch:
      return "watch";
    case StoreOperation::kUnwatch:
      return "unwatch";
    case StoreOperation::kTakeRank:
      return "take_rank";
    case StoreOperation::kGiveRank:
      return "give_rank";
    case StoreOperation::kPing:
      return "ping";
  }
  return "unknown";
}

Status check_request(const StoreRequest& request) {
  const std::size_t fewest = fewest_keys(request.operation);
  const std::size_t most = request.operation == StoreOperation::kWait ? kMaxKeysPerRequest : 1;
  if (request.keys.size() < fewest || request.keys.size() > most)
    return {Code::kInvalidArgument,
            fmt::format("{} takes {} to {} keys, not {}", operation_name(request.operation), fewest,
                        most, request.keys.size())};
  std::size_t bytes = 0;
  for (const std::string& key : request.keys) {
    const bool may_be_empty = key.empty() && takes_a_prefix(request.operation);
    if (Status status = check_store_key(key); !may_be_empty && !status.is_ok()) return status;
    bytes += key.size() + kLengthBytes;
  }
  if (bytes > 2 * kMaxValueBytes)
    return {Code::kInvalidArgument,
            fmt::format("the keys of one request have at most {} bytes, not {}", 2 * kMaxValueBytes,
                        bytes)};
  if (Status status = check_store_value(request.value); !status.is_ok()) return status;
  return check_store_value(request.expected);
}

std::string encode(const StoreRequest& request) {
  ByteWriter writer = begin_frame();
  writer.u64(request.id);
  writer.u8(static_cast<std::uint8_t>(request.operation));
  writer.u32(request.timeout_ms);
  writer.i64(request.delta);
  writer.u32(static_cast<std::uint32_t>(request.rank));
  writer.u32(request.size);
  writer.u8(request.is_owned ? 1 : 0);
  writer.u32(static_cast<std::uint32_t>(request.keys.size()));
  for (const std::string& key : request.keys) writer.text(key);
  writer.text(request.expected);
  writer.text(request.value);
  return finish_frame(std::move(writer));
}

std::string encode(const StoreAnswer& answer) {
  StoreFrame frame = encode_sharing(answer);
  return std::move(frame.head += frame.value.text());
}

StoreFrame encode_sharing(const StoreAnswer& answer) {
  // Below this size, one piece costs less than two.
  constexpr std::size_t kShared = 4096;
  ByteWriter writer = begin_frame();
  writer.u64(answer.id);
  writer.u8(static_cast<std::uint8_t>(answer.code));
  writer.i64(answer.number);
  writer.u8(static_cast<std::uint8_t>(answer.event));
  writer.text(answer.key.text());
  writer.text(answer.message);
  if (answer.value.size() < kShared) {
    writer.text(answer.value.text());
    return {.head = finish_frame(std::move(writer))};
  }
  writer.u32(static_cast<std::uint32_t>(answer.value.size()));
  return {.head = finish_frame(std::move(writer), answer.value.size()), .value = answer.value};
}

std::string encode(const StoreHello& hello) {
  ByteWriter writer = begin_frame();
  writer.u32(kMagic);
  writer.u32(hello.version);
  writer.text(std::string_view(hello.release).substr(0, kMaxMemberBytes));
  writer.text(std::string_view(hello.member).substr(0, kMaxMemberBytes));
  writer.text(std::string_view(hello.job).substr(0, kMaxMemberBytes));
  writer.u32(static_cast<std::uint32_t>(hello.rank));
  writer.u32(hello.silence_ms);
  writer.u64(hello.epoch);
  return finish_frame(std::move(writer));
}

std::string encode(const StoreWelcome& welcome) {
  ByteWriter writer = begin_frame();
  writer.u32(kMagic);
  writer.u32(welcome.version);
  writer.u8(static_cast<std::uint8_t>(welcome.code));
  writer.text(welcome.message);
  writer.u64(welcome.epoch);
  writer.u64(welcome.session);
  return finish_frame(std::move(writer));
}

Result<StoreRequest> decode_request(std::string_view body) {
  ByteReader reader(body);
  StoreRequest request;
  request.id = reader.u64();
  const std::uint8_t operation = reader.u8();
  if (!is_operation(operation)) return malformed("request: no such operation");
  request.operation = static_cast<StoreOperation>(operation);
  request.timeout_ms = reader.u32();
  request.delta = reader.i64();
  request.rank = static_cast<std::int32_t>(reader.u32());
  request.size = reader.u32();
  const std::uint8_t is_owned = reader.u8();
  if (is_owned > 1) return malformed("request: neither owned nor not");
  request.is_owned = is_owned == 1;
  request.keys = read_keys(reader);
  request.expected = reader.text();
  request.value = reader.text();
  if (!reader.is_finished()) return malformed("request");
  if (Status status = check_request(request); !status.is_ok()) return status;
  return request;
}

Result<StoreAnswer> decode_answer(std::string_view body) {
  ByteReader reader(body);
  StoreAnswer answer;
  answer.id = reader.u64();
  const std::uint8_t code = reader.u8();
  if (!is_code(code)) return malformed("answer: no such code");
  answer.code = static_cast<Code>(code);
  answer.number = reader.i64();
  const std::uint8_t event = reader.u8();
  if (event > static_cast<std::uint8_t>(StoreEvent::kRemoved))
    return malformed("answer: no such event");
  answer.event = static_cast<StoreEvent>(event);
  answer.key = std::string(reader.text());
  answer.message = reader.text();
  answer.value = std::string(reader.text());
  if (!reader.is_finished()) return malformed("answer");
  return answer;
}

// For a hello of another version, reads only the beginning.
Result<StoreHello> decode_hello(std::string_view body) {
  ByteReader reader(body);
  if (reader.u32() != kMagic) return malformed("hello: not a memspan store's client");
  StoreHello hello;
  hello.version = reader.u32();
  if (hello.version < kFirstWithRelease && reader.is_ok()) {
    hello.release.clear();
    return hello;
  }
  hello.release = reader.text();
  hello.member = reader.text();
  if (!reader.is_ok()) return malformed("hello");
  if (hello.version != kStoreProtocolVersion) return hello;
  hello.job = reader.text();
  hello.rank = static_cast<std::int32_t>(reader.u32());
  hello.silence_ms = reader.u32();
  hello.epoch = reader.u64();
  if (!reader.is_finished() || hello.release.size() > kMaxMemberBytes ||
      hello.member.size() > kMaxMemberBytes || hello.job.size() > kMaxMemberBytes ||
      hello.rank < -1)
    return malformed("hello");
  return hello;
}

Result<StoreWelcome> decode_welcome(std::string_view body) {
  ByteReader reader(body);
  if (reader.u32() != kMagic) return malformed("welcome: not a memspan store");
  StoreWelcome welcome;
  welcome.version = reader.u32();
  const std::uint8_t code = reader.u8();
  welcome.message = reader.text();
  if (!reader.is_ok() || !is_code(code)) return malformed("welcome");
  welcome.code = static_cast<Code>(code);
  if (welcome.version != kStoreProtocolVersion) return welcome;
  welcome.epoch = reader.u64();
  welcome.session = reader.u64();
  if (!reader.is_finished()) return malformed("welcome");
  return welcome;
}

std::string pack_texts(const std::vector<std::string_view>& texts) {
  ByteWriter writer;
  writer.u32(static_cast<std::uint32_t>(texts.size()));
  for (const std::string_view text : texts) writer.text(text);
  return writer.take();
}

std::string pack_texts(const std::vector<std::string>& texts) {
  return pack_texts(std::vector<std::string_view>(texts.begin(), texts.end()));
}

Result<std::vector<std::string>> unpack_texts(std::string_view bytes) {
  ByteReader reader(bytes);
  const std::uint32_t count = reader.u32();
  std::vector<std::string> texts;
  for (std::uint32_t i = 0; i < count && reader.is_ok(); ++i) texts.emplace_back(reader.text());
  if (!reader.is_finished()) return malformed("list of texts");
  return texts;
}

std::string list_keys(const std::vector<std::string>& keys) {
  constexpr std::size_t kNamed = 16;
  std::string text;
  for (std::size_t i = 0; i < std::min(keys.size(), kNamed); ++i)
    text += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", printable(keys[i]));
  if (keys.size() > kNamed) text += fmt::format(" and {} more", keys.size() - kNamed);
  return text;
}

void StoreFrameReader::feed(std::string_view bytes) {
  if (broken_) return;
  drop_used();
  buffer_.append(bytes);
}

// One large frame must not keep its memory for the connection's whole life.
void StoreFrameReader::drop_used() {
  constexpr std::size_t kKept = std::size_t{1} << 20;
  if (used_ == 0) return;
  if (used_ == buffer_.size() && buffer_.capacity() > kKept)
    std::string().swap(buffer_);
  else
    buffer_.erase(0, used_);
  used_ = 0;
}

std::optional<std::string_view> StoreFrameReader::next() {
  if (used_ == buffer_.size()) drop_used();
  std::string_view rest = std::string_view(buffer_).substr(used_);
  if (broken_ || rest.size() < kLengthBytes) return std::nullopt;
  const std::size_t length = ByteReader(rest).u32();
  if (length == 0 || length > limit_) {
    broken_ = true;
    return std::nullopt;
  }
  if (rest.size() - kLengthBytes < length) return std::nullopt;
  used_ += kLengthBytes + length;
  return rest.substr(kLengthBytes, length);
}

}  // namespace memspan
