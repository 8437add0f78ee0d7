// SPDX-License-Identifier: Apache-2.0
// The files in which Linux describes itself, below a folder: "" for this machine, another one in
// tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace memspan {

// A value.
class SystemFiles {
 public:
  explicit SystemFiles(std::string root = {}) : root_(std::move(root)) {}

  std::string path(std::string_view name) const { return root_ + std::string(name); }
  bool has(std::string_view name) const;
  // Empty when it cannot be read.
  std::string text(std::string_view name) const;
  // Its first line.
  std::string line(std::string_view name) const;
  // The number in a file; nullopt without a file, or for a word ("max").
  std::optional<std::uint64_t> number(std::string_view name) const;
  // The text after "field:" in a file of such lines, without blanks at the ends; empty if the line
  // is missing.
  std::string field(std::string_view name, std::string_view field) const;

 private:
  std::string root_;
};

// The bracketed word of "always [madvise] never".
std::string bracketed(std::string_view text);

// Searches "NAME=value" texts with zero bytes between them, as in /proc/PID/environ.
std::optional<std::string> variable_in(std::string_view variables, std::string_view name);

// The soft and the hard limit, by the name that /proc/self/limits has for it ("Max open files");
// UINT64_MAX is unlimited, nullopt: there is no such line.
struct Limit {
  static constexpr std::uint64_t kUnlimited = UINT64_MAX;
  std::uint64_t soft = kUnlimited;
  std::uint64_t hard = kUnlimited;
};
std::optional<Limit> limit_of(const SystemFiles& files, std::string_view name);

// As the kernel names it; its architecture where it does not.
std::string processor_name(const SystemFiles& files);

}  // namespace memspan
