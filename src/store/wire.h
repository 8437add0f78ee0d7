// SPDX-License-Identifier: Apache-2.0
// The messages between a store and its clients, as bytes.
//
// A connection carries frames: a u32 length (little-endian, 1 to the limit) and that many bytes.
//
//   client  hello      request request ...          requests carry an id of the client's choice
//   server      welcome          answer answer ...  answers carry it back, in any order
//
// An answer with the id kFarewellId is the store's last one: it ends the session and names the
// reason.
//
// Everything here is a pure function of bytes, without sockets or clocks. Broken input only fails.
#pragma once

#include <cstddef>

#include "store/key_value_store.h"

namespace memspan::inline store {

inline constexpr std::size_t kMaxMemberBytes = 256;
// The largest request is a compare-and-swap of two whole values; the rest is for the key and the
// small fields.
inline constexpr std::size_t kMaxFrameBytes = 2 * kMaxValueBytes + (std::size_t{1} << 20);
// A client gets no more memory than this before its hello.
inline constexpr std::size_t kMaxGreetingBytes = 4096;
// In `StoreRequest::timeout_ms`: wait for as long as the connection lives.
inline constexpr std::uint32_t kNoTimeout = 0xffffffff;
// No request has this id.
inline constexpr std::uint64_t kFarewellId = 0;
// Changes with every change of the messages, of `Code`, of `StoreOperation` or of the recipes'
// records.
inline constexpr std::uint32_t kStoreProtocolVersion = 6;

// The numbers are part of the protocol.
enum class StoreOperation : std::uint8_t {
  kSet = 1,
  kGet = 2,
  kGetNow = 3,
  kCompareAndSwap = 6,
  kRemove = 7,
  kList = 9,
  kWatch = 10,
  kUnwatch = 11,
  kTakeRank = 12,
  kGiveRank = 13,
  kPing = 14,
};
constexpr StoreOperation last_of(StoreOperation) {
  return StoreOperation::kPing;
}
constexpr StoreEvent last_of(StoreEvent) {
  return StoreEvent::kRemoved;
}

// One connection of one member, numbered by the store. A number is never reused.
using SessionId = std::uint64_t;

// "compare_and_swap" for kCompareAndSwap: the spelling used in messages.
std::string_view operation_name(StoreOperation operation);

// Immutable text that many answers share: the store and all queues together hold a value once, even
// if 300 watches receive it. A copy costs a reference. Different copies may be used in different
// threads.
class SharedText {
 public:
  SharedText() = default;
  // Implicit, so that a text can be passed as a shared one.
  SharedText(std::string text)  // NOLINT(google-explicit-constructor)
      : text_(text.empty() ? nullptr : std::make_shared<std::string>(std::move(text))) {}
  SharedText(const char* text)  // NOLINT(google-explicit-constructor)
      : SharedText(std::string(text)) {}
  operator const std::string&() const { return text(); }  // NOLINT(google-explicit-constructor)
  operator std::string_view() const { return text(); }    // NOLINT(google-explicit-constructor)

  const std::string& text() const {
    static const auto& kEmpty = *new std::string;
    return text_ == nullptr ? kEmpty : *text_;
  }
  std::size_t size() const { return text_ == nullptr ? 0 : text_->size(); }
  bool empty() const { return size() == 0; }
  // Equal for all copies, different for all other texts; null when empty.
  const void* identity() const { return text_.get(); }
  // Returns the text and leaves this empty. Copies it if others share it.
  std::string take() {
    const auto taken = std::exchange(text_, nullptr);
    if (taken == nullptr) return {};
    return taken.use_count() == 1 ? std::move(*taken) : *taken;
  }

  friend bool operator==(const SharedText& one, const SharedText& other) {
    return one.text_ == other.text_ || one.text() == other.text();
  }

