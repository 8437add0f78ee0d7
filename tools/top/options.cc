// SPDX-License-Identifier: Apache-2.0
#include "top/options.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "command_line/parse.h"

namespace memspan::top {
namespace {

constexpr std::array<std::pair<std::string_view, Order>, 4> kOrders{{{"rank", Order::kRank},
                                                                     {"calls", Order::kCalls},
                                                                     {"bytes", Order::kBytes},
                                                                     {"waits", Order::kWaits}}};

constexpr std::string_view kKeys =
    "Keys: q ends, s sorts by the next column, r, c, b and w sort by rank, calls, bytes and waits, "
    "arrow keys, PgUp, PgDn, j and k scroll, any other looks again.\n"
    "Calls and bytes are counted in processes that were started with MEMSPAN_COUNTERS=1; members, "
    "memory and long waits are seen without it.";

struct Typed {
  double seconds = 1;
  std::string order = "rank";
};

void describe(CLI::App& app, Typed& typed, Options& options) {
  app.add_option("--interval", typed.seconds,
                 "seconds between two looks; with --once what the rates are measured over, and 0 "
                 "for totals in place of rates")
      ->capture_default_str();
  app.add_option("--sort", typed.order, "by rank, calls, bytes or waits")->capture_default_str();
  app.add_flag("--once", options.is_once, "print once and end");
  app.add_flag("--json", options.is_json, "print JSON, an object a line");
  app.add_option("--metrics", options.metrics,
                 "serve the counters of all of them to Prometheus at this HOST:PORT, until SIGTERM")
      ->excludes("--once")
      ->excludes("--json")
      ->excludes("--interval")
      ->excludes("--sort")
      ->excludes(app.add_option("NAME", options.only,
                                "show only this job, pool or endpoint, or this process"));
  app.set_version_flag("--version", "memspan-top " MEMSPAN_VERSION, "print the version");
  app.footer(std::string(kKeys));
}

Status check(const Typed& typed, Options& options) {
  const double seconds = typed.seconds;
  if (!(seconds == 0 ? options.is_once : seconds >= 0.1 && seconds <= 3600))
    return {Code::kInvalidArgument,
            fmt::format("--interval is {}; allowed are 0.1 to 3600 seconds, and 0 with --once",
                        seconds)};
  options.interval = from_seconds(seconds);
  for (const auto& [name, order] : kOrders) {
    if (name != typed.order) continue;
    options.order = order;
    return Status::ok();
  }
  return {Code::kInvalidArgument,
          fmt::format("--sort is \"{}\"; allowed are rank, calls, bytes and waits", typed.order)};
}

}  // namespace

std::string_view name_of(Order order) {
  return kOrders[static_cast<std::size_t>(order)].first;
}

Result<std::optional<Options>> parse_options(int argc, const char* const* argv) {
  CLI::App app(
      "Shows the jobs, pools and transfer endpoints of this user's processes on this host.");
  Typed typed;
  Options options;
  describe(app, typed, options);
  MEMSPAN_PASS_ASSIGN(const auto goes_on, command_line::parse(app, argc, argv));
  if (!goes_on) return std::optional<Options>();
  MEMSPAN_PASS(check(typed, options));
  return std::optional<Options>(std::move(options));
}

}  // namespace memspan::top
