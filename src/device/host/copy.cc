// SPDX-License-Identifier: Apache-2.0
#include "device/host/copy.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <bit>

#include "core/cpu.h"
#include "core/environment.h"
#include "core/pages.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace memspan::inline device {
namespace {

constexpr const char* kCopyVariable = "MEMSPAN_COPY";
constexpr const char* kMeasured = "measured";

void copy_by_library(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

#if defined(__x86_64__)
void copy_by_string(std::byte* to, const std::byte* from, std::size_t bytes) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

constexpr std::size_t kStep = 2 * kCacheLine;
static_assert(kLargeCopyBytes >= kCacheLine + kStep);

struct Step {
  __m256i vectors[4];
};

// All loads of a step come before its stores, so that their misses overlap.
__attribute__((target("avx2"))) inline Step load(const std::byte* from) {
  const auto* vectors = reinterpret_cast<const __m256i*>(from);
  return {{_mm256_loadu_si256(vectors), _mm256_loadu_si256(vectors + 1),
           _mm256_loadu_si256(vectors + 2), _mm256_loadu_si256(vectors + 3)}};
}

// The target of a step's stores: any address, an aligned one, or an aligned one past the caches.
enum class Place { kAny, kWhole, kPastCaches };

template <Place place>
__attribute__((target("avx2"))) inline void store(__m256i* to, __m256i vector) {
  if constexpr (place == Place::kAny) _mm256_storeu_si256(to, vector);
  if constexpr (place == Place::kWhole) _mm256_store_si256(to, vector);
  if constexpr (place == Place::kPastCaches) _mm256_stream_si256(to, vector);
}

template <Place place>
__attribute__((target("avx2"))) inline void store(std::byte* to, const Step& step) {
  auto* vectors = reinterpret_cast<__m256i*>(to);
  store<place>(vectors, step.vectors[0]);
  store<place>(vectors + 1, step.vectors[1]);
  store<place>(vectors + 2, step.vectors[2]);
  store<place>(vectors + 3, step.vectors[3]);
}

// How far ahead of its loads a copy prefetches the source. Bytes from memory at 20 GB/s and more
// take 100 ns, which is 2 KiB of them. Bytes from the last cache take a quarter of that. The
// processor's own prefetchers stop at the end of each page of 4 KiB. On some processors a prefetch
// past the caches makes a loop three times slower.
constexpr std::size_t kNotAhead = 0;
constexpr std::size_t kCacheAhead = 512;
constexpr std::size_t kMemoryAhead = 2048;

// A copy past the caches must not fill them with its source either.
template <Place place>
inline void ask_for(const std::byte* from) {
  constexpr int kInto = place == Place::kPastCaches ? 0 : 3;  // non-temporal, or all caches
  __builtin_prefetch(from, 0, kInto);
  __builtin_prefetch(from + kCacheLine, 0, kInto);
}

// Stores whole lines of `to`, except in the last step, and in the first if `to` does not begin a
// line. If steps overlap, the same bytes are written twice.
template <Place place, std::size_t ahead>
__attribute__((target("avx2"))) void copy_in_steps(std::byte* to, const std::byte* from,
                                                   std::size_t bytes) {
  const std::byte* const last = from + bytes - kStep;
  std::byte* const last_to = to + bytes - kStep;
  if (const auto before = reinterpret_cast<std::uintptr_t>(to) % kCacheLine; before != 0) {
    store<Place::kAny>(to, load(from));
    from += kCacheLine - before;
    to += kCacheLine - before;
  }
  if constexpr (ahead != kNotAhead)
    for (; from + ahead < last; from += kStep, to += kStep) {
      ask_for<place>(from + ahead);
      store<place>(to, load(from));
    }
  for (; from < last; from += kStep, to += kStep) store<place>(to, load(from));
  store<Place::kAny>(last_to, load(last));
}

// Like copy_in_steps(), with four vectors of a whole line each: the processor need not read a line
// that is written whole.
struct WideStep {
  __m512i vectors[4];
};

__attribute__((target("avx512f"))) inline WideStep load_wide(const std::byte* from) {
  return {{_mm512_loadu_si512(from), _mm512_loadu_si512(from + kCacheLine),
           _mm512_loadu_si512(from + 2 * kCacheLine), _mm512_loadu_si512(from + 3 * kCacheLine)}};
}

template <Place place>
__attribute__((target("avx512f"))) inline void store_wide(std::byte* to, const WideStep& step) {
  for (std::size_t i = 0; i < 4; ++i) {
    if constexpr (place == Place::kPastCaches)
      _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i * kCacheLine), step.vectors[i]);
    else
      _mm512_storeu_si512(to + i * kCacheLine, step.vectors[i]);
  }
}

template <Place place>
__attribute__((target("avx512f"))) void copy_in_wide_steps(std::byte* to, const std::byte* from,
                                                           std::size_t bytes) {
  const std::byte* const last = from + bytes - sizeof(WideStep);
  std::byte* const last_to = to + bytes - sizeof(WideStep);
  if (const auto before = reinterpret_cast<std::uintptr_t>(to) % kCacheLine; before != 0) {
    store_wide<Place::kAny>(to, load_wide(from));
    from += kCacheLine - before;
    to += kCacheLine - before;
  }
  for (; from < last; from += sizeof(WideStep), to += sizeof(WideStep))
    store_wide<place>(to, load_wide(from));
  store_wide<Place::kAny>(last_to, load_wide(last));
}

#endif

