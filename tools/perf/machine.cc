// SPDX-License-Identifier: Apache-2.0
#include "perf/machine.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "command_line/environment.h"
#include "core/cpu.h"
#include "core/environment.h"
#include "system_files/system_files.h"
#include "world/launch.h"

namespace memspan::perf {
namespace {

// "48K data, 32K instruction, 2048K unified of level 2", as the kernel describes the first core.
std::string caches(const SystemFiles& files) {
  std::string all;
  for (int i = 0;; ++i) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", i);
    const std::string size = files.line(folder + "size");
    if (size.empty()) return all.empty() ? "unknown" : all;
    const std::string type = files.line(folder + "type");
    all += fmt::format("{}L{} {}{}", all.empty() ? "" : ", ", files.line(folder + "level"), size,
                       type == "Unified" ? ""
                       : type == "Data"  ? " data"
                                         : " instruction");
  }
}

bool may_be_secret(std::string_view name, std::string_view value) {
  constexpr std::array<std::string_view, 4> kParts = {"SECRET", "PASS", "KEY", "TOKEN"};
  return value.find('@') != std::string_view::npos ||  // a user and a password of an address
         std::any_of(kParts.begin(), kParts.end(), [&](std::string_view part) {
           return name.find(part) != std::string_view::npos;
         });
}

}  // namespace

Facts describe_machine() {
  utsname about = {};
  ::uname(&about);
  const SystemFiles files;
  const std::string memory = files.field("/proc/meminfo", "MemTotal");
  const auto bytes = std::strtoull(memory.c_str(), nullptr, 10) * 1024;
  const std::string governor = files.line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  return {{"processor", processor_name(files)},
          {"cores",
           fmt::format("{} usable of {} online", usable_cores(), ::sysconf(_SC_NPROCESSORS_ONLN))},
          {"caches", caches(files)},
          {"frequency governor", governor.empty() ? "unknown" : governor},
          {"memory", format_size(bytes)},
          {"kernel", fmt::format("{} {} {}", about.sysname, about.release, about.machine)},
          {"host", about.nodename}};
}

Facts set_variables() {
  Facts all;
  for (char** entry = environment(); *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (!name.starts_with("MEMSPAN_") && !name.starts_with("SHMEM_")) continue;
    if (name.size() == text.size() || name == kLaunchVariable) continue;
    const std::string_view value = text.substr(name.size() + 1);
    all.emplace_back(name, may_be_secret(name, value) ? "(not recorded)" : value);
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::string time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  ::gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts)};
}

}  // namespace memspan::perf
