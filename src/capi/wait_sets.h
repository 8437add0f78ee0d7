// SPDX-License-Identifier: Apache-2.0
// Waiting for symmetric words of this PE, and looking at them, as the API bindings have them.
//
// All families are one idea: a set of words, each with a value to compare with, some left out by
// their status. A look at the set says which hold; a wait looks until enough do.
#pragma once

#include "capi/access.h"
#include "capi/polling.h"
#include "node/wait.h"

namespace memspan::capi {

// The numbers are those of SHMEM_CMP_EQ … SHMEM_CMP_LE.
enum class Compare : int { kEqual, kNotEqual, kGreater, kGreaterEqual, kLess, kLessEqual };

inline bool is_valid_compare(int number) {
  return number >= 0 && number <= 5;
}

// Loads with acquire order: what was stored before the word is visible after a true result.
template <typename T>
bool holds(const T* word, Compare compare, T value) {
  T now;
  __atomic_load(word, &now, __ATOMIC_ACQUIRE);
  switch (compare) {
    case Compare::kEqual:
      return now == value;
    case Compare::kNotEqual:
      return now != value;
    case Compare::kGreater:
      return now > value;
    case Compare::kGreaterEqual:
      return now >= value;
    case Compare::kLess:
      return now < value;
    case Compare::kLessEqual:
      return now <= value;
  }
  return false;
}

inline constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

// The values that a set is compared with: one for all, or one each.
template <typename T>
struct SameValue {
  T value;
  T operator[](std::size_t) const { return value; }
};

template <typename T, typename Values>
struct WordSet {
  const char* call;
  const T* words;
  std::size_t count;
  const int* status;  // null: all words count
  Compare compare;
  Values values;

  bool counts(std::size_t i) const { return status == nullptr || status[i] == 0; }
  bool has_any() const {
    for (std::size_t i = 0; i < count; ++i)
      if (counts(i)) return true;
    return false;
  }
  bool holds_at(std::size_t i) const {
    return holds(&words[i], compare, static_cast<T>(values[i]));
  }
  bool holds_for_all() const {
    for (std::size_t i = 0; i < count; ++i)
      if (counts(i) && !holds_at(i)) return false;
    return true;
  }
  // The first that holds from `start` on, around the end; kNone when none does.
  std::size_t find_from(std::size_t start) const {
    for (std::size_t k = 0; k < count; ++k) {
      std::size_t i = start + k < count ? start + k : start + k - count;
      if (counts(i) && holds_at(i)) return i;
    }
    return kNone;
  }
  std::size_t collect(std::size_t* indices) const {
    std::size_t found = 0;
    for (std::size_t i = 0; i < count; ++i)
      if (counts(i) && holds_at(i)) indices[found++] = i;
    return found;
  }
};

// The start of a search for any word. Random, so that a caller that always tests the same words
// finds each word that holds in the end.
inline std::size_t some_start(std::size_t count) {
  thread_local std::uint32_t state = 2463534242u;  // Marsaglia's xorshift: any value but 0
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return count == 0 ? 0 : state % count;
}

inline Compare checked_compare(const char* call, int number) {
  if (!is_valid_compare(number)) [[unlikely]]
    end_for_bad_number(call, "cmp", number, 0, 5);
  return static_cast<Compare>(number);
}

template <typename T, typename Values>
WordSet<T, Values> word_set(const char* call, const T* words, std::size_t count, const int* status,
                            int cmp, Values values) {
  require_started(call);
  // No words need no address.
  if (count != 0) require_host_memory(call, "ivars", words, bytes_of(count, sizeof(T)));
  return {call, words, count, status, checked_compare(call, cmp), values};
}

// False when a peer's death ended it.
template <typename Ready>
bool wait_until(const char* call, Ready ready) try {
  return require(call, wait_for(process_state.world->waiting(), WaitsFor::kData, call,
                                Deadline::never(), ready));
}
MEMSPAN_CATCH_AND_END(call)

// By copies of the word, as often as a wait looks; the value that made it true.
template <typename T>
[[gnu::cold, gnu::noinline]] T wait_on_device(const char* call, const T* word, Compare compare,
                                              T value) {
  T seen{};
  wait_until(call, [&] {
    seen = copy_of_device_word(call, word);
    return holds(&seen, compare, value);
  });
  return seen;
}

template <typename T>
void wait_one(const char* call, const T* word, int cmp, T value) {
  const bool is_device = is_device_word(call, "ivar", word);
  Compare compare = checked_compare(call, cmp);
  if (is_device) [[unlikely]]
    return static_cast<void>(wait_on_device(call, word, compare, value));
  wait_until(call, [=] { return holds(word, compare, value); });
}

template <typename T>
[[gnu::noinline]] int test_any_word(const char* call, const T* word, int cmp, T value) {
  const bool is_device = is_device_word(call, "ivar", word);
  const Compare compare = checked_compare(call, cmp);
  if (is_device) [[unlikely]] {
    const T seen = copy_of_device_word(call, word);
    return holds(&seen, compare, value) ? 1 : 0;
  }
  return holds(word, compare, value) ? 1 : 0;
}
template <typename T>
[[gnu::noinline]] int test_noted(const char* call, const T* word, int cmp, T value) {
  return noted(word, [=] { return test_any_word(call, word, cmp, value); });
}
template <typename T>
[[gnu::always_inline]] inline int test_one(const char* call, const T* word, int cmp, T value) {
  if (has_to_note()) [[unlikely]]
    return test_noted(call, word, cmp, value);
  const RouteTable& routes = process_state.routes;
  if (!routes.heap.contains(word, sizeof(T)) || routes.peers == 0 || !is_aligned(word) ||
      !is_valid_compare(cmp)) [[unlikely]]
    return test_any_word(call, word, cmp, value);
  return holds(word, static_cast<Compare>(cmp), value) ? 1 : 0;
}

// Looks at the set by `look`, and notes the result if needed.
template <typename Set, typename Look>
auto test_set(const Set& set, Look look) {
  return has_to_note() ? noted(set.words, look) : look();
}
template <typename Set>
int test_all(const Set& set) {
  return test_set(set, [&] { return set.holds_for_all() ? 1 : 0; });
}
template <typename Set>
std::size_t test_any(const Set& set) {
  return test_set(set, [&] { return set.find_from(some_start(set.count)); });
}
template <typename Set>
std::size_t test_some(const Set& set, std::size_t* indices) {
  return test_set(set, [&] { return set.collect(indices); });
}

template <typename Set>
void wait_all(const Set& set) {
  for (std::size_t i = 0; i < set.count; ++i)
    if (set.counts(i) && !wait_until(set.call, [&] { return set.holds_at(i); })) return;
}

template <typename Set>
std::size_t wait_any(const Set& set) {
  if (!set.has_any()) return kNone;
  std::size_t start = some_start(set.count);
  std::size_t found = kNone;
  wait_until(set.call, [&] { return (found = set.find_from(start)) != kNone; });
  return found;
}

template <typename Set>
std::size_t wait_some(const Set& set, std::size_t* indices) {
  if (!set.has_any()) return 0;
  std::size_t found = 0;
  wait_until(set.call, [&] { return (found = set.collect(indices)) != 0; });
  return found;
}

}  // namespace memspan::capi