// The ways of this machine, or the one that MEMSPAN_COPY names.
struct Ways {
  std::vector<CopyWay> all = {{"library", copy_by_library}};
  // For a copy of fewer bytes than are measured.
  void (*small)(std::byte*, const std::byte*, std::size_t) = copy_by_library;
  Status status;  // kInvalidArgument: MEMSPAN_COPY names none

  void take(std::string_view wanted) {
    if (wanted == kMeasured) return;
    const auto found = std::ranges::find(all, wanted, &CopyWay::name);
    if (found == all.end()) {
      std::string names = kMeasured;
      for (const CopyWay& way : all) names += fmt::format(", {}", way.name);
      status = {Code::kInvalidArgument,
                fmt::format("{} is \"{}\"; allowed here are {}", kCopyVariable, wanted, names)};
      return;
    }
    all = {*found};
  }
};

Ways find_ways() {
  Ways ways;
#if defined(__x86_64__)
  ways.all.push_back({"string", copy_by_string});
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") != 0) {
    ways.small = copy_in_steps<Place::kWhole, kNotAhead>;
    ways.all.push_back({"vectors", ways.small});
    ways.all.push_back({"vectors-ahead", copy_in_steps<Place::kWhole, kCacheAhead>});
    ways.all.push_back({"past-caches", copy_in_steps<Place::kPastCaches, kNotAhead>, true});
    ways.all.push_back(
        {"past-caches-ahead", copy_in_steps<Place::kPastCaches, kMemoryAhead>, true});
  }
  // Processors that lower their clock for vectors of 64 bytes are those without VBMI2.
  if (__builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512vbmi2") != 0) {
    ways.all.push_back({"wide", copy_in_wide_steps<Place::kAny>});
    ways.all.push_back({"wide-past-caches", copy_in_wide_steps<Place::kPastCaches>, true});
  }
#endif
  ways.take(environment_or(kCopyVariable, kMeasured));
  return ways;
}

// Sizes from kMeasuredCopyBytes to 64 MiB, each twice as large as the one before.
constexpr unsigned kSizes = 9;

struct Copies {
  const Ways ways = find_ways();
  std::array<CopyChoice, kSizes> whole;
  std::array<CopyChoice, kSizes> pieces;
};

Copies& copies() {
  static Copies* const all = new Copies;  // never destroyed: exit handlers may still copy
  return *all;
}

unsigned size_class_of(std::size_t bytes) {
  const auto doubled = static_cast<unsigned>(std::bit_width(bytes / kMeasuredCopyBytes)) - 1;
  return std::min(doubled, kSizes - 1);
}

// The bytes of one turn of a trial: a copy of many bytes has all turns. Each begins at the same
// place of a page.
std::size_t part_of(std::size_t bytes) {
  constexpr std::size_t kDividedBytes = std::size_t{16} << 20;
  constexpr std::size_t kPage = 4096;
  constexpr std::size_t kTurns = std::size_t{CopyChoice::kTries} * CopyChoice::kMostWays;
  return bytes < kDividedBytes ? bytes : align_up(bytes / kTurns + 1, kPage);
}

// Page faults and changes of threads of this thread so far.
std::int64_t disturbances() {
  rusage used{};
  if (::getrusage(RUSAGE_THREAD, &used) != 0) return 0;
  return used.ru_minflt + used.ru_majflt + used.ru_nvcsw + used.ru_nivcsw;
}

}  // namespace

std::span<const CopyWay> copy_ways() {
  return copies().ways.all;
}

Status check_copy_setting() {
  return copies().ways.status;
}

void order_copies_past_caches() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

void copy_large(void* to, const void* from, std::size_t bytes) {
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  if (bytes < kMeasuredCopyBytes) return copies().ways.small(target, source, bytes);
  const std::size_t part = part_of(bytes), all = bytes;
  while (bytes > 0) {
    MeasuredCopy copy(all, MeasuredCopy::Shape::kWhole);
    const std::size_t count = copy.is_rated() ? std::min(part, bytes) : bytes;
    copy(target, source, count);
    target += count;
    source += count;
    bytes -= count;
  }
}

MeasuredCopy::MeasuredCopy(std::size_t bytes, Shape shape) {
  if (bytes < kMeasuredCopyBytes) return;
  Copies& all = copies();
  choice_ = &(shape == Shape::kWhole ? all.whole : all.pieces)[size_class_of(bytes)];
  turn_ = choice_->next(static_cast<unsigned>(all.ways.all.size()));
  way_ = &all.ways.all[turn_.way];
  if (turn_.is_rated()) disturbances_ = disturbances();
  if (way_->is_past_caches) order_copies_past_caches();
}

MeasuredCopy::~MeasuredCopy() {
  if (is_past_caches()) order_copies_past_caches();
  if (!turn_.is_rated()) return;
  const bool is_telling = bytes_ >= kMeasuredCopyBytes / 2 && disturbances() == disturbances_;
  choice_->rate(turn_, is_telling ? CopyChoice::cost_of(took_, bytes_) : 0);
}

void MeasuredCopy::rated(std::byte* to, const std::byte* from, std::size_t bytes) {
  const Clock::time_point begin = Clock::now();
  way_->copy(to, from, bytes);
  if (way_->is_past_caches) order_copies_past_caches();
  took_ += Clock::now() - begin;
  bytes_ += bytes;
}

std::vector<CopyRate> copy_rates() {
  std::vector<CopyRate> rates;
  for (unsigned size = 0; size < kSizes; ++size) {
    const CopyChoice& choice = copies().whole[size];
    if (choice.best_cost() != 0)
      rates.push_back(
          {kMeasuredCopyBytes << size, copy_ways()[choice.best()].name, choice.bytes_per_second()});
  }
  return rates;
}

}  // namespace memspan::inline device
