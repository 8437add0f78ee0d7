// SPDX-License-Identifier: Apache-2.0
// What the programs of this folder share: a job, a stream, symmetric memory, and the verdict.
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

namespace example {

namespace k = memspan::kernel;

// Elements of the symmetric heap, zero at first; made and given back by all PEs together.
template <typename T>
class Symmetric {
 public:
  explicit Symmetric(std::size_t count) : data_(static_cast<T*>(shmem_calloc(count, sizeof(T)))) {
    if (data_ != nullptr) return;
    std::fprintf(stderr, "no symmetric memory: %s\n", memspan_last_error());
    shmem_global_exit(1);
  }
  ~Symmetric() { shmem_free(data_); }
  Symmetric(const Symmetric&) = delete;
  Symmetric& operator=(const Symmetric&) = delete;
  T* get() const { return data_; }
  T& operator[](std::size_t i) const { return data_[i]; }

 private:
  T* data_;
};

class Stream {
 public:
  Stream() { require(memspan_stream_create(&stream_)); }
  ~Stream() { memspan_stream_destroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  memspan_stream_t get() const { return stream_; }

  template <typename Kernel, typename... Arguments>
  void launch(unsigned blocks, Kernel kernel, Arguments... arguments) {
    require(memspan::launch(stream_, blocks, kernel, arguments...));
  }
  void synchronize() { require(memspan_stream_synchronize(stream_, UINT32_MAX)); }

  static void require(std::int32_t code) {
    if (code == 0) return;
    std::fprintf(stderr, "code %d: %s\n", static_cast<int>(code), memspan_last_error());
    shmem_global_exit(1);
  }

 private:
  memspan_stream_t stream_ = nullptr;
};

// An element that is small enough for exact sums in every type.
template <typename T>
T element(int pe, std::size_t index) {
  return static_cast<T>((static_cast<std::size_t>(pe) * 31 + index * 7) % 17);
}

// [first, last) of `count` things for block or PE `index` of `parts`.
struct Part {
  std::size_t first;
  std::size_t last;
  Part(std::size_t count, std::size_t index, std::size_t parts)
      : first(count * index / parts), last(count * (index + 1) / parts) {}
  std::size_t size() const { return last - first; }
};

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
