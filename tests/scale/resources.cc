// SPDX-License-Identifier: Apache-2.0
#include "resources.h"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "core/clock.h"

namespace memspan::scale {

double now_s() {
  return to_seconds(Clock::now().time_since_epoch());
}

std::uint64_t resident_bytes() {
  malloc_trim(0);
  std::ifstream file("/proc/self/statm");
  std::uint64_t all = 0;
  std::uint64_t resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::uint64_t most_resident_bytes() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<std::uint64_t>(used.ru_maxrss) * 1024;
}

std::uint64_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::uint64_t>(std::distance(begin(all), end(all)));
}

std::uint64_t most_descriptors() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : 0;
}

Status need_descriptors(std::uint64_t count) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return Status::from_errno("reading RLIMIT_NOFILE");
  if (limit.rlim_max < count)
    return {Code::kUnavailable,
            fmt::format("a process of this simulation needs {} descriptors, and the hard limit is "
                        "{} (ulimit -Hn)",
                        count, limit.rlim_max)};
  if (limit.rlim_cur >= count) return Status::ok();
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? Status::ok()
                                               : Status::from_errno("raising RLIMIT_NOFILE");
}

}  // namespace memspan::scale
