// SPDX-License-Identifier: Apache-2.0
// What memspan-perf makes of samples: percentiles, sizes, ratios, texts, axes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "perf/axis.h"
#include "perf/collector.h"
#include "perf/compare.h"
#include "perf/plan.h"
#include "perf/plot.h"
#include "perf/run.h"
#include "perf/samples.h"
#include "perf/table.h"
#include "perf/units.h"

namespace memspan::perf {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

TEST(SamplesTest, PercentilesAreSamples) {
  std::vector<double> samples(1000);
  std::iota(samples.begin(), samples.end(), 1);
  const Summary summary = summarize(samples);
  EXPECT_EQ(summary.p50, 500);
  EXPECT_EQ(summary.p90, 900);
  EXPECT_EQ(summary.p99, 990);
  EXPECT_EQ(summary.p999, 999);
  EXPECT_EQ(summary.most, 1000);
  EXPECT_EQ(summary.least, 1);
  EXPECT_EQ(summary.mean, 500.5);
}

TEST(SamplesTest, OneSampleIsEveryPercentile) {
  const Summary summary = summarize({7});
  EXPECT_EQ(summary.p50, 7);
  EXPECT_EQ(summary.p999, 7);
  EXPECT_EQ(summarize({}).samples, 0u);
}

TEST(SamplesTest, APercentileNeedsSamplesBeyondIt) {
  const auto times = [](std::size_t samples) {
    return times_of(summarize(std::vector<double>(samples, 5)));
  };
  EXPECT_THAT(times(9), ElementsAre("5.00 ns", "-", "-", "-", "5.00 ns"));
  EXPECT_THAT(times(99), ElementsAre("5.00 ns", "5.00 ns", "-", "-", "5.00 ns"));
  EXPECT_THAT(times(100), ElementsAre("5.00 ns", "5.00 ns", "5.00 ns", "-", "5.00 ns"));
  EXPECT_THAT(times(1000), ElementsAre("5.00 ns", "5.00 ns", "5.00 ns", "5.00 ns", "5.00 ns"));
}

TEST(SamplesTest, TheMedianOfAnEvenNumberIsBetween) {
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({}), 0);
}

TEST(SizesTest, AreRangesOrLists) {
  EXPECT_THAT(*parse_sizes("8:64"), ElementsAre(8, 16, 32, 64));
  EXPECT_THAT(*parse_sizes("1k:1m:32"), ElementsAre(1024, 32768, 1048576));
  EXPECT_THAT(*parse_sizes("64,8,8,1k"), ElementsAre(8, 64, 1024));
  EXPECT_THAT(*parse_sizes("4k"), ElementsAre(4096));
}

TEST(SizesTest, WhatIsNoneIsNamed) {
  for (const char* text : {"", "x", "8:", "64:8", "8:64:1", "1:2:3:4", "0", "2g", "8,,9"}) {
    const auto sizes = parse_sizes(text);
    ASSERT_FALSE(sizes.is_ok()) << text;
    EXPECT_TRUE(sizes.status().message().starts_with(std::string("--sizes \"") + text + "\": "))
        << sizes.status().message();
  }
}

TEST(PlanTest, ComesBackFromItsText) {
  const Plan plan{.tests = {"put", "get"},
                  .sizes = {8, 64},
                  .samples = 7,
                  .seconds = 0.25,
                  .store = "tcp://a:1"};
  const auto again = plan_from_json(json::written(plan).compact());
  ASSERT_TRUE(again.is_ok());
  EXPECT_EQ(again->tests, plan.tests);
  EXPECT_EQ(again->sizes, plan.sizes);
  EXPECT_EQ(again->samples, 7u);
  EXPECT_EQ(again->seconds, 0.25);
  EXPECT_EQ(again->store, "tcp://a:1");
}

