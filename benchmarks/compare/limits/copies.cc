// SPDX-License-Identifier: Apache-2.0
// Copies between private and shared memory, and the first write to fresh pages.
#include <immintrin.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>

#include "measure.h"

namespace limits {
namespace {

void copy_libc(char* d, const char* s, std::size_t n) {
  std::memcpy(d, s, n);
}

void copy_movsb(char* d, const char* s, std::size_t n) {
  asm volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
}

__attribute__((target("avx2"))) void copy_avx(char* d, const char* s, std::size_t n) {
  for (std::size_t i = 0; i < n; i += 64) {
    __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(s + i));
    __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(s + i + 32));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(d + i), a);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(d + i + 32), b);
  }
}

__attribute__((target("avx2"))) void copy_nt(char* d, const char* s, std::size_t n) {
  for (std::size_t i = 0; i < n; i += 64) {
    __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(s + i));
    __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(s + i + 32));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(d + i), a);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(d + i + 32), b);
  }
  _mm_sfence();
}

struct Method {
  const char* name;
  void (*copy)(char*, const char*, std::size_t);
  bool avx;
};
constexpr Method kMethods[] = {{"libc", copy_libc, false},
                               {"movsb", copy_movsb, false},
                               {"avx", copy_avx, true},
                               {"nt", copy_nt, true}};

// One pair of buffers for each of two threads.
struct Buffers {
  char *mine[2], *shared[2];
  std::size_t size;
};

std::vector<double> one_thread(const Method& method, char* to, const char* from, std::size_t size) {
  auto copies = [&](long n) {
    for (long i = 0; i < n; i++) method.copy(to, from, size);
  };
  return rate(sample(copies), static_cast<double>(size));
}

// A start line, then a fixed amount of work for each; the sum of both, in MB/s.
double two_threads(const Method& method, const Buffers& buffers) {
  long n = static_cast<long>(std::max<std::size_t>(1, (std::size_t{1} << 28) / buffers.size));
  std::atomic<int> ready{0};
  double begin[2], end[2];
  auto work = [&](int t) {
    method.copy(buffers.shared[t], buffers.mine[t], buffers.size);
    ready++;
    while (ready < 2) _mm_pause();
    begin[t] = now();
    for (long i = 0; i < n; i++) method.copy(buffers.shared[t], buffers.mine[t], buffers.size);
    end[t] = now();
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  double seconds = std::max(end[0], end[1]) - std::min(begin[0], begin[1]);
  return 2.0 * static_cast<double>(buffers.size) * static_cast<double>(n) / seconds * 1e-6;
}

void copy_figures(const Method& method, const Buffers& b) {
  report(std::string("copy_put_") + method.name, b.size, "MB/s",
         one_thread(method, b.shared[0], b.mine[0], b.size));
  report(std::string("copy_get_") + method.name, b.size, "MB/s",
         one_thread(method, b.mine[0], b.shared[0], b.size));
  std::vector<double> v;
  for (int r = 0; r < options.repetitions; r++) v.push_back(two_threads(method, b));
  report(std::string("copy2_put_") + method.name, b.size, "MB/s", v);
}

// MB/s of the first write to every page of p.
double first_write(char* p, std::size_t size, int value) {
  double start = now();
  std::memset(p, value, size);
  return static_cast<double>(size) / (now() - start) * 1e-6;
}

double populate(std::size_t size) {
  int fd = memfd_create("limits", options.hugetlb ? MFD_HUGETLB : 0U);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(size)) < 0) die("memfd_create");
  double start = now();
  void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  double speed = static_cast<double>(size) / (now() - start) * 1e-6;
  if (p == MAP_FAILED) die("mmap");
  munmap(p, size);
  close(fd);
  return speed;
}

}  // namespace

void copy_group() {
  for (std::size_t size = 4096; size <= options.max_bytes; size *= 4) {
    Buffers buffers{};
    buffers.size = size;
    for (int t = 0; t < 2; t++) {
      buffers.mine[t] = private_map(size);
      buffers.shared[t] = shared_map(size);
      std::memset(buffers.mine[t], 1, size);
      std::memset(buffers.shared[t], 2, size);
    }
    for (const Method& method : kMethods)
      if (!method.avx || __builtin_cpu_supports("avx2")) copy_figures(method, buffers);
    for (int t = 0; t < 2; t++) {
      munmap(buffers.mine[t], size);
      shared_unmap(buffers.shared[t], size);
    }
  }
}

void fault_group() {
  const std::size_t size = std::min(options.max_bytes, std::size_t{64} << 20);
  std::vector<double> mine, shared, again, unmap, populated;
  for (int r = 0; r < options.repetitions; r++) {
    char* p = private_map(size);
    mine.push_back(first_write(p, size, 1));
    munmap(p, size);
    char* s = shared_map(size);
    shared.push_back(first_write(s, size, 1));
    again.push_back(first_write(s, size, 2));
    double start = now();
    shared_unmap(s, size);
    unmap.push_back((now() - start) * 1e6);
    populated.push_back(populate(size));
  }
  report("fault_private", size, "MB/s", mine);
  report("fault_shared", size, "MB/s", shared);
  report("fault_shared_second", size, "MB/s", again);
  report("fault_populate", size, "MB/s", populated);
  report("fault_unmap", size, "us", unmap);
}

}  // namespace limits
