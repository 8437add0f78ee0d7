// SPDX-License-Identifier: Apache-2.0
#include "launcher/host_list.h"

#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <set>
#include <string_view>

#include "core/environment.h"
#include "node/segment.h"

namespace memspan::launcher {
namespace {

constexpr std::string_view kBlank = " \t\r";
constexpr std::string_view kNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:[]%@";

Status invalid(std::string message) {
  return {Code::kInvalidArgument, std::move(message)};
}

std::string own_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

// The name becomes a word of the remote shell's command.
Status check_name(const std::string& option, const std::string& name) {
  if (!name.empty() && name[0] != '-' &&
      name.find_first_not_of(kNameCharacters) == std::string::npos)
    return Status::ok();
  return invalid(
      fmt::format("{} names the host \"{}\"; allowed are letters, digits and ._-:[]%@, "
                  "and no - in front",
                  option, name));
}

Result<int> parse_slots(const std::string& option, const std::string& host, std::string_view text) {
  MEMSPAN_TRY_ASSIGN(
      const std::int64_t slots,
      parse_integer(fmt::format("the number of slots of \"{}\"", host), text, 1, kMostPeers),
      option);
  return static_cast<int>(slots);
}

// "node1", "node1:4", "[::1]:4"; an address of IPv6 without brackets has no slots.
Result<HostSlots> parse_host(const std::string& option, std::string_view text) {
  const std::size_t bracket = text.rfind(']');
  const std::size_t colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
  const bool has_slots = colon != std::string_view::npos && colon == text.rfind(':');
  HostSlots host;
  host.name = text.substr(0, has_slots ? colon : std::string_view::npos);
  MEMSPAN_PASS(check_name(option, host.name));
  if (!has_slots) return host;
  MEMSPAN_TRY_ASSIGN(host.slots, parse_slots(option, host.name, text.substr(colon + 1)), option);
  return host;
}

// Takes the next word.
std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kBlank));
  line.remove_prefix(word.size());
  return word;
}

}  // namespace

Result<HostList> parse_host_list(const std::string& option, const std::string& list) {
  HostList hosts;
  for (const std::string_view part : split(list, ',')) {
    MEMSPAN_TRY_ASSIGN(HostSlots host, parse_host(option, part), option);
    hosts.push_back(std::move(host));
  }
  return hosts;
}

Result<HostList> read_host_file(const std::string& option, const std::string& path) {
  std::ifstream file(path);
  if (!file) return invalid(Status::from_errno(fmt::format("{} \"{}\"", option, path)).message());
  HostList hosts;
  for (std::string text; std::getline(file, text);) {
    std::string_view line = std::string_view(text).substr(0, text.find('#'));
    const std::string_view name = take_word(line);
    if (name.empty()) continue;
    MEMSPAN_TRY_ASSIGN(HostSlots host, parse_host(option, name), option);
    for (std::string_view word = take_word(line); !word.empty(); word = take_word(line)) {
      constexpr std::string_view kSlots = "slots=";
      if (!word.starts_with(kSlots))
        return invalid(fmt::format("{} \"{}\" says \"{}\" of the host \"{}\"; allowed is slots=N",
                                   option, path, word, host.name));
      MEMSPAN_TRY_ASSIGN(host.slots, parse_slots(option, host.name, word.substr(kSlots.size())),
                         option);
    }
    hosts.push_back(std::move(host));
  }
  // Also what std::ifstream makes of a folder.
  if (hosts.empty()) return invalid(fmt::format("{} \"{}\" names no host", option, path));
  return hosts;
}

bool is_this_host(const std::string& name) {
  const std::string own = own_name();
  return name == "localhost" || name == "::1" || name == "[::1]" || name.starts_with("127.") ||
         name == own || name.substr(0, name.find('.')) == own.substr(0, own.find('.'));
}

namespace {
MEMSPAN_REMEDY(kTooFewSlots, "not-enough-slots",
               "A host runs one process unless the list has more slots for it.",
               "Write --hosts a:4,b:4 (in a host file: a slots=4), or ask for fewer processes.");
}  // namespace

Result<std::vector<int>> place(const HostList& hosts, int processes) {
  std::vector<int> placed;
  std::set<std::string> seen;
  int left = processes;
  for (const HostSlots& host : hosts) {
    if (!seen.insert(is_this_host(host.name) ? "localhost" : host.name).second)
      return invalid(
          fmt::format("the host \"{}\" is listed twice; allowed is once, with all of "
                      "its slots",
                      host.name));
    placed.push_back(std::min(left, host.slots));
    left -= placed.back();
  }
  if (left > 0)
    return invalid(fmt::format("-n says {}, and the {} hosts have {} slots{}", processes,
                               hosts.size(), processes - left, kTooFewSlots));
  return placed;
}

}  // namespace memspan::launcher