 private:
  std::shared_ptr<std::string> text_;  // shared with all copies; null when empty
};

// A value. Fields that an operation does not use keep these defaults.
struct StoreRequest {
  std::uint64_t id = 0;
  StoreOperation operation = StoreOperation::kGetNow;
  std::string key = {};          // the key, prefix or scope
  std::string value = {};        // set, compare-and-swap: the new value
  std::string expected = {};     // compare-and-swap
  std::uint64_t watch = 0;       // unwatch: the watch's id
  std::uint32_t timeout_ms = 0;  // get: from its arrival
  std::int32_t rank = -1;        // take_rank: -1 for the lowest free
  std::uint32_t size = 0;        // take_rank: 0: not known
  bool is_owned = false;         // set, compare-and-swap: ends with the session
  bool operator==(const StoreRequest&) const = default;
};

// A value.
struct StoreAnswer {
  std::uint64_t id = 0;
  Code code = Code::kOk;
  std::string message = {};  // why, when the code is not kOk
  SharedText value = {};     // get, get_now, compare-and-swap; list: keys and values in turn
  std::int64_t number = 0;   // remove: 1 when the key existed; take_rank: the rank
  // Only in a watch's answers after the first.
  StoreEvent event = StoreEvent::kNone;
  SharedText key = {};
  bool operator==(const StoreAnswer&) const = default;
};

inline StoreAnswer refuse(std::uint64_t request, const Status& why) {
  return {.id = request, .code = why.code(), .message = why.message()};
}
inline StoreAnswer answer_or_refuse(std::uint64_t request, Result<StoreAnswer> answer) {
  return answer.is_ok() ? std::move(answer).value() : refuse(request, answer.status());
}

// The first frame of a client. Every later version begins with the first three, so that a store can
// name a process that it refuses.
struct StoreHello {
  std::uint32_t version = kStoreProtocolVersion;
  std::string release = MEMSPAN_VERSION;  // empty: an older one
  std::string member;                     // a name for messages
  std::string job = {};                   // empty: any
  std::int32_t rank = -1;                 // -1: none is claimed
  std::uint32_t silence_ms = 0;           // dead after this silence; 0: only by a lost connection
};

// The first frame of a server. Any code but kOk: the server refuses and closes.
struct StoreWelcome {
  std::uint32_t version = kStoreProtocolVersion;
  Code code = Code::kOk;
  std::string message = {};
  SessionId session = 0;
};

// kInvalidArgument if the length of the key or of a value is out of range.
Status check_request(const StoreRequest& request);

// A whole frame, length included. Only for messages within the limits.
std::string encode(const StoreRequest& request);
std::string encode(const StoreHello& hello);
std::string encode(const StoreWelcome& welcome);

// A whole frame in two pieces. A large value is not copied into it: it follows the head.
struct StoreFrame {
  std::string head;
  SharedText value = {};
  std::size_t size() const { return head.size() + value.size(); }
};
StoreFrame encode_sharing(const StoreAnswer& answer);

// From a frame's body. kInvalidArgument for anything that encode() does not write or that
// check_request() refuses. The caller checks the version in a hello or a welcome.
Result<StoreRequest> decode_request(std::string_view body);
Result<StoreAnswer> decode_answer(std::string_view body);
Result<StoreHello> decode_hello(std::string_view body);
Result<StoreWelcome> decode_welcome(std::string_view body);

// `"a"` for messages: shortened, with '?' for unprintable bytes.
std::string quoted_key(std::string_view key);

// Cuts a stream of bytes into frames. Uses at most about twice the memory of the bytes that it
// received. Not thread-safe.
class StoreFrameReader {
 public:
  explicit StoreFrameReader(std::size_t limit) : limit_(limit) {}

  // Takes the stream's next bytes, in pieces of any size. Ignored when broken.
  void feed(std::string_view bytes);
  // The next whole frame's body, valid until the next call; nullopt if that is incomplete.
  std::optional<std::string_view> next();
  // A length was zero or over the limit. Permanent: no byte after it can be trusted.
  bool is_broken() const { return broken_; }
  // Number of buffered bytes.
  std::size_t held() const { return buffer_.size(); }
  // A part of the next frame has arrived.
  bool has_part() const { return used_ < buffer_.size(); }
  // For the frames that next() has not looked at yet.
  void set_limit(std::size_t limit) { limit_ = limit; }

 private:
  std::size_t limit_;
  void drop_used();
  std::string buffer_;
  std::size_t used_ = 0;  // bytes of buffer_ that next() has returned
  bool broken_ = false;
};

}  // namespace memspan::inline store
