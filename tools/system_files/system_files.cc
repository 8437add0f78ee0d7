// SPDX-License-Identifier: Apache-2.0
#include "system_files/system_files.h"

#include <sys/utsname.h>
#include <unistd.h>
#include <algorithm>

#include <charconv>
#include <fstream>
#include <sstream>

namespace memspan {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view next_word(std::string_view& text) {
  text = trimmed(text);
  const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

bool SystemFiles::has(std::string_view name) const {
  return ::access(path(name).c_str(), F_OK) == 0;
}

std::string SystemFiles::text(std::string_view name) const {
  std::ifstream file(path(name));
  std::ostringstream text;
  if (file) text << file.rdbuf();
  return text.str();
}

std::string SystemFiles::line(std::string_view name) const {
  std::string line;
  std::ifstream file(path(name));
  std::getline(file, line);
  return line;
}

std::optional<std::uint64_t> SystemFiles::number(std::string_view name) const {
  const std::string found = line(name);
  return number_of(trimmed(found));
}

std::string SystemFiles::field(std::string_view name, std::string_view field) const {
  const std::string all = text(name);
  for (std::string_view rest = all; !rest.empty();) {
    const std::string_view line = next_line(rest);
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && trimmed(line.substr(0, colon)) == field)
      return std::string(trimmed(line.substr(colon + 1)));
  }
  return {};
}

std::string bracketed(std::string_view text) {
  const std::size_t begin = text.find('[');
  const std::size_t end = text.find(']');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return {};
  return std::string(text.substr(begin + 1, end - begin - 1));
}

std::string processor_name(const SystemFiles& files) {
  constexpr std::string_view kFile = "/proc/cpuinfo";
  std::string name = files.field(kFile, "model name");  // x86
  if (name.empty()) name = files.field(kFile, "Model");
  if (!name.empty()) return name;
  utsname about = {};
  return ::uname(&about) == 0 ? about.machine : "unknown";
}

std::optional<std::string> variable_in(std::string_view variables, std::string_view name) {
  while (!variables.empty()) {
    const std::string_view one = variables.substr(0, variables.find('\0'));
    variables.remove_prefix(std::min(one.size() + 1, variables.size()));
    if (one.starts_with(name) && one.substr(name.size()).starts_with('='))
      return std::string(one.substr(name.size() + 1));
  }
  return std::nullopt;
}

std::optional<Limit> limit_of(const SystemFiles& files, std::string_view name) {
  const std::string all = files.text("/proc/self/limits");
  for (std::string_view rest = all; !rest.empty();) {
    std::string_view line = next_line(rest);
    if (!line.starts_with(name)) continue;
    line.remove_prefix(name.size());
    // A word that is no number is "unlimited".
    const auto soft = number_of(next_word(line));
    const auto hard = number_of(next_word(line));
    return Limit{soft.value_or(Limit::kUnlimited), hard.value_or(Limit::kUnlimited)};
  }
  return std::nullopt;
}

}  // namespace memspan
