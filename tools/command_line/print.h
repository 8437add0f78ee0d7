// SPDX-License-Identifier: Apache-2.0
// How memspan's tools print what was asked for, and what went wrong.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string_view>

#include "core/status.h"

namespace memspan::command_line {

// Writes all of it to stdout at once, with what was printed before. kSystem if that fails (the disk
// is full, for instance): the exit code must report it.
inline Status print_all(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0 &&
      std::ferror(stdout) == 0)
    return Status::ok();
  return Status::from_errno("writing to stdout");
}

// Says on stderr why `program` ends, and gives its exit code: 2 and where help is for a wrong
// command line (kInvalidArgument), else 1.
inline int end_with(std::string_view program, const Status& status) {
  const bool is_refusal = status.code() == Code::kInvalidArgument;
  fmt::print(stderr, "{}: {}{}\n", program, status.message(),
             is_refusal ? fmt::format("; see {} --help", program) : "");
  return is_refusal ? 2 : 1;
}

}  // namespace memspan::command_line