TEST(UnitsTest, HaveThreeDigits) {
  EXPECT_EQ(time_text(3.456), "3.46 ns");
  EXPECT_EQ(time_text(999.6), "1.00 µs");
  EXPECT_EQ(time_text(45678), "45.7 µs");
  EXPECT_EQ(time_text(2.5e9), "2.50 s");
  EXPECT_EQ(speed_text(12.34), "12.3 GB/s");
  EXPECT_EQ(speed_text(0.5), "500 MB/s");
  EXPECT_EQ(speed_text(1e-3), "1.00 MB/s");
  EXPECT_EQ(speed_text(4e-5), "40.0 kB/s");
  EXPECT_EQ(rate_text(22), "45.5 M/s");
  EXPECT_EQ(rate_text(1e3), "1.00 M/s");
  EXPECT_EQ(rate_text(25e3), "40.0 k/s");
  EXPECT_EQ(bytes_text(65536), "64 KiB");
  EXPECT_EQ(bytes_text(0), "-");
  EXPECT_EQ(tidy("1.00 us"), "1 us");
  EXPECT_EQ(tidy("1.50 us"), "1.5 us");
  EXPECT_EQ(tidy("100 us"), "100 us");
}

TEST(AxisTest, HasTicksWithinItsEnds) {
  const LogAxis axis({3, 7000}, 100, 500, 10);
  for (const Tick& tick : axis.ticks()) {
    EXPECT_GE(axis.place(tick.value), 100);
    EXPECT_LE(axis.place(tick.value), 500);
  }
  EXPECT_GT(axis.ticks().size(), 2u);
  EXPECT_LT(axis.place(3), axis.place(7000));
}

TEST(AxisTest, OneValueHasATick) {
  EXPECT_FALSE(LogAxis({8}, 0, 100, 2).ticks().empty());
  EXPECT_FALSE(LogAxis({3}, 0, 100, 10).ticks().empty());
}

json::Value row(double ns) {
  return json::Value()
      .set("event", "row")
      .set("test", "put")
      .set("bytes", 8)
      .set("batch", 10)
      .set("ns", json::Value().add(ns).add(ns).add(3 * ns));
}

Run run_of(std::initializer_list<double> rounds) {
  Collector collector;
  for (const double ns : rounds) {
    const Start start{.library = "a", .pes = 2, .baselines = {.cache_line = ns}};
    EXPECT_TRUE(collector.take(to_event("start", start)).is_ok());
    EXPECT_TRUE(collector.take(row(ns)).is_ok());
    EXPECT_TRUE(collector.take(json::Value().set("event", "end")).is_ok());
  }
  return collector.finish("memspan-perf put", {.window = 64, .batch = 16}, "simulated 1+1");
}

// Of no test, with what the machine does.
Run machine_of(double cache_line, std::vector<Baselines::Copy> copies) {
  Run run = run_of({10});
  run.baselines = {.cache_line = cache_line, .loopback = 5000, .copies = std::move(copies)};
  return run;
}

TEST(RunTest, PoolsTheSamplesOfItsRounds) {
  const auto run = run_of({10, 20, 30});
  ASSERT_EQ(run.figures.size(), 1u);
  EXPECT_EQ(run.rounds, 3u);
  EXPECT_EQ(run.figures[0].ns.samples, 9u);
  EXPECT_THAT(run.figures[0].medians, ElementsAre(10, 20, 30));
  EXPECT_EQ(run.baselines.cache_line, 20);
}

TEST(RunTest, ComesBackFromItsText) {
  const auto run = run_of({10, 20});
  const auto again = run_from_json(*json::parse(to_json(run).pretty()));
  ASSERT_TRUE(again.is_ok()) << again.status().to_string();
  EXPECT_EQ(again->figures[0].ns.p50, run.figures[0].ns.p50);
  EXPECT_EQ(again->figures[0].medians, run.figures[0].medians);
  EXPECT_EQ(again->machine, run.machine);
  EXPECT_EQ(again->command, "memspan-perf put");
  EXPECT_EQ(again->window, 64u);
  EXPECT_EQ(again->batch, 16u);
  EXPECT_EQ(again->hosts, "simulated 1+1");
  EXPECT_EQ(again->variables, run.variables);
}

