// SPDX-License-Identifier: Apache-2.0
#include "info/options.h"

#include <fmt/format.h>

#include <string_view>

#include "command_line/parse.h"

namespace memspan::info {
namespace {

// The options that decide the task; the parser fills it.
struct Asked {
  bool diagnose = false;
  bool routes = false;
  bool devices = false;
};

void describe(CLI::App& app, Asked& asked, Options& options) {
  app.set_help_flag("-h,--help", "print this");
  app.set_version_flag("--version", "memspan-info " MEMSPAN_VERSION, "print the version");
  app.add_flag("--json", options.is_json, "as JSON");
  auto* diagnose = app.add_flag("--diagnose", asked.diagnose,
                                "print only notes and problems, each with the wanted value and "
                                "the remedy; exit code 1 for problems");
  auto* tls = app.add_option("--tls", options.tls.url,
                             "what protects the connection to the store at this address, or at "
                             "the one that a start finds in the environment")
                  ->expected(0, 1)
                  ->type_name("[URL]");
  auto* info = app.add_option("--tls-info", options.tls.tls_info,
                              "with --tls: certificates, \"tlsCert: FILE; tlsPk: FILE; tlsCaPath: "
                              "FOLDER; tlsCaFile: NAME; ...\"");
  app.add_option("--secret-file", options.tls.secret_file,
                 "with --tls: this file instead of MEMSPAN_JOB_SECRET_FILE")
      ->excludes(info)
      ->needs(tls);
  info->needs(tls);
  auto* route = app.add_option("--route", options.ends,
                               "the way between two processes of this host, by their numbers, or "
                               "from here to a host")
                    ->expected(2)
                    ->type_name("PID_OR_HOST");
  auto* routes =
      app.add_flag("--routes", asked.routes,
                   "in a job (oshrun -n 4 memspan-info --routes): which transport is between "
                   "which PEs");
  app.add_flag("--devices", asked.devices, "also ask the GPU, which may take a second");
  for (auto* one : {route, routes})
    for (auto* other : {diagnose, tls}) one->excludes(other);
  route->excludes(routes);
  tls->excludes(diagnose);
}

}  // namespace

Result<std::optional<Options>> parse_options(int argc, const char* const* argv) {
  CLI::App app("Shows what memspan finds on this host: for you, and for a bug report.");
  Asked asked;
  Options options;
  describe(app, asked, options);
  MEMSPAN_PASS_ASSIGN(const auto goes_on, command_line::parse(app, argc, argv));
  if (!goes_on) return std::optional<Options>();
  if (asked.diagnose) options.task = Options::Task::kDiagnose;
  if (asked.routes) options.task = Options::Task::kRoutes;
  if (app.count("--tls") != 0) {
    options.task = Options::Task::kTls;
    options.tls.patience = kAskedPatience;
  }
  if (!options.ends.empty()) options.task = Options::Task::kRoute;
  if (asked.devices) options.devices = AskDevices::kAlways;
  return std::optional<Options>(std::move(options));
}

}  // namespace memspan::info
