// SPDX-License-Identifier: Apache-2.0
// Reading the environment: strings, integers and sizes with suffixes, each with a message that
// names the variable, the value and what is allowed.
#pragma once

#include <cstdint>
#include <vector>

#include "core/clock.h"
#include "core/status.h"

namespace memspan::inline core {

// nullopt when unset. An empty value counts as set.
std::optional<std::string> environment(const char* name);
std::string environment_or(const char* name, std::string_view fallback);

// A line for each variable that is set and that this version no longer reads, with its successor.
std::vector<std::string> removed_variables();

// A whole decimal number in [least, most]; nullopt when unset.
Result<std::optional<std::int64_t>> environment_integer(const char* name, std::int64_t least,
                                                        std::int64_t most);

Result<std::int64_t> parse_integer(std::string_view what, std::string_view text, std::int64_t least,
                                   std::int64_t most);

// Bytes from "512", "1.5g", ".5M", "2T": an integer or a decimal fraction. The optional suffix is
// k, m, g or t of either case (powers of 1024), also as "MiB" or "mb". Rounded up. Zero, negative
// sizes and trailing text are errors.
Result<std::size_t> parse_size(std::string_view what, std::string_view text);

// A whole number with its unit: "20us", "500ms", "2s". At most an hour.
Result<Duration> parse_time(std::string_view what, std::string_view text);

// As gethostname(2) gives it; "?" when it gives none. For messages, and to look up an address.
std::string host_name();

// The first line of a file, such as a setting of the kernel; empty if it cannot be read.
std::string first_line_of(const std::string& path);

// "1.5 GiB", "512 B": for messages.
std::string format_size(std::uint64_t bytes);

// The parts of a list such as "a,b" between the separators, one more than there are; any may be
// empty. They point into the text.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t end = text.find(separator); end != std::string_view::npos;
       end = text.find(separator)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

}  // namespace memspan::inline core
