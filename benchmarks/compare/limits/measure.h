// SPDX-License-Identifier: Apache-2.0
// What the parts of `limits` share: how a figure is sampled and printed, memory, and a second
// process. The program depends on nothing of memspan's: it measures the machine.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace limits {

// Set by main() before anything is measured, and constant from then on.
struct Options {
  int repetitions = 11;
  std::size_t max_bytes = std::size_t{256} << 20;
  bool transparent_huge_pages = false;
  bool hugetlb = false;
};
extern Options options;

double now();
[[noreturn]] void die(const char* what);

// Runs f(n), with n grown until one run takes at least 5 ms, and gives the seconds of one operation
// for each of the repetitions.
std::vector<double> sample(const std::function<void(long)>& f);
std::vector<double> scaled(std::vector<double> seconds, double factor);
std::vector<double> rate(std::vector<double> seconds, double bytes);  // MB/s
void report(const std::string& name, std::size_t size, const char* unit, std::vector<double> v);

char* private_map(std::size_t bytes);
char* shared_map(std::size_t bytes);
void shared_unmap(void* p, std::size_t bytes);

// One page that two processes share; each word is alone in its cache lines.
struct Shared {
  alignas(128) std::atomic<long> ping;
  alignas(128) std::atomic<long> pong;
  alignas(128) std::atomic<long> word;
  alignas(128) std::atomic<int> futex;
  alignas(128) std::atomic<long> go;
  alignas(128) std::atomic<long> stop;
};
Shared* shared_page();
void shared_page_unmap(Shared* page);

// Binds the calling process to a CPU and gives it its old ones back.
class Pinned {
 public:
  explicit Pinned(int cpu);
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  ~Pinned();

 private:
  alignas(8) unsigned char old_[128];  // a cpu_set_t
};

pid_t child(const std::function<void()>& f);
void reap(pid_t pid);

void copy_group();
void fault_group();
void line_group();
void amo_group();
void cma_group();
void yield_group();
void exec_group();
void fork_group();
void sys_group();
void sock_group();

}  // namespace limits
