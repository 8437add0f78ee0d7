// SPDX-License-Identifier: Apache-2.0
// memspan-info: what memspan is and finds on this host, for people and bug reports.
#include <string>
#include <string_view>

#include "command_line/print.h"
#include "info/options.h"
#include "info/print.h"
#include "info/route.h"
#include "info/routes.h"

namespace memspan::info {
namespace {

// All facts about this machine; a group's findings are adjacent.
Findings gather_all(AskDevices ask) {
  const SystemFiles files;
  Findings all{
      {.group = "memspan", .key = "version", .text = MEMSPAN_VERSION, .value = MEMSPAN_VERSION}};
  append(all, gather_host(files));
  append(all, gather_budget());
  all.push_back(gather_copies());
  append(all, gather_memory(files));
  append(all, gather_limits(files));
  append(all, gather_kernel(files));
  append(all, gather_devices(files, ask));
  append(all, gather_transports());
  append(all, gather_tls({}));
  return all;
}

std::string text_of(const Options& options, const Findings& findings) {
  using Task = Options::Task;
  const bool is_diagnosis = options.task == Task::kDiagnose;
  if (options.is_json) return to_json(is_diagnosis ? not_good(findings) : findings);
  if (is_diagnosis) return to_diagnosis(findings);
  const bool has_verdict = options.task != Task::kShow && verdict_of(findings) != Judgement::kGood;
  return to_text(findings) + (has_verdict ? to_diagnosis(findings) : "");
}

// The exit code of what is good enough.
Result<int> show(const Options& options) {
  using Task = Options::Task;
  if (options.task == Task::kRoutes) {
    MEMSPAN_PASS(show_routes(options.is_json ? RoutesFormat::kJson : RoutesFormat::kText));
    return 0;
  }
  Findings findings;
  if (options.task == Task::kRoute) {
    MEMSPAN_TRY_ASSIGN(findings, gather_route(options.ends[0], options.ends[1]), "--route");
  } else {
    findings = options.task == Task::kTls ? gather_tls(options.tls) : gather_all(options.devices);
  }
  const Judgement verdict = verdict_of(findings);
  MEMSPAN_PASS(command_line::print_all(text_of(options, findings)));
  return options.task != Task::kShow && verdict == Judgement::kProblem ? 1 : 0;
}

}  // namespace
}  // namespace memspan::info

int main(int argc, char** argv) {
  constexpr std::string_view kProgram = "memspan-info";
  const auto options = memspan::info::parse_options(argc, argv);
  if (!options.is_ok()) return memspan::command_line::end_with(kProgram, options.status());
  if (!options->has_value()) return 0;
  const auto code = memspan::info::show(**options);
  return code.is_ok() ? *code : memspan::command_line::end_with(kProgram, code.status());
}
