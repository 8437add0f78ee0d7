// SPDX-License-Identifier: Apache-2.0
// The kernels of reductions: how many bytes of the result a sum makes a second, for each type and
// instruction set, beside the sum of float32 by the best one, which does nothing but load, add and
// store. All are measured in turn in every round; what counts is the median of the rounds' ratios.
//
//   reductions_bench [--rounds N] [--short]
//
// It looks inside, for no interface of a user chooses the instruction set.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "pgas/reduction/kernels.h"

namespace memspan::inline pgas {
namespace {

struct Options {
  int rounds = 15;
  double seconds = 1e-3;  // of one measurement
};
struct Type {
  const char* name;
  int number;  // as memspan_type_t has it
};
constexpr int kBfloat16 = 9;
constexpr Type kTypes[] = {{"float32", 10},       {"float16", 8},      {"bfloat16", kBfloat16},
                           {"float8_e4m3fn", 14}, {"float8_e5m2", 15}, {"int8", 0}};
constexpr const char* kSets[] = {"baseline", "AVX2", "AVX-512", "with BF16"};
constexpr std::size_t kSizes[] = {16 << 10, 256 << 10, 4 << 20};
constexpr int kMembers[] = {2, 4};
constexpr std::size_t kMost = 4 << 20;
constexpr std::size_t kAlignment = 4096;

struct FreeArray {
  void operator()(void* array) const { std::free(array); }
};
using Array = std::unique_ptr<std::byte, FreeArray>;

// Of ones in the upper half types, and of numbers that nobody looks at in the others.
Array make_array() {
  Array array(static_cast<std::byte*>(std::aligned_alloc(kAlignment, kMost)));
  for (std::size_t i = 0; i < kMost; ++i) array.get()[i] = std::byte{0x3c};
  return array;
}

// A kernel in one surrounding, and what was measured of it.
struct Subject {
  const char* type;
  const char* set;
  ReductionKernel kernel;
  std::vector<double> rates;   // GB/s of the result
  std::vector<double> ratios;  // to the same round's best float32
};

double rate_of(const ReductionKernel& kernel, void* result, const std::vector<const void*>& sources,
               std::size_t bytes, double seconds) {
  using Clock = std::chrono::steady_clock;
  const std::size_t count = bytes / kernel.bytes;
  const auto combine = [&] {
    kernel.combine(result, sources.data(), static_cast<int>(sources.size()), count);
  };
  // What it touches is in the caches after it, also in one that holds what another has let go.
  for (int i = 0; i < 2; ++i) combine();
  std::size_t calls = 0;
  const Clock::time_point start = Clock::now();
  double taken = 0;
  do {
    combine();
    ++calls;
    taken = std::chrono::duration<double>(Clock::now() - start).count();
  } while (taken < seconds);
  return static_cast<double>(calls * bytes) / taken / 1e9;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

std::vector<Subject> make_subjects() {
  const auto best = static_cast<int>(best_instructions());
  std::vector<Subject> subjects;
  for (const Type& type : kTypes) {
    for (int set = best; set >= 0; --set) {
      if (set == static_cast<int>(Instructions::kAvx512Bf16) && type.number != kBfloat16) continue;
      const auto kernel = reduction_kernel(type.number, static_cast<int>(Operator::kSum),
                                           static_cast<Instructions>(set));
      if (kernel.is_ok()) subjects.push_back({type.name, kSets[set], *kernel, {}, {}});
    }
  }
  return subjects;
}

void measure(std::size_t bytes, int members, const Options& options) {
  std::vector<Array> arrays;
  for (int i = 0; i <= members; ++i) arrays.push_back(make_array());
  std::vector<const void*> sources(static_cast<std::size_t>(members));
  for (std::size_t i = 0; i < sources.size(); ++i) sources[i] = arrays[i].get();
  std::vector<Subject> subjects = make_subjects();
  for (int round = 0; round < options.rounds; ++round) {
    for (Subject& subject : subjects) {
      subject.rates.push_back(
          rate_of(subject.kernel, arrays.back().get(), sources, bytes, options.seconds));
      subject.ratios.push_back(subject.rates.back() / subjects.front().rates.back());
    }
  }
  for (const Subject& subject : subjects)
    fmt::print("{:>5} KiB  {} sources  {:<13}  {:<8}  {:7.2f} GB/s  {:5.2f} of float32\n",
               bytes >> 10, members, subject.type, subject.set, median(subject.rates),
               median(subject.ratios));
}

int run(int arguments, char** values) {
  Options options;
  for (int i = 1; i < arguments; ++i) {
    const std::string_view option = values[i];
    if (option == "--short") {
      options = {1, 1e-6};
    } else if (option == "--rounds" && i + 1 < arguments && std::atoi(values[i + 1]) > 0) {
      options.rounds = std::atoi(values[++i]);
    } else {
      fmt::print(stderr, "reductions_bench: {}: allowed are --rounds N (from 1) and --short\n",
                 option);
      return 2;
    }
  }
  for (const std::size_t bytes : kSizes)
    for (const int members : kMembers) measure(bytes, members, options);
  return 0;
}

}  // namespace
}  // namespace memspan::inline pgas

int main(int arguments, char** values) {
  return memspan::run(arguments, values);
}
