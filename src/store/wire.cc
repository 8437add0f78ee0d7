// SPDX-License-Identifier: Apache-2.0
#include "store/wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "store/fields.h"

namespace memspan::inline store {
namespace {

// "mspS": other protocols are refused before anything else is read.
constexpr std::uint32_t kMagic = 0x5370736d;
constexpr std::size_t kLengthBytes = 4;
// The first version of the protocol whose hello has a release.
constexpr std::uint32_t kFirstWithRelease = 4;

// The place of the length, which finish_frame() fills in.
constexpr std::uint32_t kNoLength = 0;

// `to_follow` bytes of the body are not in the writer.
std::string finish_frame(FieldWriter writer, std::size_t to_follow = 0) {
  std::string frame = writer.take();
  const std::size_t length = frame.size() - kLengthBytes + to_follow;
  frame.replace(0, kLengthBytes, encode_record(static_cast<std::uint32_t>(length)));
  return frame;
}

Status malformed(std::string_view what) {
  return {Code::kInvalidArgument, fmt::format("a malformed {}", what)};
}

// By their numbers.
constexpr std::string_view kNames[] = {
    "",     "set",   "get",     "get_now",   "",          "",    "compare_and_swap", "remove", "",
    "list", "watch", "unwatch", "take_rank", "give_rank", "ping"};

std::uint32_t keys_of(StoreOperation operation) {
  return operation == StoreOperation::kPing || operation == StoreOperation::kUnwatch ? 0 : 1;
}

// A prefix may be empty: everything.
bool takes_a_prefix(StoreOperation operation) {
  return operation == StoreOperation::kList || operation == StoreOperation::kWatch;
}

}  // namespace

std::string_view operation_name(StoreOperation operation) {
  const auto number = static_cast<std::size_t>(operation);
  return number < std::size(kNames) && !kNames[number].empty() ? kNames[number] : "unknown";
}

Status check_request(const StoreRequest& request) {
  const bool may_be_empty = keys_of(request.operation) == 0 || takes_a_prefix(request.operation);
  if (!request.key.empty() || !may_be_empty) MEMSPAN_PASS(check_store_key(request.key));
  MEMSPAN_PASS(check_store_value(request.value));
  return check_store_value(request.expected);
}

std::string encode(const StoreRequest& request) {
  FieldWriter writer;
  writer(kNoLength, request.id, request.operation, request.timeout_ms, request.watch, request.rank,
         request.size, request.is_owned, keys_of(request.operation));
  if (keys_of(request.operation) != 0) writer(request.key);
  writer(request.expected, request.value);
  return finish_frame(std::move(writer));
}

StoreFrame encode_sharing(const StoreAnswer& answer) {
  // Below this size, one piece costs less than two.
  constexpr std::size_t kShared = 4096;
  FieldWriter writer;
  writer(kNoLength, answer.id, answer.code, answer.number, answer.event, answer.key.text(),
         answer.message);
  if (answer.value.size() < kShared) {
    writer(answer.value.text());
    return {.head = finish_frame(std::move(writer))};
  }
  writer(static_cast<std::uint32_t>(answer.value.size()));
  return {.head = finish_frame(std::move(writer), answer.value.size()), .value = answer.value};
}

std::string encode(const StoreHello& hello) {
  const auto part = [](std::string_view text) { return text.substr(0, kMaxMemberBytes); };
  FieldWriter writer;
  writer(kNoLength, kMagic, hello.version, part(hello.release), part(hello.member), part(hello.job),
         hello.rank, hello.silence_ms);
  return finish_frame(std::move(writer));
}

std::string encode(const StoreWelcome& welcome) {
  FieldWriter writer;
  writer(kNoLength, kMagic, welcome.version, welcome.code, welcome.message, welcome.session);
  return finish_frame(std::move(writer));
}

Result<StoreRequest> decode_request(std::string_view body) {
  FieldReader reader(body);
  StoreRequest request;
  std::uint32_t keys = 0;
  reader(request.id, request.operation, request.timeout_ms, request.watch, request.rank,
         request.size, request.is_owned, keys);
  if (operation_name(request.operation) == "unknown")
    return malformed("request: no such operation");
  if (keys != 0) reader(request.key);
  reader(request.expected, request.value);
  if (!reader.is_finished() || keys != keys_of(request.operation)) return malformed("request");
  MEMSPAN_PASS(check_request(request));
  return request;
}

Result<StoreAnswer> decode_answer(std::string_view body) {
  FieldReader reader(body);
  StoreAnswer answer;
  reader(answer.id, answer.code, answer.number, answer.event, answer.key, answer.message,
         answer.value);
  if (!reader.is_finished()) return malformed("answer");
  return answer;
}

// For a hello of another version, reads only the beginning.
Result<StoreHello> decode_hello(std::string_view body) {
  FieldReader reader(body);
  std::uint32_t magic = 0;
  StoreHello hello;
  reader(magic, hello.version);
  if (magic != kMagic) return malformed("hello: not a memspan store's client");
  if (hello.version < kFirstWithRelease && reader.is_ok()) {
    hello.release.clear();
    return hello;
  }
  reader(hello.release, hello.member);
  if (!reader.is_ok()) return malformed("hello");
  if (hello.version != kStoreProtocolVersion) return hello;
  reader(hello.job, hello.rank, hello.silence_ms);
  if (!reader.is_finished() || hello.release.size() > kMaxMemberBytes ||
      hello.member.size() > kMaxMemberBytes || hello.job.size() > kMaxMemberBytes ||
      hello.rank < -1)
    return malformed("hello");
  return hello;
}

Result<StoreWelcome> decode_welcome(std::string_view body) {
  FieldReader reader(body);
  std::uint32_t magic = 0;
  StoreWelcome welcome;
  reader(magic, welcome.version, welcome.code, welcome.message);
  if (magic != kMagic) return malformed("welcome: not a memspan store");
  if (!reader.is_ok()) return malformed("welcome");
  if (welcome.version != kStoreProtocolVersion) return welcome;
  reader(welcome.session);
  if (!reader.is_finished()) return malformed("welcome");
  return welcome;
}

std::string quoted_key(std::string_view key) {
  constexpr std::size_t kShown = 64;
  std::string text(key.substr(0, kShown));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return fmt::format("\"{}{}\"", text, key.size() > kShown ? "..." : "");
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

}  // namespace memspan::inline store
