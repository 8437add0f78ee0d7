// SPDX-License-Identifier: Apache-2.0
#include "perf/machine.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include "core/cpu.h"
#include "core/environment.h"
#include "system_files/system_files.h"

namespace memspan::perf {
namespace {

// "48K data, 32K instruction, 2048K unified of level 2", as the kernel tells of the first core.
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
