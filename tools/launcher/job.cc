// SPDX-License-Identifier: Apache-2.0
#include "launcher/job.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <set>
#include <string_view>

#include "core/cpu.h"
#include "core/environment.h"
#include "device/pages.h"
#include "launcher/binding.h"
#include "launcher/rendezvous.h"
#include "memory/address_plan.h"
#include "world/launch.h"

namespace memspan::launcher {
namespace {

constexpr const char* kRankVariable = "MEMSPAN_RANK";
constexpr const char* kSizeVariable = "MEMSPAN_SIZE";
constexpr const char* kLocalRankVariable = "MEMSPAN_LOCAL_RANK";

bool is_executable_file(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

std::string_view key_of(std::string_view setting) {
  return setting.substr(0, setting.find('='));
}

// Ours without what each rank gets of its own, and with the user's --env in place of what was
// there.
std::vector<std::string> common_environment(const std::vector<std::string>& settings) {
  std::set<std::string_view> replaced = {kLaunchVariable, kRankVariable, kSizeVariable,
                                         kLocalRankVariable};
  std::vector<std::string> result;
  for (auto setting = settings.rbegin(); setting != settings.rend();
       ++setting)  // the last one holds
    if (replaced.insert(key_of(*setting)).second) result.push_back(*setting);
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (replaced.find(key_of(*entry)) == replaced.end()) result.emplace_back(*entry);
  return result;
}

std::uint64_t memory_of_host() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * page_size();
}

constexpr int kOpenFilesOfOurOwn = 64;

// Raises the launcher's own limit as far as the job needs; the processes get the old one back.
Result<rlimit> make_room_for_descriptors(const Options& options) {
  rlimit before{};
  if (getrlimit(RLIMIT_NOFILE, &before) != 0) return Status::from_errno("getrlimit");
  const int each = options.output == Output::kLabelled ? 3 : 1;
  const auto needed = static_cast<rlim_t>(each) * static_cast<rlim_t>(options.processes) +
                      kFirstChildDescriptor + kOpenFilesOfOurOwn;
  if (needed <= before.rlim_cur) return before;
  rlimit raised = before;
  raised.rlim_cur = needed;
  if (needed > before.rlim_max)
    return Status(
        Code::kUnavailable,
        fmt::format(
            "{} processes need {} open files in the launcher, and the limit is {} (ulimit -Hn)",
            options.processes, needed, before.rlim_max));
  if (setrlimit(RLIMIT_NOFILE, &raised) != 0) return Status::from_errno("setrlimit");
  return before;
}

}  // namespace

Result<std::string> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (is_executable_file(name)) return name;
    return Status(Code::kNotFound,
                  fmt::format("cannot start \"{}\": {}", name,
                              access(name.c_str(), F_OK) == 0 ? "it is not an executable file"
                                                              : "there is no such file"));
  }
  std::string path = environment_or("PATH", "/usr/local/bin:/usr/bin:/bin");
  for (std::string_view rest = path;;) {
    std::size_t colon = rest.find(':');
    std::string folder(rest.substr(0, colon));
    std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (!name.empty() && is_executable_file(candidate)) return candidate;
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  return Status(
      Code::kNotFound,
      fmt::format(
          "cannot start \"{}\": there is no such program in PATH{}", name,
          is_executable_file("./" + name) ? fmt::format("; did you mean ./{}?", name) : ""));
}

Result<Fd> duplicate_high(int descriptor) {
  Fd copy(fcntl(descriptor, F_DUPFD_CLOEXEC, kFirstChildDescriptor));
  if (!copy.is_valid()) return Status::from_errno("making a descriptor for the processes");
  return copy;
}

Result<Job> Job::make(Options options) {
  auto program = find_program(options.command[0]);
  if (!program.is_ok()) return program.status();
  auto cores = choose_cores(options.binding, options.processes);
  if (!cores.is_ok()) return cores.status();
  auto open_files = make_room_for_descriptors(options);
  if (!open_files.is_ok()) return open_files.status();
  const std::uint64_t stride = heap_file_stride(memory_of_host());
  const bool oversubscribed = options.processes > usable_cores();
  MEMSPAN_TRY_ASSIGN(Board board, Board::create(options.processes, stride, oversubscribed),
                     "preparing the job");
  MEMSPAN_TRY_ASSIGN(
      Pages heap,
      Pages::create(stride * static_cast<std::uint64_t>(options.processes), "memspan-heap"),
      "making the heaps");
  Job job(std::move(options), std::move(*program), std::move(board));
  MEMSPAN_TRY_ASSIGN(job.board_descriptor_, duplicate_high(job.board_.descriptor()),
                     "preparing the job");
  MEMSPAN_TRY_ASSIGN(job.heap_descriptor_, duplicate_high(heap.descriptor()), "preparing the job");
  job.open_files_ = *open_files;
  job.cores_ = std::move(*cores);
  job.environment_ = common_environment(job.options_.environment);
  add_rendezvous(job.environment_, free_port());
  return job;
}

std::vector<std::string> Job::environment_of(int rank, int store) const {
  std::vector<std::string> result = environment_;
  Launch launch{rank, size(), board_for_children(), heap_for_children(), store};
  result.push_back(fmt::format("{}={}", kLaunchVariable, launch.encode()));
  result.push_back(fmt::format("{}={}", kRankVariable, rank));
  result.push_back(fmt::format("{}={}", kSizeVariable, size()));
  result.push_back(fmt::format("{}={}", kLocalRankVariable, rank));
  return result;
}

}  // namespace memspan::launcher
