// SPDX-License-Identifier: Apache-2.0
#include "perf/options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <string_view>

#include "command_line/parse.h"
#include "core/environment.h"
#include "perf/table.h"
#include "perf/test_table.h"
#include "store/store_address.h"

namespace memspan::perf {
namespace {

constexpr int kMostPes = 4096;

// Texts that are looked at after the parser.
struct Texts {
  std::vector<std::string> tests;
  std::string sizes = "8:4m:4";
};

// As CLI::Range, for which "nan" is in every range.
CLI::Validator in_range(double least, double most) {
  return {[=](const std::string& text) {
            double value = 0;
            const bool is_in =
                CLI::detail::lexical_cast(text, value) && value >= least && value <= most;
            return is_in ? std::string()
                         : fmt::format("\"{}\" is not a number from {} to {}", text, least, most);
          },
          fmt::format("FLOAT in [{} - {}]", least, most)};
}

void describe(CLI::App& app, Texts& texts, Options& options) {
  app.set_help_flag("-h,--help", "print this");
  app.set_version_flag("--version", "memspan-perf " MEMSPAN_VERSION, "print the version");
  app.add_option("TEST", texts.tests,
                 "tests and groups of them (" + group_names() + ", all); list prints them");
  app.add_option("-n,--pes", options.job.pes, "PEs of the job")->capture_default_str();
  app.add_option("-s,--sizes", texts.sizes, "bytes: 8:1m, 8:1m:4 or 8,64,1k")
      ->capture_default_str();
  app.add_option("-r,--rounds", options.rounds, "jobs of each side")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  app.add_option("--samples", options.plan.samples, "samples of a row, at most")
      ->capture_default_str()
      ->check(CLI::Range(5, 1000000));
  app.add_option("--seconds", options.plan.seconds, "seconds of a row, about")
      ->capture_default_str()
      ->check(in_range(0.001, 3600));
  app.add_option("--warm-up", options.plan.warm_up, "samples of a row that do not count")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000000));
  app.add_option("--window", options.plan.window,
                 "operations between two waits, of bandwidths and rates")
      ->capture_default_str()
      ->check(CLI::Range(1, 65536));
  app.add_option("--batch", options.plan.batch, "pieces of bm-batch and trans-batch-*")
      ->capture_default_str()
      ->check(CLI::Range(1, 65536));
  app.add_option("--simulate-hosts", options.job.simulate_hosts, "as of oshrun: 2, 1+1, 3+1")
      ->excludes(app.add_option("--hosts", options.job.hosts, "as of oshrun: a:1,b:1"));
  app.add_option("--store", options.plan.store,
                 "of pools and transfers, tcp://HOST:PORT; else PE 0 hosts one on its loopback");
  app.add_option("--oshrun", options.job.oshrun,
                 "the oshrun to start jobs by; else the one beside");
  app.add_option("--timeout", options.job.timeout_s, "seconds that a job may take")
      ->capture_default_str()
      ->check(in_range(1, 86400));
  app.add_option("--library", options.other,
                 "a second libmemspan.so, whose jobs alternate with this one's");
  app.add_option("--compare", options.compare, "a run that --save wrote")
      ->excludes(app.get_option("--library"));
  app.add_option("--save", options.save, "write the run as JSON, for --compare");
  app.add_flag("--json", options.is_json, "print JSON instead of tables");
  app.add_option("--report", options.report, "write a page with plots and tables (HTML)");
  app.add_option("--svg", options.svg, "write the plots into this folder");
  app.add_option("--png", options.png, "the same as PNG, by rsvg-convert");
  app.add_option("--worker", options.worker)->group("");
}

Status wrong(std::string text) {
  return {Code::kInvalidArgument, std::move(text)};
}

// Rejects options that only a process that starts its own jobs can use.
Status check_outside(const CLI::App& app, std::string_view launcher) {
  for (const char* name :
       {"--pes", "--simulate-hosts", "--hosts", "--library", "--oshrun", "--rounds", "--timeout"})
    if (app.count(name) != 0)
      return wrong(
          fmt::format("{} is for memspan-perf that starts its jobs itself, and this is a "
                      "process of one ({} is set)",
                      name, launcher));
  return Status::ok();
}

Status check_inputs(const Options& options) {
  if (!options.other.empty() && ::access(options.other.c_str(), R_OK) != 0)
    return wrong(Status::from_errno("--library " + options.other).message());
  if (!options.compare.empty() && ::access(options.compare.c_str(), R_OK) != 0)
    return wrong(Status::from_errno("--compare " + options.compare).message());
  if (!options.plan.store.empty())
    MEMSPAN_TRY(StoreAddress::parse(options.plan.store).status(), "--store");
  return Status::ok();
}

}  // namespace

Result<std::optional<Options>> parse_options(int argc, const char* const* argv,
                                             const char* launcher) {
  CLI::App app(
      "Measures memspan between processes: latency, bandwidth, rates, atomics, collectives, pools "
      "and transfers.\nIt starts its jobs by itself (memspan-perf put -n 2), or measures in the "
      "job "
      "that it is started in (oshrun -n 2 memspan-perf put).");
  Texts texts;
  Options options;
  describe(app, texts, options);
  MEMSPAN_PASS_ASSIGN(const auto goes_on, command_line::parse(app, argc, argv));
  if (!goes_on) return std::optional<Options>();
  if (!options.worker.empty()) return std::optional<Options>(std::move(options));
  const bool is_list = std::erase(texts.tests, "list") != 0;
  if (is_list && texts.tests.empty()) texts.tests = {"all"};
  if (texts.tests.empty())
    return wrong("no test is named; memspan-perf list prints them, \"all\" are all of them");
  MEMSPAN_PASS_ASSIGN(auto tests, choose_tests(texts.tests));
  if (is_list) {
    MEMSPAN_PASS(command_line::print_all(list_text(tests)));
    return std::optional<Options>();
  }
  options.plan.tests = tests;
  MEMSPAN_PASS_ASSIGN(auto sizes, parse_sizes(texts.sizes));
  options.plan.sizes = sizes;
  if (options.job.pes < 2 || options.job.pes > kMostPes)
    return wrong(fmt::format("-n {}: a measurement needs 2 PEs at least, and {} at most",
                             options.job.pes, kMostPes));
  if (launcher != nullptr) MEMSPAN_PASS(check_outside(app, launcher));
  MEMSPAN_PASS(check_inputs(options));
  return std::optional<Options>(std::move(options));
}

}  // namespace memspan::perf