TEST(RunTest, WhatAnotherPeWaitsForIsBesideTheLongerOfLineAndCopy) {
  perf::Run run = machine_of(100, {{8, 3}, {1 << 20, 50000}});
  const perf::Test& test = *find_test("put-signal");
  EXPECT_EQ(run.baseline(test, 8), 100);
  EXPECT_EQ(run.baseline(test, 1 << 20), 50000);
  EXPECT_EQ(run.baseline_name(test), "cache line/memcpy");
  EXPECT_EQ(run.baseline(*find_test("put"), 8), 3);
  for (const char* const name : {"broadcast", "reduce", "group-all-gather"})
    EXPECT_EQ(run.baseline(*find_test(name), 8), 100) << name;
  run.one_host = false;
  EXPECT_EQ(run.baseline(test, 8), 5000);
  EXPECT_EQ(run.baseline_name(test), "TCP socket/memcpy");
  // Not the memcpy alone, which says nothing of the way to another core.
  EXPECT_EQ(machine_of(0, {{8, 3}}).baseline(test, 8), 0);
}

TEST(RunTest, VariablesAreToldWithoutSecrets) {
  const std::vector<std::pair<const char*, const char*>> set = {
      {"MEMSPAN_TRACE", "trace.json"},        {"SHMEM_SYMMETRIC_SIZE", "1m"},
      {"MEMSPAN_JOB_SECRET_FILE", "hidden"},  {"MEMSPAN_ETCD_PASSWORD", "hidden"},
      {"SHMEM_SOME_KEY", "hidden"},           {"MEMSPAN_STORE", "etcd://me:hidden@host:1"},
      {"MEMSPAN_LAUNCH", "2:0:2:64:hidden:"}, {"OTHER_VARIABLE", "x"}};
  for (const auto& [name, value] : set) ::setenv(name, value, 1);
  const perf::Run run = run_of({10});
  for (const auto& [name, value] : set) ::unsetenv(name);
  EXPECT_THAT(run.variables, Contains(Pair("MEMSPAN_TRACE", "trace.json")));
  EXPECT_THAT(run.variables, Contains(Pair("SHMEM_SYMMETRIC_SIZE", "1m")));
  EXPECT_THAT(run.variables, Contains(Pair("MEMSPAN_JOB_SECRET_FILE", "(not recorded)")));
  const std::string everything = to_json(run).pretty() + to_text(run);
  EXPECT_THAT(everything, Not(HasSubstr("hidden")));
  EXPECT_THAT(everything, Not(HasSubstr("OTHER_VARIABLE")));
  EXPECT_THAT(to_text(run), HasSubstr("MEMSPAN_TRACE=trace.json, SHMEM_SOME_KEY="));
  EXPECT_THAT(to_text(machine_of(1, {})), Not(HasSubstr("MEMSPAN_TRACE")));
}

TEST(RunTest, AnotherFormatIsRefused) {
  EXPECT_EQ(run_from_json(json::Value().set("format", 99)).code(), Code::kInvalidArgument);
}

TEST(RunTest, WhatIsNotThereIsNamed) {
  const auto complaint = [](std::string_view gone, const json::Value& instead) {
    json::Value changed;
    const json::Value whole = to_json(run_of({10}));
    for (const auto& [name, value] : whole.object()) {
      if (name != gone)
        changed.set(name, value);
      else if (!instead.is_null())
        changed.set(name, instead);
    }
    return std::string(run_from_json(changed).status().message());
  };
  EXPECT_EQ(complaint("pes", {}), "there is no \"pes\"");
  EXPECT_EQ(complaint("baselines", json::Value::Object()), "there is no \"baselines.clock_ns\"");
  EXPECT_EQ(complaint("figures", json::Value().add(json::Value::Object())),
            "there is no \"figures[0].test\"");
  EXPECT_EQ(complaint("rounds", -1), "\"rounds\" is -1; allowed are 0 to 9007199254740992");
  EXPECT_EQ(complaint("one_host", "yes"), "\"one_host\" is no true or false");
  EXPECT_EQ(complaint("machine", json::Value().set("cores", 2)), "\"machine.cores\" is no text");
}

TEST(CollectorTest, AnEventWithoutItsMembersIsRefused) {
  Collector collector;
  EXPECT_EQ(collector.take(json::Value().set("event", "row")).code(), Code::kInvalidArgument);
  EXPECT_EQ(collector.take(json::Value().set("event", "pause")).code(), Code::kInvalidArgument);
  EXPECT_TRUE(collector.finish("", {}, "").figures.empty());
}

