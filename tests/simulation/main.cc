// SPDX-License-Identifier: Apache-2.0
// Runs the store's state through many small worlds (world.h), one for each seed.
//
//   simulation_store [--first SEED] [--seeds COUNT] [--trace]
//
// Tests its own checker first. Stops at the first seed that fails and says how to see it again.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/environment.h"
#include "simulation/self_test.h"
#include "simulation/world.h"

namespace {

using memspan::simulation::Trace;

struct Options {
  std::int64_t first = 1;
  std::int64_t seeds = 2000;
  Trace trace = Trace::kNone;
};

[[noreturn]] void refuse(std::string_view why) {
  std::fputs(fmt::format("simulation_store: {}\n", why).c_str(), stderr);
  std::exit(2);
}

Options read_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--trace") {
      options.trace = Trace::kPrinted;
      continue;
    }
    if (name != "--first" && name != "--seeds")
      refuse(fmt::format("there is no option \"{}\"; there are --first, --seeds, --trace", name));
    const char* text = ++i < argc ? argv[i] : "";
    const auto number = memspan::parse_integer(name, text, 0, std::int64_t{1} << 40);
    if (!number.is_ok()) refuse(number.status().message());
    (name == "--first" ? options.first : options.seeds) = *number;
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = read_options(argc, argv);
  if (const std::string wrong = memspan::simulation::test_the_checker(); !wrong.empty())
    refuse(wrong);
  for (std::int64_t seed = options.first; seed < options.first + options.seeds; ++seed) {
    memspan::simulation::World world(static_cast<std::uint64_t>(seed), options.trace);
    const std::string failure = world.run();
    if (failure.empty()) continue;
    std::fputs(fmt::format("seed {} failed {}\nto see it again: {} --first {} --seeds 1 --trace\n",
                           seed, failure, argv[0], seed)
                   .c_str(),
               stderr);
    return 1;
  }
  std::fputs(
      fmt::format("{} seeds from {}: nothing was wrong\n", options.seeds, options.first).c_str(),
      stdout);
  return 0;
}
