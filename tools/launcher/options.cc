// SPDX-License-Identifier: Apache-2.0
#include "launcher/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <numeric>
#include <string_view>
#include <utility>

#include "core/environment.h"
#include "launcher/host_list.h"
#include "launcher/option_names.h"
#include "node/segment.h"
#include "world/launch.h"

namespace memspan::launcher {
namespace {

constexpr double kLongestTimeoutSeconds = 1e9;

Status invalid(std::string message) {
  return {Code::kInvalidArgument, std::move(message)};
}

Status not_allowed(const Option& option, std::string_view allowed) {
  return invalid(
      fmt::format("{} is \"{}\"; allowed is {}", option.typed, option.value.value(), allowed));
}

Status set_processes(const Option& option, Program& program) {
  MEMSPAN_PASS_ASSIGN(auto count, parse_integer(option.typed, *option.value, 1, kMostPeers));
  program.processes = static_cast<int>(count);
  return Status::ok();
}

Status add_variable(const Option& option, Program& program) {
  const std::size_t equals = option.value->find('=');
  if (equals == 0 || option.value->empty())
    return not_allowed(option,
                       option.meaning == Meaning::kExport ? "NAME or NAME=VALUE" : "NAME=VALUE");
  if (equals != std::string::npos)
    program.environment.push_back(*option.value);
  else if (option.meaning == Meaning::kVariable)
    return not_allowed(option, "NAME=VALUE");
  return Status::ok();  // a mere NAME: the processes have our environment
}

Status set_timeout(const Option& option, Options& options) {
  double seconds = 0;
  const char* end = option.value->data() + option.value->size();
  auto [stopped, error] = std::from_chars(option.value->data(), end, seconds);
  if (error != std::errc() || stopped != end || !(seconds > 0 && seconds <= kLongestTimeoutSeconds))
    return not_allowed(option, "a positive number of seconds");
  options.timeout = from_seconds(seconds);
  return Status::ok();
}

// A number of hosts stays as it is until all processes are known (spread_over_hosts()).
Status set_hosts(const Option& option, Options& options) {
  auto sizes = parse_host_sizes(option.typed.c_str(), *option.value);
  if (!sizes.is_ok())
    return not_allowed(option, "a number of hosts, or how many processes each has, as 2+1+1");
  options.hosts = std::move(*sizes);
  return Status::ok();
}

// For whole test suites: what --simulate-hosts says for jobs that do not say it, as far as there
// are so many processes.
constexpr const char* kHostsVariable = "MEMSPAN_SIMULATE_HOSTS";

// The first hosts have one more where they cannot be even.
Status spread_over_hosts(Options& options) {
  std::vector<int>& hosts = options.hosts;
  const int processes = options.processes();
  MEMSPAN_PASS_ASSIGN(const auto wanted, environment_integer(kHostsVariable, 1, kMostPeers));
  if (hosts.empty() && wanted)
    hosts.push_back(static_cast<int>(std::min<std::int64_t>(*wanted, processes)));
  if (hosts.size() == 1) {
    const int count = hosts[0];
    if (count > processes)
      return invalid(fmt::format("--simulate-hosts is {}, and there are only {} processes (-n)",
                                 count, processes));
    hosts.clear();
    for (int host = 0; host < count; ++host)
      hosts.push_back(processes / count + (host < processes % count ? 1 : 0));
  }
  const int sum = std::accumulate(hosts.begin(), hosts.end(), 0);
  if (!hosts.empty() && sum != processes)
    return invalid(
        fmt::format("--simulate-hosts is \"{}\", which makes {} processes, and -n says {}",
                    format_host_sizes(hosts), sum, processes));
  if (hosts.size() == 1) hosts.clear();
  return Status::ok();
}

// Places the processes. A list that gives them all to this host is a job of this host.
Status place_on_hosts(const HostList& list, Options& options) {
  if (list.empty()) return Status::ok();
  if (!options.hosts.empty())
    return invalid("--simulate-hosts and a list of hosts exclude each other");
  const auto is_own = [](const HostSlots& host) { return is_this_host(host.name); };
  if (std::all_of(list.begin(), list.end(), is_own)) return Status::ok();
  MEMSPAN_PASS_ASSIGN(const auto placed, place(list, options.processes()));
  for (std::size_t i = 0; i < list.size(); ++i) {
    if ((placed)[i] == 0) continue;
    options.hosts.push_back((placed)[i]);
    options.host_names.push_back(list[i].name);
  }
  if (options.hosts.size() > 1 || !is_own({options.host_names[0]})) return Status::ok();
  options.hosts.clear();
  options.host_names.clear();
  return Status::ok();
}

// One of two words; `first` and `second` are what they stand for.
template <typename T>
Status set_choice(const Option& option, T& target, std::pair<std::string_view, T> first,
                  std::pair<std::string_view, T> second) {
  for (const auto& [word, meaning] : {first, second}) {
    if (*option.value != word) continue;
    target = meaning;
    return Status::ok();
  }
  return not_allowed(option, fmt::format("{} or {}", first.first, second.first));
}

Status append(Result<HostList> more, HostList& hosts) {
  if (more.is_ok()) hosts.insert(hosts.end(), more->begin(), more->end());
  return more.status();
}

Status set_text(const Option& option, std::string& target, std::string_view allowed) {
  target = *option.value;
  return target.find_first_not_of(' ') == std::string::npos ? not_allowed(option, allowed)
                                                            : Status::ok();
}

Status apply(const Option& option, Program& program, Options& options, HostList& hosts) {
  switch (option.meaning) {
    case Meaning::kProcesses:
      return set_processes(option, program);
    case Meaning::kVariable:
    case Meaning::kExport:
      return add_variable(option, program);
    case Meaning::kFolder:
      program.folder = *option.value;
      return program.folder.empty() ? not_allowed(option, "a folder") : Status::ok();
    case Meaning::kLabel:
      options.label = Label::kRank;
      break;
    case Meaning::kOutput:
      return set_choice<Buffering>(option, options.buffering, {"live", Buffering::kLive},
                                   {"buffered", Buffering::kBuffered});
    case Meaning::kTimeout:
      return set_timeout(option, options);
    case Meaning::kStacks:
      options.on_timeout = OnTimeout::kTellStacks;
      break;
    case Meaning::kBind:
      return set_choice<Binding>(option, options.binding, {"core", Binding::kCore},
                                 {"none", Binding::kNone});
    case Meaning::kKeepGoing:
      options.on_failure = OnFailure::kKeepGoing;
      break;
    case Meaning::kHosts:
      return append(parse_host_list(option.typed, *option.value), hosts);
    case Meaning::kHostFile:
      return append(read_host_file(option.typed, *option.value), hosts);
    case Meaning::kRemoteShell:
      return set_text(option, options.remote_shell, "a command, with {} for the host's name");
    case Meaning::kRemoteOshrun:
      return set_text(option, options.remote_oshrun, "the path of oshrun on the other hosts");
    case Meaning::kSimulateHosts:
      return set_hosts(option, options);
    case Meaning::kHelp:
    case Meaning::kVersion:
    case Meaning::kNothing:
    case Meaning::kRefused:
      break;
  }
  return Status::ok();
}

// The rest of the command line. A value.
struct Words {
  const char* const* next;
  const char* const* end;
  bool is_empty() const { return next == end; }
  std::string_view take() { return *next++; }
};

enum class Asked { kJob, kHelp, kVersion };

// Takes the options in front of a program. `is_last` becomes true at "--".
Result<Asked> take_options(Words& words, Program& program, Options& options, HostList& hosts,
                           bool& is_last) {
  while (!words.is_empty()) {
    const std::string_view word = *words.next;
    if (word.size() < 2 || word[0] != '-') break;
    words.take();
    is_last = word == "--";
    if (is_last) break;
    MEMSPAN_PASS_ASSIGN(auto option, recognise_option(word));
    if (option.meaning == Meaning::kHelp) return Asked::kHelp;
    if (option.meaning == Meaning::kVersion) return Asked::kVersion;
    if (option.takes_value && !option.value) {
      if (words.is_empty()) return invalid(fmt::format("{} needs a value", option.typed));
      option.value = words.take();
    }
    MEMSPAN_PASS(apply(option, program, options, hosts));
  }
  return Asked::kJob;
}

Result<Asked> take_program(Words& words, Options& options, HostList& hosts) {
  Program program;
  bool is_last = false;
  auto asked = take_options(words, program, options, hosts, is_last);
  if (!asked.is_ok() || *asked != Asked::kJob) return asked;
  while (!words.is_empty()) {
    const std::string_view word = words.take();
    if (word == ":" && !is_last) {
      // Nothing after it: the next call says what is missing.
      if (words.is_empty()) return invalid("after \":\" a program is missing");
      break;
    }
    program.command.emplace_back(word);
  }
  const bool is_first = options.programs.empty();
  if (program.processes == 0 && is_first && words.is_empty())
    for (const HostSlots& host : hosts) program.processes += host.slots;
  if (program.processes == 0)
    return invalid(is_first ? "-n N, the number of processes, is missing"
                            : "-n N is missing after \":\", which begins another program; in front "
                              "of a program whose own argument it is, write --");
  if (program.command.empty()) return invalid("the program to start is missing");
  options.programs.push_back(std::move(program));
  if (options.processes() > kMostPeers)
    return invalid(fmt::format("the programs together have {} processes; allowed is up to {}",
                               options.processes(), kMostPeers));
  return Asked::kJob;
}

}  // namespace

int Options::processes() const {
  int sum = 0;
  for (const Program& program : programs) sum += program.processes;
  return sum;
}

Result<std::optional<Options>> parse_options(int argc, const char* const* argv) {
  Options options;
  HostList hosts;
  Words words{argv + 1, argv + argc};
  do {
    MEMSPAN_PASS_ASSIGN(auto asked, take_program(words, options, hosts));
    if (asked == Asked::kJob) continue;
    if (asked == Asked::kHelp)
      fmt::print("{}", help_text());
    else
      std::puts("oshrun (memspan) " MEMSPAN_VERSION);
    return std::optional<Options>();
  } while (!words.is_empty());
  if (options.on_timeout == OnTimeout::kTellStacks && !options.timeout)
    return invalid("--stacks-on-timeout needs --timeout S, which says when");
  MEMSPAN_PASS(place_on_hosts(hosts, options));
  if (options.host_names.empty()) MEMSPAN_PASS(spread_over_hosts(options));
  return std::optional<Options>(std::move(options));
}

}  // namespace memspan::launcher
