// SPDX-License-Identifier: Apache-2.0
#include "core/status.h"

#include <array>
#include <cstring>

namespace memspan::inline core {

std::string_view code_name(Code code) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"OK", "INVALID_ARGUMENT", "NOT_FOUND", "UNAVAILABLE", "TIMEOUT", "OUT_OF_MEMORY",
       "NOT_SUPPORTED", "PEER_LOST", "UNREACHABLE", "STALE", "AUTH", "STORE_LOST", "FORKED",
       "SYSTEM", "INTERNAL"});
  static_assert(kNames.size() == static_cast<std::size_t>(Code::kInternal) + 1);
  const auto index = static_cast<std::size_t>(code);
  return index < kNames.size() ? kNames[index] : "UNKNOWN";
}

Status Status::from_errno(std::string_view what, int error) {
  char buffer[128];
  std::string message(what);
  message += ": ";
  message += strerror_r(error, buffer, sizeof buffer);
  message += " (errno " + std::to_string(error) + ")";
  return {error == ENOMEM ? Code::kOutOfMemory : Code::kSystem, std::move(message)};
}

Status::Status(Code code, std::string message)
    : failure_(code == Code::kOk ? nullptr : new Failure{code, std::move(message)}) {}

const std::string& Status::message() const {
  static const auto& kNone = *new std::string;
  return failure_ ? failure_->message : kNone;
}

std::string Status::to_string() const {
  std::string text(code_name(code()));
  if (!message().empty()) text += ": " + message();
  return text;
}

Status Status::annotate(std::string_view doing) const {
  if (is_ok()) return *this;
  std::string prefix = std::string(doing) + ": ";
  // A step is often called from a step of the same name.
  if (message().compare(0, prefix.size(), prefix) == 0) return *this;
  return {code(), prefix + message()};
}

}  // namespace memspan::inline core
