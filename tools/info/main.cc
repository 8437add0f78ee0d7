// SPDX-License-Identifier: Apache-2.0
// memspan-info: what memspan is and finds on this host, for people and bug reports.
#include <fmt/format.h>

#include <cstdio>

#include "info/options.h"
#include "info/print.h"
#include "info/route.h"
#include "info/routes.h"

namespace memspan::info {
namespace {

void append(Findings& all, Findings more) {
  for (Finding& finding : more) all.push_back(std::move(finding));
}

// All that is known of this machine; a group's findings stand together.
Findings gather_all(AskDevices ask) {
  const SystemFiles files;
  Findings all{
      {.group = "memspan", .key = "version", .text = MEMSPAN_VERSION, .value = MEMSPAN_VERSION}};
  append(all, gather_host(files));
  append(all, gather_budget());
  append(all, gather_memory(files));
  append(all, gather_limits(files));
  append(all, gather_kernel(files));
  append(all, gather_devices(files, ask));
  append(all, gather_transports());
  append(all, gather_tls({}));
  return all;
}

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

// The exit code.
int show(const Options& options) {
  using Task = Options::Task;
  if (options.task == Task::kRoutes) {
    const Status status = show_routes(options.is_json ? RoutesFormat::kJson : RoutesFormat::kText);
    if (status.is_ok()) return 0;
    fmt::print(stderr, "memspan-info: {}\n", status.message());
    return 1;
  }
  Findings findings;
  if (options.task == Task::kRoute) {
    auto route = gather_route(options.ends[0], options.ends[1]);
    if (!route.is_ok()) {
      fmt::print(stderr, "memspan-info: --route: {}\n", route.status().message());
      return route.code() == Code::kInvalidArgument ? 2 : 1;
    }
    findings = std::move(route).value();
  } else {
    findings = options.task == Task::kTls ? gather_tls(options.tls) : gather_all(options.devices);
  }
  if (options.is_json)
    print(to_json(findings));
  else
    print(options.task == Task::kDiagnose ? to_diagnosis(findings) : to_text(findings));
  const bool is_judged = options.task != Task::kShow;
  if (is_judged && !options.is_json && options.task != Task::kDiagnose &&
      verdict_of(findings) != Judgement::kGood)
    print(to_diagnosis(findings));
  return is_judged && verdict_of(findings) == Judgement::kProblem ? 1 : 0;
}

}  // namespace
}  // namespace memspan::info

int main(int argc, char** argv) {
  const auto options = memspan::info::parse_options(argc, argv);
  if (!options.is_ok()) {
    std::fprintf(stderr, "memspan-info: %s; see memspan-info --help\n",
                 options.status().message().c_str());
    return 2;
  }
  return options->has_value() ? memspan::info::show(**options) : 0;
}
