// SPDX-License-Identifier: Apache-2.0
#include "launcher/remote_shell.h"

#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

#include <sstream>

#include "launcher/agent.h"

namespace memspan::launcher {
namespace {

constexpr std::string_view kHostMark = "{}";
constexpr std::string_view kPathCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/+,:=@%";

// A remote shell may hand the words to a shell there, or not; so nothing is quoted.
Status check_path(const std::string& path) {
  if (path.find_first_not_of(kPathCharacters) == std::string::npos) return Status::ok();
  return {Code::kInvalidArgument,
          fmt::format("oshrun's path on the other hosts is \"{}\"; allowed are letters, digits and "
                      "._-/+,:=@%; --remote-oshrun names another",
                      path)};
}

}  // namespace

std::string own_path() {
  char path[PATH_MAX] = {};
  return readlink("/proc/self/exe", path, sizeof path - 1) > 0 ? path : "oshrun";
}

Result<std::vector<std::string>> agent_command(const Options& options, const std::string& host) {
  if (is_this_host(host)) return std::vector<std::string>{own_path(), kAgentOption};
  const std::string path = options.remote_oshrun.empty() ? own_path() : options.remote_oshrun;
  MEMSPAN_PASS(check_path(path));
  std::vector<std::string> words;
  bool has_host = false;
  std::istringstream text(options.remote_shell);
  for (std::string word; text >> word;) {
    for (std::size_t at = word.find(kHostMark); at != std::string::npos;
         at = word.find(kHostMark, at + host.size())) {
      word.replace(at, kHostMark.size(), host);
      has_host = true;
    }
    words.push_back(std::move(word));
  }
  if (!has_host) words.push_back(host);
  words.push_back(path);
  words.emplace_back(kAgentOption);
  return words;
}

}  // namespace memspan::launcher
