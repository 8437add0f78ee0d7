// SPDX-License-Identifier: Apache-2.0
#include "node/call_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace memspan {
namespace {

constinit CallTable the_table;

void lower(std::atomic<std::uint64_t>& least, std::uint64_t value) {
  std::uint64_t now = least.load(std::memory_order_relaxed);
  while ((now == 0 || value < now) &&
         !least.compare_exchange_weak(now, value, std::memory_order_relaxed)) {
  }
}

void raise(std::atomic<std::uint64_t>& most, std::uint64_t value) {
  std::uint64_t now = most.load(std::memory_order_relaxed);
  while (value > now && !most.compare_exchange_weak(now, value, std::memory_order_relaxed)) {
  }
}

// A call has a text in each file that names it.
struct Sum {
  std::uint64_t begun = 0;
  std::uint64_t good = 0;
  std::uint64_t bad = 0;
  std::uint64_t least_ns = 0;
  std::uint64_t most_ns = 0;
  std::uint64_t total_ns = 0;
};

double microseconds(std::uint64_t nanoseconds) {
  return static_cast<double>(nanoseconds) * 1e-3;
}

constexpr std::string_view kLine =
    "{:<19} {:<40} {:>12} {:>12} {:>8} {:>8} {:>12} {:>12} {:>12} {:>14}\n";

}  // namespace

CallTable& call_table() {
  return the_table;
}

CallTable::Row* CallTable::row_of(const char* call) {
  const std::size_t first = reinterpret_cast<std::uintptr_t>(call) / 8;
  for (std::size_t i = 0; i < kMostCalls; ++i) {
    Row& row = rows_[(first + i) % kMostCalls];
    const char* there = row.call.load(std::memory_order_relaxed);
    if (there == call) return &row;
    if (there != nullptr) continue;
    if (row.call.compare_exchange_strong(there, call, std::memory_order_relaxed) || there == call)
      return &row;
  }
  return nullptr;
}

void CallTable::begin(const char* call) {
  if (Row* row = row_of(call)) row->begun.fetch_add(1, std::memory_order_relaxed);
}

void CallTable::end(const char* call, std::uint64_t nanoseconds, bool is_good) {
  Row* const row = row_of(call);
  if (row == nullptr) return;
  if (!is_good) {
    row->bad.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  row->good.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t took = std::max<std::uint64_t>(nanoseconds, 1);
  row->total_ns.fetch_add(took, std::memory_order_relaxed);
  lower(row->least_ns, took);
  raise(row->most_ns, took);
}

std::string CallTable::heading() {
  return fmt::format(kLine, "TIME", "NAME", "BEGIN", "GOOD_END", "BAD_END", "ON_FLY", "MIN(us)",
                     "MAX(us)", "AVG(us)", "TOTAL(us)");
}

std::string CallTable::rows(std::string_view time) const {
  std::map<std::string_view, Sum> sums;
  for (const Row& row : rows_) {
    const char* const call = row.call.load(std::memory_order_relaxed);
    if (call == nullptr) continue;
    Sum& sum = sums[call];
    // Ends first: a call that ends in between has begun.
    sum.good += row.good.load(std::memory_order_relaxed);
    sum.bad += row.bad.load(std::memory_order_relaxed);
    sum.begun += row.begun.load(std::memory_order_relaxed);
    sum.total_ns += row.total_ns.load(std::memory_order_relaxed);
    sum.most_ns = std::max(sum.most_ns, row.most_ns.load(std::memory_order_relaxed));
    const std::uint64_t least = row.least_ns.load(std::memory_order_relaxed);
    if (least != 0 && (sum.least_ns == 0 || least < sum.least_ns)) sum.least_ns = least;
  }
  std::string text;
  for (const auto& [call, sum] : sums) {
    if (sum.begun == 0) continue;
    const std::uint64_t ended = std::min(sum.begun, sum.good + sum.bad);
    const double total = microseconds(sum.total_ns);
    text += fmt::format(
        kLine, time, call, sum.begun, sum.good, sum.bad, sum.begun - ended,
        fmt::format("{:.3f}", microseconds(sum.least_ns)),
        fmt::format("{:.3f}", microseconds(sum.most_ns)),
        fmt::format("{:.3f}", sum.good == 0 ? 0 : total / static_cast<double>(sum.good)),
        fmt::format("{:.3f}", total));
  }
  return text;
}

void CallTable::clear() {
  for (Row& row : rows_) {
    row.call.store(nullptr, std::memory_order_relaxed);
    for (std::atomic<std::uint64_t>* number :
         {&row.begun, &row.good, &row.bad, &row.least_ns, &row.most_ns, &row.total_ns})
      number->store(0, std::memory_order_relaxed);
  }
}

}  // namespace memspan
