// SPDX-License-Identifier: Apache-2.0
// memspan-perf: what memspan does in a second on this machine, next to what the machine allows.
//
// The program has three parts. One measures (a process of a job, --worker or started by a
// launcher). One starts such jobs and collects their events. One prints, draws and saves.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "command_line/print.h"
#include "perf/collector.h"
#include "perf/options.h"
#include "perf/output.h"
#include "perf/progress.h"
#include "perf/table.h"
#include "perf/worker.h"
#include "world/foreign_launcher.h"

namespace memspan::perf {
namespace {

std::string command_of(int argc, const char* const* argv) {
  std::string command = "memspan-perf";
  for (int i = 1; i < argc; ++i) command += fmt::format(" {}", argv[i]);
  return command;
}

// Events go to stdout, each at once.
int work_for_parent(const std::string& text) {
  const auto plan = plan_from_json(text);
  Status status = plan.is_ok() ? work(*plan,
                                      [](const json::Value& event) {
                                        std::puts(event.compact().c_str());
                                        std::fflush(stdout);
                                        return Status::ok();
                                      })
                               : plan.status();
  if (status.is_ok()) return 0;
  fmt::print(stderr, "memspan-perf: {}\n", status.message());
  return 1;
}

// Without links, as the processes of a job name their library.
Result<std::string> resolved(const std::string& path) {
  std::error_code error;
  const auto found = std::filesystem::canonical(path, error);
  if (error) return Status::from_errno(path, error.value());
  return found.string();
}

std::string row_name(const json::Value& event) {
  const auto bytes = static_cast<std::size_t>(event["bytes"].number());
  return bytes == 0 ? event["test"].text() : fmt::format("{} of {} B", event["test"].text(), bytes);
}

std::size_t rows_of(const Plan& plan) {
  std::size_t rows = 0;
  for (const std::string& name : plan.tests)
    rows += find_test(name)->has_sizes ? plan.sizes.size() : 1;
  return rows;
}

// The loader continues without a file that it cannot load, and both sides then use one library.
Status check_library(const JobOptions& job, const json::Value& event) {
  if (job.library.empty() || event["event"].text() != "start") return Status::ok();
  const std::string& used = event["library"].text();
  if (used == job.library) return Status::ok();
  return {Code::kInvalidArgument,
          fmt::format("--library {} was not loaded; the job used {}", job.library, used)};
}

std::string hosts_of(const JobOptions& job) {
  return job.simulate_hosts.empty() ? job.hosts : "simulated " + job.simulate_hosts;
}

// Whether this run will be one like the saved one.
Status check_saved(const Options& options, const Run& saved, int pes, bool one_host) {
  Run planned;
  planned.pes = pes;
  planned.one_host = one_host;
  planned.window = options.plan.window;
  planned.batch = options.plan.batch;
  MEMSPAN_TRY(check_comparable(planned, saved), "--compare " + options.compare);
  return Status::ok();
}

// Like check_saved(), for what only the job's start reports.
Status check_start(const Options& options, const std::optional<Run>& saved,
                   const json::Value& event) {
  if (!saved || event["event"].text() != "start") return Status::ok();
  return check_saved(options, *saved, static_cast<int>(event["pes"].number()),
                     event["one_host"].truth());
}

// Runs one side's job for its collector.
Status run_side(const JobOptions& job, const Options& options, const std::optional<Run>& saved,
                ForwardedSignals& signals, Collector& collector, Progress& progress) {
  return run_job(job, options.plan, signals, [&](const json::Value& event) {
    MEMSPAN_PASS(check_library(job, event));
    MEMSPAN_PASS(check_start(options, saved, event));
    if (event["event"].text() == "row") progress.row(row_name(event));
    return collector.take(event);
  });
}

// Shows what a run has measured before it failed or was ended. On stdout only, since no other run
// can be compared with it.
void show_partial(const Options& options, const Run& run, const Status& why) {
  if (run.figures.empty() || why.code() != Code::kUnavailable) return;  // a wrong option
  static_cast<void>(command_line::print_all(
      options.is_json ? json::Value()
                                .set("version", MEMSPAN_VERSION)
                                .set("incomplete", why.message())
                                .set("run", to_json(run))
                                .pretty() +
                            "\n"
                      : fmt::format("{}\nincomplete: {}\n", to_text(run), why.message())));
}

// Rounds of one library, or of two that alternate: A B, B A, A B.
Result<std::optional<Measured>> measure(const Options& options, const std::string& command,
                                        const std::optional<Run>& saved) {
  const bool has_other = !options.other.empty();
  Collector here;
  Collector there;
  JobOptions other = options.job;
  if (has_other) {
    MEMSPAN_TRY_ASSIGN(other.library, resolved(options.other), "--library");
  }
  // Ends after the progress, whose line is erased before a signal ends us.
  MEMSPAN_TRY_ASSIGN(ForwardedSignals signals, ForwardedSignals::block(), "starting jobs");
  const auto run_all = [&] {
    Progress progress(rows_of(options.plan) * options.rounds * (has_other ? 2 : 1));
    for (std::size_t round = 0; round < options.rounds; ++round)
      for (const bool is_first : {true, false}) {
        const bool is_here = is_first == (round % 2 == 0);
        if (!is_here && !has_other) continue;
        MEMSPAN_TRY(run_side(is_here ? options.job : other, options, saved, signals,
                             is_here ? here : there, progress),
                    fmt::format("round {}{}", round + 1, is_here ? "" : ", the other library"));
      }
    return Status::ok();
  };
  const std::string hosts = hosts_of(options.job);
  if (Status status = run_all(); !status.is_ok()) {
    show_partial(options, here.finish(command, options.plan, hosts), status);
    return status;
  }
  Measured measured{.here = here.finish(command, options.plan, hosts), .compared = {}};
  if (has_other) {
    Run run = there.finish(command, options.plan, hosts);
    auto ratios = compare(measured.here, run, Pairing::kAlternating);
    measured.compared = Compared{std::move(run), Pairing::kAlternating, std::move(ratios)};
  }
  return std::optional<Measured>(std::move(measured));
}

// In a job of another launcher, which this variable shows: one round, which PE 0 reports. The
// others measure only.
Result<std::optional<Measured>> measure_in_job(const Options& options, const std::string& command,
                                               const std::optional<Run>& saved,
                                               std::string_view launcher) {
  Collector collector;
  bool tells = false;
  Progress progress(rows_of(options.plan));
  Status taken;
  const auto take = [&](const json::Value& event) {
    // Only PE 0 writes files: another host may not have their folders.
    if (!tells) MEMSPAN_PASS(check_outputs(options));
    tells = true;
    MEMSPAN_PASS(check_start(options, saved, event));
    if (event["event"].text() == "row") progress.row(row_name(event));
    if (taken.is_ok()) taken = collector.take(event);
    return taken;
  };
  MEMSPAN_TRY(work(options.plan, take),
              fmt::format("in the job of the launcher that {} shows", launcher));
  if (!tells) return std::optional<Measured>();
  return std::optional<Measured>(
      Measured{.here = collector.finish(command, options.plan, {}), .compared = {}});
}

// `launcher`: the variable of the launcher of this process; null: it starts its own jobs.
Status run(const Options& options, const std::string& command, const char* launcher) {
  std::optional<Run> saved;
  if (!options.compare.empty()) {
    MEMSPAN_TRY_ASSIGN(saved, load_run(options.compare), "--compare");
    MEMSPAN_PASS(check_saved(options, *saved, launcher == nullptr ? options.job.pes : saved->pes,
                             saved->one_host));
  }
  if (launcher == nullptr) MEMSPAN_PASS(check_outputs(options));
  MEMSPAN_PASS_ASSIGN(auto measured, launcher == nullptr
                                         ? measure(options, command, saved)
                                         : measure_in_job(options, command, saved, launcher));
  if (!measured.has_value()) return Status::ok();
  if (saved) {
    auto ratios = compare(measured->here, *saved, Pairing::kSaved);
    measured->compared = Compared{std::move(*saved), Pairing::kSaved, std::move(ratios)};
  }
  return write_all(options, *measured);
}

}  // namespace
}  // namespace memspan::perf

int main(int argc, char** argv) {
  using namespace memspan::perf;
  const char* const launcher = memspan::launcher_variable();
  const auto options = parse_options(argc, argv, launcher);
  if (!options.is_ok()) return memspan::command_line::end_with("memspan-perf", options.status());
  if (!options->has_value()) return 0;
  if (!(*options)->worker.empty()) return work_for_parent((*options)->worker);
  const memspan::Status status = run(**options, command_of(argc, argv), launcher);
  return status.is_ok() ? 0 : memspan::command_line::end_with("memspan-perf", status);
}
