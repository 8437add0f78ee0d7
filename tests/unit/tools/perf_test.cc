// SPDX-License-Identifier: Apache-2.0
// What memspan-perf makes of samples: percentiles, sizes, ratios, texts, axes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "perf/axis.h"
#include "perf/collector.h"
#include "perf/compare.h"
#include "perf/plan.h"
#include "perf/plot.h"
#include "perf/run.h"
#include "perf/samples.h"
#include "perf/units.h"

namespace memspan::perf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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
  return collector.finish("memspan-perf put");
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
  EXPECT_TRUE(collector.finish("").figures.empty());
}

TEST(CompareTest, TakesRoundsNextToEachOther) {
  const auto ratios = compare(run_of({10, 22, 30}), run_of({20, 20, 20}), Pairing::kAlternating);
  ASSERT_EQ(ratios.size(), 1u);
  EXPECT_DOUBLE_EQ(ratios[0].middle, 1.1);
  EXPECT_DOUBLE_EQ(ratios[0].low, 0.5);
  EXPECT_DOUBLE_EQ(ratios[0].high, 1.5);
}

TEST(CompareTest, TellsHowFarTheMachineDiffers) {
  EXPECT_DOUBLE_EQ(machine_ratio(run_of({10}), run_of({20})), 0.5);
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
