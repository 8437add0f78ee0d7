// SPDX-License-Identifier: Apache-2.0
#include "perf/machine.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>
#include <fstream>

#include "core/cpu.h"
#include "core/environment.h"

namespace memspan::perf {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string field(const char* path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (!line.starts_with(name) || colon == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return {};
}

// "48K data, 32K instruction, 2048K unified of level 2", as the kernel tells of the first core.
std::string caches() {
  std::string all;
  for (int i = 0;; ++i) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", i);
    const std::string size = first_line(folder + "size");
    if (size.empty()) return all.empty() ? "unknown" : all;
    const std::string type = first_line(folder + "type");
    all += fmt::format("{}L{} {}{}", all.empty() ? "" : ", ", first_line(folder + "level"), size,
                       type == "Unified" ? ""
                       : type == "Data"  ? " data"
                                         : " instruction");
  }
}

}  // namespace

Facts describe_machine() {
  utsname about = {};
  ::uname(&about);
  std::string processor = field("/proc/cpuinfo", "model name");
  if (processor.empty()) processor = about.machine;
  const std::string memory = field("/proc/meminfo", "MemTotal");
  const auto bytes = std::strtoull(memory.c_str(), nullptr, 10) * 1024;
  const std::string governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  return {{"processor", processor},
          {"cores",
           fmt::format("{} usable of {} online", usable_cores(), ::sysconf(_SC_NPROCESSORS_ONLN))},
          {"caches", caches()},
          {"frequency governor", governor.empty() ? "not told" : governor},
          {"memory", format_size(bytes)},
          {"kernel", fmt::format("{} {} {}", about.sysname, about.release, about.machine)},
          {"host", about.nodename}};
}

std::string time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  ::gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts)};
}

}  // namespace memspan::perf
