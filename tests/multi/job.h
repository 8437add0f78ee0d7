// SPDX-License-Identifier: Apache-2.0
// Small things that all multi-process tests use.
#pragma once

#include <gtest/gtest.h>
#include <shmem.h>

#include <cstddef>
#include <cstdint>

namespace memspan::multi {

inline int me() {
  return shmem_my_pe();
}
inline int peers() {
  return shmem_n_pes();
}
inline int next() {
  return (me() + 1) % peers();
}
inline int previous() {
  return (me() + peers() - 1) % peers();
}

// Symmetric memory for one test: allocated and given back by all together.
template <typename T>
class Symmetric {
 public:
  explicit Symmetric(std::size_t count) : data_(static_cast<T*>(shmem_calloc(count, sizeof(T)))) {}
  ~Symmetric() { shmem_free(data_); }
  Symmetric(const Symmetric&) = delete;
  Symmetric& operator=(const Symmetric&) = delete;
  T* get() const { return data_; }
  T& operator[](std::size_t i) const { return data_[i]; }

 private:
  T* data_;
};

}  // namespace memspan::multi
