// SPDX-License-Identifier: Apache-2.0
#include "info/route.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/environment.h"
#include "info/gather.h"
#include "info/look_up.h"
#include "info/route_way.h"
#include "net/own_addresses.h"

namespace memspan::info {
namespace {

constexpr std::uint64_t kPtraceCapability = std::uint64_t{1} << 19;  // CAP_SYS_PTRACE

// "net:[4026531840]".
Result<std::string> namespace_of(const SystemFiles& files, std::string_view process,
                                 std::string_view kind) {
  char text[64] = {};
  const std::string path = files.path(fmt::format("/proc/{}/ns/{}", process, kind));
  const ssize_t size = ::readlink(path.c_str(), text, sizeof text - 1);
  if (size < 0) return Status::from_errno("its namespaces cannot be read");
  return std::string(text, static_cast<std::size_t>(size));
}

std::optional<std::uint64_t> number_of(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// ProcessFacts::host of this user's own processes.
std::string own_host(const SystemFiles& files) {
  const auto given = environment("MEMSPAN_HOST_ID");
  if (given) return *given;
  const auto network = namespace_of(files, "self", "net");
  return network.is_ok() ? *network : std::string();
}

// Why process_vm_readv would not reach; empty where it does.
std::string why_no_access(const SystemFiles& files, const ProcessFacts& from,
                          const ProcessFacts& to) {
  if (!from.is_process || !to.is_process) return {};  // nothing is known of it
  if (from.pid_namespace != to.pid_namespace) return "they are in different pid namespaces";
  for (const auto& [one, other] : {std::pair(&from, &to), std::pair(&to, &from)}) {
    const bool may_trace = (one->capabilities & kPtraceCapability) != 0;
    if (one->user != other->user && !may_trace)
      return fmt::format("{} is user {}'s and {} user {}'s", one->name, one->user, other->name,
                         other->user);
    const auto scope = files.number("/proc/sys/kernel/yama/ptrace_scope");
    if (scope.value_or(0) >= 3 || (scope.value_or(0) == 2 && !may_trace))
      return fmt::format("kernel.yama.ptrace_scope is {}", *scope);
  }
  return {};
}

bool are_near(const ProcessFacts& from, const ProcessFacts& to) {
  if (from.is_process && to.is_process) return from.host == to.host;
  return from.is_this_host && to.is_this_host;
}

Result<ProcessFacts> facts_of_host(const std::string& name) {
  ProcessFacts facts{.name = "host " + name, .host = name, .settings = own_settings()};
  const auto addresses = look_up({name, 1}, Deadline::after(kAskedPatience));
  if (addresses.code() == Code::kTimeout) return addresses.status();
  if (addresses.is_ok())
    for (const HostAddress& each : *addresses) {
      if (!address_towards({each.text, 1})) continue;
      facts.address = each.text;
      facts.is_this_host = name == host_name() || each.is_here;
      return facts;
    }
  return Status(Code::kInvalidArgument,
                fmt::format("\"{}\" is neither a process of this host nor a host that is known "
                            "and to which there is a way",
                            name));
}

Result<ProcessFacts> facts_of(const std::string& end) {
  if (!is_digits(end)) return facts_of_host(end);
  const auto process = number_of(end, 10);
  if (!process)
    return Status(Code::kInvalidArgument,
                  fmt::format("\"{}\" is not the number of a process", end));
  return facts_of_process(SystemFiles(), *process);
}

}  // namespace

Result<ProcessFacts> facts_of_process(const SystemFiles& files, std::uint64_t process) {
  const std::string folder = fmt::format("/proc/{}/", process);
  if (!files.has(folder + "status"))
    return Status(Code::kInvalidArgument,
                  fmt::format("there is no process {} on this host", process));
  ProcessFacts facts{
      .name = fmt::format("process {} ({})", process, files.line(folder + "comm")),
      .is_process = true,
      .user = number_of(files.field(folder + "status", "Uid"), 10).value_or(0),
      .capabilities = number_of(files.field(folder + "status", "CapEff"), 16).value_or(0)};
  const std::string number = std::to_string(process);
  const auto network = namespace_of(files, number, "net");
  if (!network.is_ok())
    return Status(Code::kAuth, fmt::format("{}: {}", facts.name, network.status().message()));
  const auto pid_namespace = namespace_of(files, number, "pid");
  facts.network = *network;
  facts.pid_namespace = pid_namespace.is_ok() ? *pid_namespace : std::string();
  const std::string variables = files.text(folder + "environ");
  facts.host = variable_in(variables, "MEMSPAN_HOST_ID").value_or(*network);
  facts.is_this_host = facts.host == own_host(files);
  facts.settings = settings_in(variables);
  return facts;
}

Findings compare(const SystemFiles& files, const ProcessFacts& from, const ProcessFacts& to) {
  Findings findings;
  findings.push_back({.group = "route",
                      .key = "ends",
                      .text = fmt::format("{} and {}", from.name, to.name),
                      .value = json::Value().set("from", from.name).set("to", to.name)});
  const bool is_near = are_near(from, to);
  std::string why = is_near ? "one node: they share memory" : "two nodes: nothing is mapped";
  if (!is_near && from.is_process && to.is_process)
    why += fmt::format(" ({} and {})", from.host, to.host);
  findings.push_back({.group = "route", .key = "same_node", .text = why, .value = is_near});
  const Pair pair{.from = from.name, .to = to.name, .same_node = is_near};
  const std::vector<End> ends = ends_of(from, to, is_near);
  Finding heap = way("heaps_and_pools", pair, ends, {"mapped", "message"});
  Finding registered = way("registered_memory", pair, ends, {"cma", "message"});
  // The library takes cma on one node without asking the kernel first.
  const bool is_by_kernel = registered.value["transport"].text() == "cma";
  if (const std::string forbids = why_no_access(files, from, to);
      is_by_kernel && !forbids.empty()) {
    registered.text = fmt::format("cma, which the kernel does not allow: {}", forbids);
    registered = judged(std::move(registered), Judgement::kProblem,
                        "two processes of one user in one pid namespace, or CAP_SYS_PTRACE",
                        "take the memory from smem_trans_malloc, which needs none of this");
  }
  findings.push_back(std::move(heap));
  findings.push_back(std::move(registered));
  return findings;
}

Result<Findings> gather_route(const std::string& from, const std::string& to) {
  MEMSPAN_PASS_ASSIGN(auto one, facts_of(from));
  MEMSPAN_PASS_ASSIGN(auto other, facts_of(to));
  // From here to there is what this host knows; between two others it knows nothing.
  const auto is_elsewhere = [](const ProcessFacts& end) {
    return !end.is_process && !end.is_this_host;
  };
  if (is_elsewhere(one) && is_elsewhere(other))
    return Status(Code::kInvalidArgument,
                  fmt::format("\"{}\" and \"{}\" are both other hosts; one end has to be a "
                              "process of this host, or this host (localhost)",
                              from, to));
  return compare(SystemFiles(), one, other);
}

}  // namespace memspan::info
