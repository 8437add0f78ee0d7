// SPDX-License-Identifier: Apache-2.0
// The result of anything that can fail: one of our codes and a sentence for the user.
//
// No exception crosses a module's interface. A callee reports what went wrong, each caller adds
// what it was doing (MEMSPAN_TRY), and only the top (capi, tools) logs or translates.
#pragma once

#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace memspan::inline core {

enum class Code {
  kOk,
  kInvalidArgument,
  kNotFound,
  kUnavailable,
  kTimeout,
  kOutOfMemory,
  kNotSupported,
  kPeerLost,
  kUnreachable,
  kStale,
  kAuth,
  kStoreLost,
  kForked,
  kSystem,
  kInternal,
};

// "PEER_LOST" for kPeerLost: the spelling used in messages and logs.
std::string_view code_name(Code code);

// A value, one pointer wide: null is ok, so that returning ok costs nothing.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message);
  Status(const Status& other) : failure_(other.failure_ ? new Failure(*other.failure_) : nullptr) {}
  Status(Status&&) noexcept = default;
  Status& operator=(const Status& other) { return *this = Status(other); }
  Status& operator=(Status&&) noexcept = default;
  ~Status() = default;

  static Status ok() { return {}; }
  // The one translator of errno: "`what`: Permission denied (errno 13)". ENOMEM becomes
  // kOutOfMemory, everything else kSystem.
  static Status from_errno(std::string_view what, int error = errno);

  bool is_ok() const { return failure_ == nullptr; }
  Code code() const { return failure_ ? failure_->code : Code::kOk; }
  // Empty when ok.
  const std::string& message() const;
  // "PEER_LOST: joining the job: ..."
  std::string to_string() const;

  // The same failure with `doing` in front of the message, unless the message begins with it. An ok
  // status stays ok.
  Status annotate(std::string_view doing) const;

 private:
  struct Failure {
    Code code;
    std::string message;
  };
  std::unique_ptr<Failure> failure_;
};

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

// A base of classes that are neither copied nor moved.
class NotCopyable {
 protected:
  NotCopyable() = default;
  ~NotCopyable() = default;
  NotCopyable(const NotCopyable&) = delete;
  NotCopyable& operator=(const NotCopyable&) = delete;
};

// A T or the reason why it is missing. Not thread-safe, like any value.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: a Result is made by returning
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: either of the two

  bool is_ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  Code code() const { return status_.code(); }

  // Only when is_ok().
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace memspan::inline core

#define MEMSPAN_CONCAT_(a, b) a##b
#define MEMSPAN_CONCAT(a, b) MEMSPAN_CONCAT_(a, b)

// Returns from the enclosing function if `expression` (a Status) failed, and adds `doing`.
#define MEMSPAN_TRY(expression, doing)                                              \
  do {                                                                              \
    if (::memspan::Status memspan_status_ = (expression); !memspan_status_.is_ok()) \
      return memspan_status_.annotate(doing);                                       \
  } while (false)

// Like MEMSPAN_TRY, for a failure whose message is already complete.
#define MEMSPAN_PASS(expression)                                                    \
  do {                                                                              \
    if (::memspan::Status memspan_status_ = (expression); !memspan_status_.is_ok()) \
      return memspan_status_;                                                       \
  } while (false)

// MEMSPAN_TRY_ASSIGN(Fd fd, open_it(), "opening it"): the value of a Result, or return.
#define MEMSPAN_TRY_ASSIGN(declaration, expression, doing) \
  MEMSPAN_TRY_ASSIGN_(MEMSPAN_CONCAT(memspan_result_, __LINE__), declaration, expression, doing)
#define MEMSPAN_TRY_ASSIGN_(result, declaration, expression, doing) \
  auto result = (expression);                                       \
  if (!result.is_ok()) return result.status().annotate(doing);      \
  declaration = std::move(result).value()

// MEMSPAN_PASS_ASSIGN(Fd fd, open_it()): like MEMSPAN_TRY_ASSIGN, for a complete message.
#define MEMSPAN_PASS_ASSIGN(declaration, ...) \
  MEMSPAN_PASS_ASSIGN_(MEMSPAN_CONCAT(memspan_result_, __LINE__), declaration, __VA_ARGS__)
#define MEMSPAN_PASS_ASSIGN_(result, declaration, ...) \
  auto result = (__VA_ARGS__);                         \
  if (!result.is_ok()) return result.status();         \
  declaration = std::move(result).value()

// For our own bugs: prints one line and aborts. User input never reaches it.
#define MEMSPAN_CHECK(condition)                     \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? void()                                      \
       : ::memspan::check_failed(#condition, __FILE__, __LINE__))

// The end of a message for which memspan-explain has a remedy. The .cc file that makes the message
// declares it:
//
//   MEMSPAN_REMEDY(kHeapFull, "heap-full", "What the message means.", "What the user does.");
//   return {Code::kOutOfMemory, fmt::format("{} bytes do not fit ...{}", bytes, kHeapFull)};
//
// tools/explain/collect_remedies.cmake copies the texts into memspan-explain. In Python it is
// python/memspan/remedy.py.
#define MEMSPAN_REMEDY(name, identifier, meaning, action) \
  const char name[] = " [memspan-explain " identifier "]"
