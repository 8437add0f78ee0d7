// SPDX-License-Identifier: Apache-2.0
#include "measure.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "example.h"

namespace bench {
namespace {

double seconds_of(const Call& call, long times) {
  const double began = example::seconds_now();
  for (long i = 0; i < times; ++i) call();
  return example::seconds_now() - began;
}

// memspan chooses its way to copy among the first calls of a size (docs/design/0029). Calls of
// hundreds of MiB end before that.
void make_first_calls(const Call& call) {
  constexpr int kMostCalls = 80;
  constexpr double kMostSeconds = 0.6;
  const double began = example::seconds_now();
  for (int i = 0; i < kMostCalls && example::seconds_now() - began < kMostSeconds; ++i) call();
}

// How many calls take long enough; the first ones warm everything up.
long enough(const Call& call) {
  long times = 1;
  for (;;) {
    const double seconds = seconds_of(call, times);
    if (seconds >= options.least_seconds) return times;
    const double wanted = 1.2 * static_cast<double>(times) * options.least_seconds;
    times = std::max(times * 2, static_cast<long>(wanted / std::max(seconds, 1e-7)));
  }
}

}  // namespace

Options options;

void report(const std::string& name, std::size_t size, const char* unit,
            std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::printf("%s %zu %.6g %s %.6g %.6g %zu\n", name.c_str(), size, values[values.size() / 4], unit,
              values.front(), values.back(), values.size());
  std::fflush(stdout);
}

void compare(const std::string& name, std::size_t size, const Call& ours, const Call& bare) {
  make_first_calls(ours);
  struct Side {
    const Call& call;
    long times;
    std::vector<double> microseconds;
  } sides[] = {{ours, enough(ours), {}}, {bare, enough(bare), {}}};
  for (int i = 0; i < options.repetitions; ++i) {
    for (int k = 0; k < 2; ++k) {
      Side& side = sides[(i + k) % 2];
      const double seconds = seconds_of(side.call, side.times);
      side.microseconds.push_back(seconds * 1e6 / static_cast<double>(side.times));
    }
  }
  report(name, size, "us", sides[0].microseconds);
  report("bare_" + name, size, "us", sides[1].microseconds);
}

void bind_to(int processor) {
  const long processors = ::sysconf(_SC_NPROCESSORS_ONLN);
  if (processors < 2) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(processor % processors), &set);
  ::sched_setaffinity(0, sizeof set, &set);  // where that is not allowed, it stays as it is
}

}  // namespace bench
