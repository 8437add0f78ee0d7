// SPDX-License-Identifier: Apache-2.0
// System calls, and two processes that hand a turn over with a futex or an eventfd.
#include <linux/futex.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "measure.h"

namespace limits {
namespace {

template <typename Call>
std::vector<double> nanoseconds_of(Call call) {
  return scaled(sample([&](long n) {
                  for (long i = 0; i < n; i++) call();
                }),
                1e9);
}

long futex(std::atomic<int>* word, int operation, int value) {
  return syscall(SYS_futex, reinterpret_cast<int*>(word), operation, value, nullptr, nullptr, 0);
}

void set_and_wake(std::atomic<int>& word, int value) {
  word.store(value);
  futex(&word, FUTEX_WAKE, 1);
}

// Sleeps until the word is `value` (true) or negative (false).
bool sleep_until(std::atomic<int>& word, int value) {
  for (int x; (x = word.load()) != value; futex(&word, FUTEX_WAIT, x))
    if (x < 0) return false;
  return true;
}

void futex_figure() {
  Shared* page = shared_page();
  pid_t pid = child([&] {
    for (int i = 0; sleep_until(page->futex, 2 * i + 1); i++) set_and_wake(page->futex, 2 * i + 2);
  });
  int i = 0;
  std::vector<double> v = sample([&](long n) {
    for (long k = 0; k < n; k++, i++) {
      set_and_wake(page->futex, 2 * i + 1);
      sleep_until(page->futex, 2 * i + 2);
    }
  });
  set_and_wake(page->futex, -1);
  reap(pid);
  shared_page_unmap(page);
  report("sys_futex_pp", 4, "us", scaled(v, 0.5e6));
}

void eventfd_figure() {
  int a = eventfd(0, 0), b = eventfd(0, 0);
  pid_t pid = child([&] {
    std::uint64_t x;
    while (read(a, &x, 8) == 8 && x == 1)
      if (write(b, &x, 8) != 8) break;
  });
  std::uint64_t one = 1, end = 2, x;
  std::vector<double> v = sample([&](long n) {
    for (long k = 0; k < n; k++)
      if (write(a, &one, 8) != 8 || read(b, &x, 8) != 8) die("eventfd");
  });
  if (write(a, &end, 8) != 8) die("eventfd");
  reap(pid);
  close(a);
  close(b);
  report("sys_eventfd_pp", 8, "us", scaled(v, 0.5e6));
}

}  // namespace

void sys_group() {
  report("sys_clock_gettime", 0, "ns", nanoseconds_of([] { now(); }));
  report("sys_getppid", 0, "ns", nanoseconds_of([] { syscall(SYS_getppid); }));
  report("sys_sched_yield_alone", 0, "ns", nanoseconds_of([] { sched_yield(); }));
  futex_figure();
  eventfd_figure();
}

}  // namespace limits
