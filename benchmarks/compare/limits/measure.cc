// SPDX-License-Identifier: Apache-2.0
#include "measure.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace limits {

Options options;

double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

std::vector<double> sample(const std::function<void(long)>& f) {
  long n = 1;
  for (;;) {
    double start = now();
    f(n);
    double seconds = now() - start;
    if (seconds >= 5e-3 || n >= 1L << 26) break;
    n *= seconds < 3e-4 ? 8 : 2;
  }
  std::vector<double> v;
  for (int r = 0; r < options.repetitions; r++) {
    double start = now();
    f(n);
    v.push_back((now() - start) / static_cast<double>(n));
  }
  return v;
}

std::vector<double> scaled(std::vector<double> seconds, double factor) {
  for (double& x : seconds) x *= factor;
  return seconds;
}

std::vector<double> rate(std::vector<double> seconds, double bytes) {
  for (double& x : seconds) x = bytes / x * 1e-6;
  return seconds;
}

void report(const std::string& name, std::size_t size, const char* unit, std::vector<double> v) {
  std::sort(v.begin(), v.end());
  std::size_t n = v.size();
  double median = n % 2 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
  std::printf("%-24s %10zu %14.4f %-5s %14.4f %14.4f %zu\n", name.c_str(), size, median, unit,
              v.front(), v.back(), n);
  std::fflush(stdout);
}

char* private_map(std::size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) die("mmap private");
  if (options.transparent_huge_pages) madvise(p, bytes, MADV_HUGEPAGE);
  return static_cast<char*>(p);
}

static std::size_t mapped_size(std::size_t bytes) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  return options.hugetlb ? (bytes + kHugePage - 1) & ~(kHugePage - 1) : bytes;
}

char* shared_map(std::size_t bytes) {
  bytes = mapped_size(bytes);
  int fd = memfd_create("limits", options.hugetlb ? MFD_HUGETLB : 0U);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) < 0) die("memfd_create");
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (p == MAP_FAILED) die("mmap shared");
  close(fd);
  if (options.transparent_huge_pages) madvise(p, bytes, MADV_HUGEPAGE);
  return static_cast<char*>(p);
}

void shared_unmap(void* p, std::size_t bytes) {
  munmap(p, mapped_size(bytes));
}

Shared* shared_page() {
  void* p = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) die("mmap");
  return new (p) Shared{};
}

void shared_page_unmap(Shared* page) {
  munmap(page, 4096);
}

Pinned::Pinned(int cpu) {
  static_assert(sizeof old_ == sizeof(cpu_set_t));
  sched_getaffinity(0, sizeof old_, reinterpret_cast<cpu_set_t*>(old_));
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

Pinned::~Pinned() {
  sched_setaffinity(0, sizeof old_, reinterpret_cast<cpu_set_t*>(old_));
}

pid_t child(const std::function<void()>& f) {
  pid_t pid = fork();
  if (pid < 0) die("fork");
  if (pid == 0) {
    f();
    _exit(0);
  }
  return pid;
}

void reap(pid_t pid) {
  int status;
  waitpid(pid, &status, 0);
}

}  // namespace limits
