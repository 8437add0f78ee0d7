// SPDX-License-Identifier: Apache-2.0
#include "core/status.h"

#include <cstring>

namespace memspan {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kOk:
      return "OK";
    case Code::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case Code::kNotFound:
      return "NOT_FOUND";
    case Code::kUnavailable:
      return "UNAVAILABLE";
    case Code::kTimeout:
      return "TIMEOUT";
    case Code::kOutOfMemory:
      return "OUT_OF_MEMORY";
    case Code::kNotSupported:
      return "NOT_SUPPORTED";
    case Code::kPeerLost:
      return "PEER_LOST";
    case Code::kUnreachable:
      return "UNREACHABLE";
    case Code::kStale:
      return "STALE";
    case Code::kAuth:
      return "AUTH";
    case Code::kStoreLost:
      return "STORE_LOST";
    case Code::kForked:
      return "FORKED";
    case Code::kSystem:
      return "SYSTEM";
    case Code::kInternal:
      return "INTERNAL";
  }
  return "UNKNOWN";
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

}  // namespace memspan
