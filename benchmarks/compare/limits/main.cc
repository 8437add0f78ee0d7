// SPDX-License-Identifier: Apache-2.0
// limits: what this machine allows any transport on one node or over loopback to reach.
//
//   build   g++ -std=c++20 -O2 -pthread -o limits *.cc
//   run     ./limits [-r reps] [-m maxbytes] [-H] [-T] [group ...]
//
//   groups  copy fault line amo cma yield exec fork sys sock   (all by default)
//   -r N    repetitions of each figure                         (default 11)
//   -m N    largest copy, bytes                                (default 256 MiB)
//   -H      ask for huge pages (madvise) on every mapping of the copy and fault groups; they are
//           given only as /sys/kernel/mm/transparent_hugepage/{enabled,shmem_enabled} allow
//   -T      back the shared mappings with hugetlbfs pages (memfd MFD_HUGETLB); vm.nr_hugepages
//           must be large enough
//
// Output: '#' lines are remarks, every other line is one figure,
//     name size value unit min max repetitions
// where value is the median over the repetitions. MB/s = 10^6 bytes per second.
//
//   copy_{put,get}_METHOD   one thread, private -> shared memfd mapping (put) or back (get), the
//                           same buffers again and again
//   copy2_put_METHOD        two threads, each with buffers of its own; the sum
//     METHOD: libc = memcpy, movsb = rep movsb, avx = 64-byte ordinary AVX2 stores,
//     nt = 64-byte non-temporal AVX2 stores
//   fault_*                 the first write to each page of a fresh mapping
//   line_*                  one way (half a round trip) of a cache line between two processes that
//                           share a mapping; _pinned: the two are bound to the first and last CPU
//   amo_*                   lock xadd on shared memory: alone, and two processes on one word (time
//                           per operation of each)
//   cma_{read,write}        process_vm_readv/writev to another process
//   yield_pp_same_cpu       two processes on one CPU hand the turn over with sched_yield; one way
//   exec_*, fork_*          process creation and end
//   sys_*                   system calls; *_pp are one way between two processes
//   tcp_*, unix_*           sockets (TCP over 127.0.0.1, TCP_NODELAY); _spin polls with
//                           MSG_DONTWAIT, _block sleeps in recv
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "measure.h"

namespace {

struct Group {
  std::string_view name;
  void (*run)();
};

constexpr Group kGroups[] = {
    {"line", limits::line_group}, {"amo", limits::amo_group},   {"yield", limits::yield_group},
    {"exec", limits::exec_group}, {"fork", limits::fork_group}, {"sys", limits::sys_group},
    {"cma", limits::cma_group},   {"sock", limits::sock_group}, {"fault", limits::fault_group},
    {"copy", limits::copy_group},
};

bool parse(int argc, char** argv) {
  for (int option; (option = getopt(argc, argv, "r:m:HT")) != -1;) {
    switch (option) {
      case 'r':
        limits::options.repetitions = std::max(1, std::atoi(optarg));
        break;
      case 'm':
        limits::options.max_bytes = std::strtoull(optarg, nullptr, 0);
        break;
      case 'H':
        limits::options.transparent_huge_pages = true;
        break;
      case 'T':
        limits::options.hugetlb = true;
        break;
      default:
        return false;
    }
  }
  return std::all_of(argv + optind, argv + argc, [](std::string_view word) {
    return std::any_of(std::begin(kGroups), std::end(kGroups),
                       [&](const Group& group) { return group.name == word; });
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (!parse(argc, argv)) {
    std::fprintf(stderr, "usage: %s [-r reps] [-m maxbytes] [-H] [-T] [group ...]\n", argv[0]);
    return 2;
  }
  std::printf(
      "# limits: %ld CPUs, %d repetitions%s%s\n# name size median unit min max repetitions\n",
      sysconf(_SC_NPROCESSORS_ONLN), limits::options.repetitions,
      limits::options.transparent_huge_pages ? ", MADV_HUGEPAGE" : "",
      limits::options.hugetlb ? ", MFD_HUGETLB" : "");
  std::fflush(stdout);  // before any fork
  for (const Group& group : kGroups)
    if (optind == argc || std::find(argv + optind, argv + argc, group.name) != argv + argc)
      group.run();
  return 0;
}
