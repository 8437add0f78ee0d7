// SPDX-License-Identifier: Apache-2.0
#include "launcher/job.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <numeric>
#include <set>
#include <string_view>

#include "command_line/environment.h"
#include "core/environment.h"
#include "launcher/binding.h"
#include "launcher/rendezvous.h"
#include "world/launch.h"

namespace memspan::launcher {

struct NumberVariable {
  const char* name;
  enum class Number { kRank, kSize, kLocalRank, kLocalSize } number;
};

namespace {

using Number = NumberVariable::Number;

// The variables with a process's place, by the names that torchrun made usual.
constexpr NumberVariable kUsual[] = {{"RANK", Number::kRank},
                                     {"LOCAL_RANK", Number::kLocalRank},
                                     {"WORLD_SIZE", Number::kSize},
                                     {"LOCAL_WORLD_SIZE", Number::kLocalSize}};

bool is_executable_file(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

bool is_folder(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

std::string_view key_of(std::string_view setting) {
  return setting.substr(0, setting.find('='));
}

constexpr const char* kHostVariable = "MEMSPAN_HOST_ID";

int value_of(Number number, const NodeMap& nodes, int rank) {
  switch (number) {
    case Number::kRank:
      return rank;
    case Number::kSize:
      return nodes.peers();
    case Number::kLocalRank:
      return nodes.index_of(rank);
    case Number::kLocalSize:
      break;
  }
  return nodes.peers_in(nodes.node_of(rank));
}

constexpr int kOpenFilesOfOurOwn = 64;

MEMSPAN_REMEDY(kTooFewFiles, "too-few-open-files",
               "oshrun holds some descriptors for each process, and its hard limit is too low.",
               "Raise the limit (`ulimit -Hn`, LimitNOFILE, docker run --ulimit), or start fewer.");

// Raises the launcher's own limit as far as the job needs; the processes get the old one back.
Result<rlimit> make_room_for_descriptors(Label label, int processes) {
  rlimit before{};
  if (getrlimit(RLIMIT_NOFILE, &before) != 0) return Status::from_errno("getrlimit");
  const int each = label == Label::kRank ? 3 : 1;
  const auto needed = static_cast<rlim_t>(each) * static_cast<rlim_t>(processes) +
                      kFirstChildDescriptor + kOpenFilesOfOurOwn;
  if (needed <= before.rlim_cur) return before;
  rlimit raised = before;
  raised.rlim_cur = needed;
  if (needed > before.rlim_max)
    return Status(
        Code::kUnavailable,
        fmt::format(
            "{} processes need {} open files in the launcher, and the limit is {} (ulimit -Hn){}",
            processes, needed, before.rlim_max, kTooFewFiles));
  if (setrlimit(RLIMIT_NOFILE, &raised) != 0) return Status::from_errno("setrlimit");
  return before;
}

MEMSPAN_REMEDY(
    kNoProgram, "program-not-found",
    "oshrun finds no executable file of that name on this host or on another one.",
    "Give its path (./NAME), run `chmod +x NAME`, and put it at the same path on all hosts.");

}  // namespace

NodeMap map_of_hosts(const Options& options) {
  std::vector<std::string> names;
  for (std::size_t host = 0; host < options.hosts.size(); ++host)
    names.insert(names.end(), static_cast<std::size_t>(options.hosts[host]),
                 options.host_names[host]);
  return NodeMap::of_hosts(names);
}

Result<std::string> find_program(const std::string& name, const std::string& folder) {
  if (name.find('/') != std::string::npos) {
    const std::string seen = folder.empty() || name[0] == '/' ? name : folder + "/" + name;
    if (is_executable_file(seen)) return name;
    return Status(Code::kNotFound,
                  fmt::format("cannot start \"{}\": {}{}", seen,
                              access(seen.c_str(), F_OK) == 0 ? "it is not an executable file"
                                                              : "the file does not exist",
                              kNoProgram));
  }
  std::string path = environment_or("PATH", "/usr/local/bin:/usr/bin:/bin");
  for (std::string_view rest = path;;) {
    std::size_t colon = rest.find(':');
    std::string place(rest.substr(0, colon));
    std::string candidate = (place.empty() ? "." : place) + "/" + name;
    if (!name.empty() && is_executable_file(candidate)) return candidate;
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  return Status(
      Code::kNotFound,
      fmt::format("cannot start \"{}\": no folder of PATH has such a program{}{}", name,
                  is_executable_file("./" + name) ? fmt::format("; did you mean ./{}?", name) : "",
                  kNoProgram));
}

Result<Fd> duplicate_high(int descriptor) {
  Fd copy(fcntl(descriptor, F_DUPFD_CLOEXEC, kFirstChildDescriptor));
  if (!copy.is_valid()) return Status::from_errno("making a descriptor for the processes");
  return copy;
}

Result<Job> Job::make(Options options, std::optional<HostPart> part) {
  std::vector<std::string> files;
  for (const Program& program : options.programs) {
    if (!program.folder.empty() && !is_folder(program.folder))
      return Status(Code::kInvalidArgument,
                    fmt::format("-wdir is \"{}\", which is not a folder", program.folder));
    MEMSPAN_PASS_ASSIGN(auto file, find_program(program.command[0], program.folder));
    files.push_back(std::move(file));
  }
  const auto here = part ? options.hosts.begin() + part->host : options.hosts.end();
  const int processes = part ? *here : options.processes();
  MEMSPAN_PASS_ASSIGN(auto cores, choose_cores(options.binding, processes));
  MEMSPAN_PASS_ASSIGN(auto open_files, make_room_for_descriptors(options.label, processes));
  MEMSPAN_PASS_ASSIGN(auto nodes, part ? Nodes::make_one(map_of_hosts(options), part->host)
                                       : Nodes::make(options.hosts, processes));
  if (part) nodes.set_secret(part->secret);
  const Channel channel = choose_channel(options);
  Job job(std::move(options), channel, std::move(nodes));
  job.count_ = processes;
  if (part)
    job.first_rank_ =
        std::accumulate(job.options_.hosts.begin(), job.options_.hosts.begin() + part->host, 0);
  if (part) job.store_url_ = part->store_url;
  job.open_files_ = open_files;
  job.cores_ = std::move(cores);
  job.files_ = std::move(files);
  // One for all programs of the job.
  const std::string master = part ? part->master : "127.0.0.1";
  const int port = part ? part->master_port : free_port();
  for (const Program& program : job.options_.programs) {
    job.environments_.push_back(environment_for(program, channel, !job.nodes_.map().is_one()));
    add_rendezvous(job.environments_.back().common, master, port);
  }
  return job;
}

// In the order of precedence: what only we may set, the user's --env of which the last one holds,
// the process's place, what suits the terminal, and our own environment.
Job::Environment Job::environment_for(const Program& program, Channel channel, bool has_hosts) {
  std::set<std::string_view> taken = {kLaunchVariable};
  if (has_hosts) taken.insert(kHostVariable);
  Environment result;
  const std::vector<std::string>& settings = program.environment;
  for (auto setting = settings.rbegin(); setting != settings.rend(); ++setting)
    if (taken.insert(key_of(*setting)).second) result.common.push_back(*setting);
  for (const NumberVariable& variable : kUsual)
    if (taken.insert(variable.name).second) result.numbers.push_back(&variable);
  // It can show neither colours nor a cursor: what reads at our end may be a file.
  if (channel == Channel::kTerminal && taken.insert("TERM").second)
    result.common.emplace_back("TERM=dumb");
  for (char** entry = environment(); *entry != nullptr; ++entry)
    if (taken.count(key_of(*entry)) == 0) result.common.emplace_back(*entry);
  return result;
}

std::vector<std::string> Job::environment_of(std::size_t program, int rank, int store) const {
  std::vector<std::string> result = environments_[program].common;
  const NodeMap& map = nodes_.map();
  Launch launch{rank,  size(), nodes_.segment_for_children(rank), nodes_.heap_for_children(rank),
                store, {}};
  if (!map.is_one()) {
    launch.hosts = options_.hosts;
    launch.names = options_.host_names;
    launch.store_url = store_url_;
  }
  result.push_back(fmt::format("{}={}", kLaunchVariable, launch.encode()));
  if (!map.is_one()) result.push_back(fmt::format("{}={}", kHostVariable, map.host_of(rank)));
  for (const NumberVariable* variable : environments_[program].numbers)
    result.push_back(fmt::format("{}={}", variable->name, value_of(variable->number, map, rank)));
  return result;
}

}  // namespace memspan::launcher
