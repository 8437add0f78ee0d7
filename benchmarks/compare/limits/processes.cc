// SPDX-License-Identifier: Apache-2.0
// Two processes on one cache line, on one word and on one CPU; one that reads and writes another's
// memory; and what it costs to make and end one.
#include <immintrin.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

#include "measure.h"

extern char** environ;

namespace limits {
namespace {

struct Line {
  const char* name;
  bool pinned;
  bool one_line;  // the answer comes in the line of the question
};

// The child's side: 2i+1 is a question, 2i+2 its answer, -1 the end.
template <typename Relax>
void answer(Shared* page, std::atomic<long>& back, Relax relax) {
  for (long i = 0;; i++) {
    for (long x; (x = page->ping.load(std::memory_order_acquire)) != 2 * i + 1; relax())
      if (x < 0) return;
    back.store(2 * i + 2, std::memory_order_release);
  }
}

template <typename Relax>
std::vector<double> ask(Shared* page, std::atomic<long>& back, Relax relax) {
  long i = 0;
  std::vector<double> v = sample([&](long n) {
    for (long k = 0; k < n; k++, i++) {
      page->ping.store(2 * i + 1, std::memory_order_release);
      while (back.load(std::memory_order_acquire) != 2 * i + 2) relax();
    }
  });
  page->ping.store(-1);
  return v;
}

template <typename Relax>
void line_figure(const Line& line, Relax relax) {
  Shared* page = shared_page();
  std::atomic<long>& back = line.one_line ? page->ping : page->pong;
  int last = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)) - 1;
  pid_t pid = child([&] {
    std::optional<Pinned> pin;
    if (line.pinned) pin.emplace(last);
    answer(page, back, relax);
  });
  std::optional<Pinned> pin;
  if (line.pinned) pin.emplace(0);
  std::vector<double> v = ask(page, back, relax);
  reap(pid);
  report(line.name, 8, "ns", scaled(v, 0.5e9));
  shared_page_unmap(page);
}

// Whether the copies worked; the figures of one direction and size.
bool cma_figures(pid_t pid, bool write, iovec mine, iovec theirs) {
  bool works = true;
  auto copy = write ? process_vm_writev : process_vm_readv;
  std::vector<double> v = sample([&](long n) {
    for (long i = 0; i < n && works; i++)
      works = copy(pid, &mine, 1, &theirs, 1, 0) == static_cast<ssize_t>(mine.iov_len);
  });
  std::string name = write ? "cma_write" : "cma_read";
  if (!works) {
    std::printf("# %s: %s\n", name.c_str(), std::strerror(errno));
    return false;
  }
  report(name + "_lat", mine.iov_len, "us", scaled(v, 1e6));
  report(name, mine.iov_len, "MB/s", rate(v, static_cast<double>(mine.iov_len)));
  return true;
}

enum class Start { kFork, kSpawn };

std::vector<double> exec_true(Start how) {
  return sample([how](long n) {
    char path[] = "/bin/true";
    char* argv[] = {path, nullptr};
    for (long i = 0; i < n; i++) {
      pid_t pid = 0;
      if (how == Start::kFork)
        pid = child([&] { execve(path, argv, environ); });
      else if (posix_spawn(&pid, path, nullptr, nullptr, argv, environ))
        die("posix_spawn");
      reap(pid);
    }
  });
}

std::vector<double> fork_and_end() {
  return sample([](long n) {
    for (long i = 0; i < n; i++) reap(child([] {}));
  });
}

}  // namespace

void line_group() {
  auto spin = [] {};
  auto pause = [] { _mm_pause(); };
  line_figure({"line_two", false, false}, spin);
  line_figure({"line_one", false, true}, spin);
  line_figure({"line_two_pause", false, false}, pause);
  line_figure({"line_two_pinned", true, false}, spin);
  line_figure({"line_one_pinned", true, true}, spin);
  line_figure({"line_two_pause_pinned", true, false}, pause);
}

void amo_group() {
  Shared* page = shared_page();
  auto add = [&](long n) {
    for (long i = 0; i < n; i++) page->word.fetch_add(1, std::memory_order_seq_cst);
  };
  report("amo_alone", 8, "ns", scaled(sample(add), 1e9));
  pid_t pid = child([&] {
    page->go.store(1);
    while (!page->stop.load(std::memory_order_relaxed))
      page->word.fetch_add(1, std::memory_order_seq_cst);
  });
  while (!page->go.load()) {
  }
  report("amo_contended_2", 8, "ns", scaled(sample(add), 1e9));
  page->stop.store(1);
  reap(pid);
  shared_page_unmap(page);
}

void cma_group() {
  const std::size_t top = std::min(options.max_bytes, std::size_t{64} << 20);
  char *mine = private_map(top), *theirs = private_map(top);
  std::memset(mine, 1, top);
  std::memset(theirs, 2, top);
  int ready[2], gate[2];
  if (pipe(ready) || pipe(gate)) die("pipe");
  pid_t pid = child([&] {
    std::memset(theirs, 3, top);  // break the copy-on-write
    char c = 1;
    close(gate[1]);
    if (write(ready[1], &c, 1) != 1 || read(gate[0], &c, 1) < 0) _exit(1);
  });
  close(gate[0]);
  char c;
  if (read(ready[0], &c, 1) != 1) die("the second process");
  bool works = true;
  for (std::size_t size = 8; works && size <= top; size *= 8)
    for (bool write : {false, true})
      works = works && cma_figures(pid, write, {mine, size}, {theirs, size});
  close(gate[1]);
  close(ready[0]);
  close(ready[1]);
  reap(pid);
  munmap(mine, top);
  munmap(theirs, top);
}

void yield_group() {
  Pinned pin(0);  // the child inherits it
  Shared* page = shared_page();
  auto yield = [] { sched_yield(); };
  pid_t pid = child([&] { answer(page, page->ping, yield); });
  std::vector<double> v = ask(page, page->ping, yield);
  reap(pid);
  shared_page_unmap(page);
  report("yield_pp_same_cpu", 8, "us", scaled(v, 0.5e6));
}

void exec_group() {
  report("exec_fork_wait", 0, "us", scaled(exec_true(Start::kFork), 1e6));
  report("exec_spawn_wait", 0, "us", scaled(exec_true(Start::kSpawn), 1e6));
}

void fork_group() {
  report("fork_exit_wait", 0, "us", scaled(fork_and_end(), 1e6));
  const std::size_t big = std::size_t{256} << 20;
  char *heap = shared_map(big), *mine = private_map(big);
  std::memset(heap, 1, big);
  std::memset(mine, 1, big);
  report("fork_256M_shared_private", big, "us", scaled(fork_and_end(), 1e6));
  shared_unmap(heap, big);
  munmap(mine, big);
}

}  // namespace limits
