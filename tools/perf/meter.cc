// SPDX-License-Identifier: Apache-2.0
#include "perf/meter.h"

#include <fmt/format.h>
#include <shmem.h>

#include <algorithm>

namespace memspan::perf {
namespace {

constexpr double kClocksOfASample = 50;
// A row has so many where they take no more than kMostOver times its seconds, and some in any case.
constexpr std::size_t kGoodSamples = 20;
constexpr std::size_t kFewestSamples = 5;
constexpr double kMostOver = 5;
constexpr std::size_t kMostCount = std::size_t{1} << 20;

// The number that PE 0 distributes; a static variable is symmetric.
long agreed = 0;

double cost_of_clock() {
  constexpr int kReads = 2000;
  const double since = now_ns();
  for (int i = 0; i < kReads; ++i) static_cast<void>(now_ns());
  return (now_ns() - since) / kReads;
}

// How many samples of so many ns a row has.
std::size_t samples_in(const Plan& plan, double sample_ns) {
  const double fitting = plan.seconds * 1e9 / sample_ns;
  const double good = std::min(static_cast<double>(kGoodSamples), kMostOver * fitting);
  const auto samples = static_cast<std::size_t>(
      std::min(std::max(fitting, good), static_cast<double>(plan.samples)));
  return std::max(samples, std::min(kFewestSamples, plan.samples));
}

Status no_room(std::size_t bytes) {
  return {Code::kOutOfMemory,
          fmt::format("the symmetric heap has no {} bytes; SHMEM_SYMMETRIC_SIZE makes it larger",
                      bytes)};
}

}  // namespace

Meter::Meter(Plan plan, Emit emit)
    : plan_(std::move(plan)),
      emit_(std::move(emit)),
      rank_(shmem_my_pe()),
      size_(shmem_n_pes()),
      clock_ns_(cost_of_clock()),
      others_(plan_.samples) {}

Result<std::unique_ptr<Meter>> Meter::make(Plan plan, Emit emit) {
  std::unique_ptr<Meter> meter(new Meter(std::move(plan), std::move(emit)));
  const std::size_t bytes = meter->plan_.samples * sizeof(double);
  meter->samples_ = static_cast<double*>(shmem_malloc(bytes));
  if (meter->samples_ == nullptr)
    return no_room(bytes).annotate(fmt::format("{} samples", meter->plan_.samples));
  return meter;
}

Meter::~Meter() {
  free_symmetric();
  if (samples_ != nullptr) shmem_free(samples_);
}

void Meter::free_symmetric() {
  for (std::byte* memory : taken_) shmem_free(memory);
  taken_.clear();
}

Result<std::byte*> Meter::symmetric(std::size_t bytes) {
  void* memory = shmem_calloc(1, bytes);
  if (memory == nullptr) return no_room(bytes);
  taken_.push_back(static_cast<std::byte*>(memory));
  return taken_.back();
}

std::size_t Meter::agree(std::size_t value) {
  shmem_barrier_all();
  if (rank_ == 0)
    for (int pe = 0; pe < size_; ++pe) shmem_long_p(&agreed, static_cast<long>(value), pe);
  shmem_barrier_all();
  return static_cast<std::size_t>(agreed);
}

double Meter::time_of(Actors actors, std::size_t count,
                      const std::function<void(std::size_t)>& operations) const {
  if (actors == Actors::kAll) shmem_barrier_all();
  const double since = now_ns();
  operations(count);
  return now_ns() - since;
}

// So many that the clock does not count, found by doubling. All PEs come to the same number.
std::size_t Meter::choose_count(Actors actors, const std::function<void(std::size_t)>& operations) {
  const bool is_actor = actors == Actors::kAll || rank_ == 0;
  std::size_t count = 1;
  for (;;) {
    const double enough = kClocksOfASample * clock_ns_;
    double best = 0;
    for (int i = 0; i < 3 && is_actor; ++i) {
      const double ns = time_of(actors, count, operations);
      best = i == 0 ? ns : std::min(best, ns);
      // One far longer time is enough, but all PEs of kAll must make the same attempts.
      if (actors == Actors::kFirst && ns > 1000 * enough) break;
    }
    const bool is_enough = best >= enough || count >= kMostCount;
    if (actors == Actors::kFirst) {
      // The others need not know.
      if (!is_actor || is_enough) return count;
    } else if (agree(is_enough ? 1 : 0) == 1) {
      return count;
    }
    count *= 2;
  }
}

double Meter::warm_up(Actors actors, std::size_t count,
                      const std::function<void(std::size_t)>& operations) {
  const double begin = now_ns();
  double sum = 0;
  for (std::size_t done = 1;; ++done) {
    sum += time_of(actors, count, operations);
    bool is_enough = done >= plan_.warm_up || now_ns() - begin >= plan_.seconds * 1e9;
    // All do the same number of them.
    if (actors == Actors::kAll) is_enough = agree(is_enough ? 1 : 0) == 1;
    if (is_enough) return std::max(sum / static_cast<double>(done), 1.0);
  }
}

void Meter::measure(const Test& test, std::size_t bytes, Actors actors, std::size_t each,
                    const std::function<void(std::size_t)>& operations) {
  shmem_barrier_all();
  const bool is_actor = actors == Actors::kAll || rank_ == 0;
  const std::size_t count = choose_count(actors, operations);
  // The warm-up says how many samples the time is for.
  const double sample_ns = is_actor ? warm_up(actors, count, operations) : 1;
  std::size_t samples = samples_in(plan_, sample_ns);
  if (actors == Actors::kAll) samples = agree(samples);
  const double operations_of_a_sample = static_cast<double>(count) * static_cast<double>(each);
  for (std::size_t i = 0; i < samples && is_actor; ++i)
    samples_[i] = time_of(actors, count, operations) / operations_of_a_sample;
  shmem_barrier_all();
  if (rank_ == 0) {
    Row row{.test = std::string(test.name),
            .bytes = bytes,
            .batch = count * each,
            .ns = std::vector<double>(samples_, samples_ + samples)};
    for (int pe = 1; actors == Actors::kAll && pe < size_; ++pe) {
      shmem_getmem(others_.data(), samples_, samples * sizeof(double), pe);
      for (std::size_t i = 0; i < samples; ++i) row.ns[i] = std::max(row.ns[i], others_[i]);
    }
    emit_(row);
  }
  shmem_barrier_all();
}

}  // namespace memspan::perf