TEST(CompareTest, TakesRoundsNextToEachOther) {
  const auto ratios = compare(run_of({10, 22, 30}), run_of({20, 20, 20}), Pairing::kAlternating);
  ASSERT_EQ(ratios.size(), 1u);
  EXPECT_DOUBLE_EQ(ratios[0].middle, 1.1);
  EXPECT_DOUBLE_EQ(ratios[0].low, 0.5);
  EXPECT_DOUBLE_EQ(ratios[0].high, 1.5);
}

TEST(CompareTest, TellsHowFarTheMachineDiffersInWhatARowUses) {
  const perf::Run here = machine_of(112, {{8, 6}, {4096, 47}});
  const auto machine = [&](const perf::Run& there) {
    return compare(here, there, Pairing::kSaved).at(0).machine;  // put of 8 bytes
  };
  EXPECT_DOUBLE_EQ(machine(machine_of(32, {{8, 4}, {4096, 470}})), 1.5);
  EXPECT_EQ(machine(machine_of(32, {})), 0);
  const perf::Run there = machine_of(32, {{8, 4}});
  EXPECT_THAT(to_text(compare(here, there, Pairing::kSaved), here, there, Pairing::kSaved),
              HasSubstr("  1.000 (memcpy 1.500)\n"));
}

TEST(CompareTest, RunsOfDifferentThingsAreRefusedWithBothValues) {
  const perf::Run saved = run_of({10});
  EXPECT_TRUE(check_comparable(saved, saved).is_ok());
  const auto refusal = [&](const auto& change) {
    perf::Run here = saved;
    change(here);
    const Status status = check_comparable(here, saved);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(refusal([](perf::Run& run) { run.pes = 3; }),
              HasSubstr("PEs (-n): 3 here and 2 in the saved run"));
  EXPECT_THAT(refusal([](perf::Run& run) { run.one_host = false; }),
              HasSubstr("several here and one in the saved run"));
  EXPECT_THAT(refusal([](perf::Run& run) { run.window = 1; }),
              HasSubstr("--window: 1 here and 64 in the saved run"));
  EXPECT_THAT(refusal([](perf::Run& run) { run.batch = 1; }),
              HasSubstr("--batch: 1 here and 16 in the saved run"));
}

TEST(CompareTest, WhatIsSetDifferentlyIsNoted) {
  const perf::Run there = run_of({10});
  EXPECT_THAT(notes_on(there, there), IsEmpty());
  perf::Run here = there;
  here.hosts = "";
  here.variables.emplace_back("MEMSPAN_TRACE", "x");
  const std::vector<std::string> notes = notes_on(here, there);
  EXPECT_THAT(notes, ElementsAre("MEMSPAN_TRACE: \"x\" here, not set there",
                                 "hosts: not set here, \"simulated 1+1\" there"));
  EXPECT_THAT(to_text({}, here, there, Pairing::kSaved), HasSubstr("  note: " + notes[0] + "\n"));
}

TEST(CompareTest, WhatAnEarlierVersionDidNotSaveIsNotKnown) {
  const perf::Run here = run_of({10});
  json::Value saved;
  const json::Value whole = to_json(here);
  for (const auto& [name, value] : whole.object())
    if (name != "window" && name != "batch" && name != "hosts" && name != "variables")
      saved.set(name, value);
  const auto there = run_from_json(saved);
  ASSERT_TRUE(there.is_ok()) << there.status().to_string();
  EXPECT_TRUE(check_comparable(here, *there).is_ok());
  EXPECT_THAT(notes_on(here, *there), ElementsAre(HasSubstr("not known of the other run")));
}

TEST(PlotTest, EscapesTextsAndHasNoBadNumbers) {
  const LinePlot plot{.title = "a < b & \"c\"",
                      .x_label = "size",
                      .y_label = "time",
                      .series = {{.name = "one", .points = {{8, 3.5, 4.0}}}}};
  const std::string svg = to_svg(plot, Place::kFile);
  EXPECT_THAT(svg, HasSubstr("a &lt; b &amp; &quot;c&quot;"));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

}  // namespace
}  // namespace memspan::perf
