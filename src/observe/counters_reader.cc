// SPDX-License-Identifier: Apache-2.0
#include "observe/counters_reader.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace memspan {
namespace {

WaitSeen read_wait(const ThreadCounters& thread, std::uint64_t since, std::uint64_t now) {
  char text[sizeof thread.what];
  for (std::size_t i = 0; i < std::size(thread.what); ++i) {
    const std::uint64_t word = thread.what[i].load(std::memory_order_relaxed);
    std::memcpy(text + i * sizeof word, &word, sizeof word);
  }
  return {.thread = thread.thread.load(std::memory_order_relaxed),
          .call = printable(text, sizeof text),
          .awaited = thread.awaited.load(std::memory_order_relaxed),
          .nanoseconds = now > since ? now - since : 0};
}

}  // namespace

std::string printable(const char* text, std::size_t room) {
  std::string result(text, strnlen(text, room));
  for (char& letter : result)
    if (std::isprint(static_cast<unsigned char>(letter)) == 0) letter = '?';
  return result;
}

std::uint64_t CountersSeen::waited_so_far_ns() const {
  std::uint64_t all = waited_ns;
  if (counts_calls)
    for (const WaitSeen& wait : waiting) all += wait.nanoseconds;
  return all;
}

CountersSeen read_counters(const CountersRegion& region, std::uint64_t now_ns) {
  CountersSeen seen;
  seen.process = region.header.process;
  seen.counts_calls = region.header.counts_calls.load(std::memory_order_relaxed) != 0;
  seen.uncounted_threads = region.header.uncounted.load(std::memory_order_relaxed);
  for (const MemberSlot& slot : region.members) {
    const MemberKind kind = slot.kind.load(std::memory_order_acquire);
    if (kind == MemberKind::kNone) continue;
    seen.members.push_back({kind, printable(slot.name, sizeof slot.name),
                            slot.rank.load(std::memory_order_relaxed),
                            slot.size.load(std::memory_order_relaxed),
                            slot.memory_bytes.load(std::memory_order_relaxed),
                            slot.memory_used.load(std::memory_order_relaxed)});
  }
  const std::size_t threads = std::min<std::size_t>(
      region.header.threads.load(std::memory_order_relaxed), kMostCountedThreads);
  for (std::size_t i = 0; i < threads; ++i) {
    const ThreadCounters& thread = region.threads[i];
    for (std::size_t kind = 0; kind < kCallKinds; ++kind) {
      seen.calls[kind].calls += thread.calls[kind].load(std::memory_order_relaxed);
      seen.calls[kind].bytes += thread.bytes[kind].load(std::memory_order_relaxed);
    }
    seen.waits += thread.waits.load(std::memory_order_relaxed);
    seen.waited_ns += thread.waited_ns.load(std::memory_order_relaxed);
    if (thread.thread.load(std::memory_order_relaxed) != 0) ++seen.threads;
    // Pairs with the release of begin_wait().
    const std::uint64_t since = thread.waiting_since.load(std::memory_order_acquire);
    if (since == 0) continue;
    seen.waiting.push_back(read_wait(thread, since, now_ns));
  }
  std::sort(seen.waiting.begin(), seen.waiting.end(),
            [](const WaitSeen& one, const WaitSeen& other) {
              return one.nanoseconds > other.nanoseconds;
            });
  return seen;
}

}  // namespace memspan
