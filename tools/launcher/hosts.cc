// SPDX-License-Identifier: Apache-2.0
#include "launcher/hosts.h"

#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string_view>

namespace memspan::launcher {
namespace {

std::string own_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

bool is_this_host(std::string_view name, std::string_view own) {
  return name == "localhost" || name == "::1" || name == "[::1]" || name.substr(0, 4) == "127." ||
         name == own || name.substr(0, name.find('.')) == own.substr(0, own.find('.'));
}

// "node1:4" without the number of slots; an address of IPv6 has more colons.
std::string_view without_slots(std::string_view host) {
  const std::size_t colon = host.find(':');
  return colon == host.rfind(':') ? host.substr(0, colon) : host;
}

Status check_host(const std::string& option, std::string_view host) {
  const std::string own = own_name();
  if (is_this_host(without_slots(host), own)) return Status::ok();
  return {Code::kInvalidArgument,
          fmt::format("{} names the host \"{}\"; in this version a job runs on one host, and this "
                      "is {}",
                      option, host, own)};
}

}  // namespace

Status check_hosts(const std::string& option, const std::string& list) {
  std::string_view rest = list;
  for (;;) {
    const std::size_t comma = rest.find(',');
    MEMSPAN_PASS(check_host(option, rest.substr(0, comma)));
    if (comma == std::string_view::npos) return Status::ok();
    rest.remove_prefix(comma + 1);
  }
}

Status check_host_file(const std::string& option, const std::string& path) {
  std::ifstream file(path);
  if (!file)
    return {Code::kInvalidArgument,
            Status::from_errno(fmt::format("{} \"{}\"", option, path)).message()};
  for (std::string line; std::getline(file, line);) {
    constexpr const char* kBlank = " \t\r";
    line.resize(std::min(line.find('#'), line.size()));
    const std::size_t begin = line.find_first_not_of(kBlank);
    if (begin == std::string::npos) continue;
    const std::size_t end = line.find_first_of(kBlank, begin);
    MEMSPAN_PASS(check_host(option, std::string_view(line).substr(begin, end - begin)));
  }
  return Status::ok();
}

}  // namespace memspan::launcher
