// SPDX-License-Identifier: Apache-2.0
// What the programs of this folder share: a job, streams, memory, and the verdict. The same sources
// are kernels of the host device and, compiled by nvcc, of CUDA.
#pragma once

#include <memspan/kernel.h>
#include <memspan/launch.h>
#include <memspan/memspan.h>
#include <shmem.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#if defined __CUDACC__
#include "cuda.h"
#else
#include "host.h"
#endif

namespace example {

// Elements of the symmetric heap, zero at first; made and given back by all PEs together.
template <typename T>
class Symmetric {
 public:
  explicit Symmetric(std::size_t count) : data_(static_cast<T*>(shmem_calloc(count, sizeof(T)))) {
    if (data_ == nullptr) fail("no symmetric memory", memspan_last_error());
  }
  ~Symmetric() { shmem_free(data_); }
  Symmetric(const Symmetric&) = delete;
  Symmetric& operator=(const Symmetric&) = delete;
  T* get() const { return data_; }
  T& operator[](std::size_t i) const { return data_[i]; }

 private:
  T* data_;
};

// Of this PE alone, zero at first; the host and kernels reach it.
template <typename T>
class Local {
 public:
  using value_type = T;
  explicit Local(std::size_t count)
      : size_(count), data_(static_cast<T*>(allocate(count * sizeof(T)))) {
    std::memset(data_, 0, count * sizeof(T));
  }
  ~Local() { release(data_); }
  Local(const Local&) = delete;
  Local& operator=(const Local&) = delete;
  std::size_t size() const { return size_; }
  T* get() const { return data_; }
  T& operator[](std::size_t i) const { return data_[i]; }

 private:
  std::size_t size_;
  T* data_;
};

// An element that is small enough for exact sums in every type.
template <typename T>
MEMSPAN_HOST_DEVICE T element(int pe, std::size_t index) {
  return static_cast<T>((static_cast<std::size_t>(pe) * 31 + index * 7) % 17);
}

// [first, last) of `count` things for block or PE `index` of `parts`.
struct Part {
  std::size_t first;
  std::size_t last;
  MEMSPAN_HOST_DEVICE Part(std::size_t count, std::size_t index, std::size_t parts)
      : first(count * index / parts), last(count * (index + 1) / parts) {}
  MEMSPAN_HOST_DEVICE std::size_t size() const { return last - first; }
};

// All threads of the block wait for the signal.
template <typename S>
MEMSPAN_DEVICE void wait_in_block(const S* signal, k::Compare compare, S with) {
  if (k::thread() == 0) k::signal_wait_until(signal, compare, with);
  k::sync_block();
}

// Starts the job, calls count_errors(T{}) for the type that "-type int|float" names, and tells what
// all PEs found.
template <typename CountErrors>
int run(int argc, char** argv, CountErrors count_errors) {
  std::string type = "int";
  for (int i = 1; i + 1 < argc; i += 2)
    if (std::strcmp(argv[i], "-type") == 0) type = argv[i + 1];
  if (type != "int" && type != "float") {
    std::fprintf(stderr, "%s: -type is \"%s\"; allowed are int and float\n", argv[0], type.c_str());
    return 2;
  }
  shmem_init();
  long all = 0;
  {
    const Symmetric<long> errors(2);
    errors[0] = type == "int" ? count_errors(int{}) : count_errors(float{});
    if (errors[0] != 0) std::fprintf(stderr, "PE %d: %ld errors\n", shmem_my_pe(), errors[0]);
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &errors[1], &errors[0], 1);
    all = errors[1];
    if (shmem_my_pe() == 0)
      std::printf("%s, %s, %d PEs: %s\n", argv[0], type.c_str(), shmem_n_pes(),
                  all == 0 ? "PASS" : "ERROR");
  }
  shmem_finalize();
  return all == 0 ? 0 : 1;
}

}  // namespace example
