// SPDX-License-Identifier: Apache-2.0
// The six comparisons of the wait and test families, on a word that peers change.
#pragma once

#include <atomic>

namespace memspan::pgas {

// The numbers are those of SHMEM_CMP_EQ … SHMEM_CMP_LE.
enum class Compare : int {
  kEqual = 0,
  kNotEqual = 1,
  kGreater = 2,
  kGreaterEqual = 3,
  kLess = 4,
  kLessEqual = 5
};

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

}  // namespace memspan::pgas
