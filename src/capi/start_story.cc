// SPDX-License-Identifier: Apache-2.0
#include "capi/start_story.h"

#include <fmt/format.h>
#include <unistd.h>

#include "core/cpu.h"
#include "core/environment.h"
#include "core/log.h"
#include "memory/budget.h"
#include "net/host_identity.h"

namespace memspan::capi {
namespace {

double milliseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

std::string describe_budget() {
  const auto budget = measure_memory_budget();
  if (!budget.is_ok()) return budget.status().message();
  return fmt::format("{} may be taken ({})", format_size(budget->available), budget->source);
}

std::string describe_memory(const World& world) {
  const RouteTable& routes = world.routes();
  const bool is_at_allocation = world.commit_mode() == CommitMode::kAtAllocation;
  return fmt::format(
      "memory: a symmetric heap of {} at {:#x}, taken at {}; {} of global and static variables are "
      "symmetric; {}",
      format_size(routes.heap.bytes), routes.heap.base,
      is_at_allocation ? "allocation" : "the first use of each page",
      format_size(routes.data.bytes), describe_budget());
}

}  // namespace

StartStory::StartStory(const char* call)
    : call_(call),
      is_told_(log_level() <= LogLevel::kDebug),
      begin_(std::chrono::steady_clock::now()),
      last_(begin_) {}

void StartStory::step(const char* what) {
  if (!is_told_) return;
  const auto now = std::chrono::steady_clock::now();
  steps_ +=
      fmt::format("{}{} {:.2f} ms", steps_.empty() ? "" : ", ", what, milliseconds(now - last_));
  last_ = now;
}

void StartStory::tell(const World& world, std::string_view how_joined) const {
  if (log_level() <= LogLevel::kInfo)
    log_line(LogLevel::kInfo, fmt::format("{}: {}", call_, world.describe_routes()));
  if (!is_told_) return;
  auto say = [&](const std::string& line) {
    log_line(LogLevel::kDebug, fmt::format("{}: {}", call_, line));
  };
  say(fmt::format("process: memspan {}, process {} is PE {} of {}, {}", MEMSPAN_VERSION, getpid(),
                  world.rank(), world.size(), how_joined));
  const bool is_crowded = world.is_oversubscribed();
  say(fmt::format("where: host {}, {} core{} for this process; waits {}", host_name(),
                  usable_cores(), usable_cores() == 1 ? "" : "s",
                  is_crowded ? "yield at once, since there are more PEs than cores"
                             : "spin before they yield"));
  say(describe_memory(world));
  int direct = 0;
  for (int peer = 0; peer < world.size(); ++peer) direct += world.route(peer).is_direct() ? 1 : 0;
  say(fmt::format("route: loads and stores reach {} of {} PEs, links the others", direct,
                  world.size()));
  say(fmt::format("time: {}; {:.2f} ms in all", steps_, milliseconds(last_ - begin_)));
}

}  // namespace memspan::capi
