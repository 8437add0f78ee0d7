// SPDX-License-Identifier: Apache-2.0
// A measurement as a whole: what is printed, drawn, saved and compared.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "perf/baselines.h"
#include "perf/machine.h"
#include "perf/samples.h"
#include "perf/test_table.h"

namespace memspan::perf {

// A test at a size. A value.
struct Figures {
  std::string test;
  std::size_t bytes = 0;             // 0: of no size
  std::size_t batch = 1;             // operations of a sample, in the last round
  Summary ns;                        // of all rounds together
  std::vector<double> medians = {};  // of each round
};

// One side of a comparison, or the only one. A value.
struct Run {
  std::string library;  // the file of libmemspan.so
  std::string when;
  std::string command;
  int pes = 0;
  bool one_host = true;
  // From the plan. 0: unknown, in a run that was saved before runs had them; hosts and variables
  // are then also unknown.
  std::size_t window = 0;
  std::size_t batch = 0;
  std::string hosts = {};  // as the command line names them: "simulated 1+1"; empty: it does not
  std::size_t rounds = 0;
  Facts machine = {};
  Facts variables = {};               // set_variables()
  Baselines baselines = {};           // of each, the median of the rounds
  std::vector<Figures> figures = {};  // in the order of the tests and sizes

  const Figures* find(std::string_view test, std::size_t bytes) const;
  // Those of one test.
  std::vector<const Figures*> of(std::string_view test) const;
  // The time of what is drawn beside a test at a size; 0: not known.
  double baseline(const Test& test, std::size_t bytes) const;
  // The name of that baseline: "memcpy", "cache line", "TCP socket/memcpy".
  std::string baseline_name(const Test& test) const;
};

template <typename Field, json::Of<Figures> Thing>
void fields(Field& field, Thing& figures) {
  field("test", figures.test);
  field("bytes", figures.bytes);
  field("batch", figures.batch);
  field("ns", figures.ns);
  field("round_medians_ns", figures.medians);
}

template <typename Field, json::Of<Run> Thing>
void fields(Field& field, Thing& run) {
  field("library", run.library);
  field("when", run.when);
  field("command", run.command);
  field("pes", run.pes);
  field("one_host", run.one_host);
  field("window", run.window);
  field("batch", run.batch);
  field("hosts", run.hosts);
  field("rounds", run.rounds);
  field("machine", run.machine);
  field("variables", run.variables);
  field("baselines", run.baselines);
  field("figures", run.figures);
}

inline constexpr int kFormat = 1;
json::Value to_json(const Run& run);
// kInvalidArgument for another format, or for a missing member, which it names.
Result<Run> run_from_json(const json::Value& value);
// From a file that --save wrote; errors name the file.
Result<Run> load_run(const std::string& path);
Status save_text(const std::string& path, const std::string& text);

}  // namespace memspan::perf
