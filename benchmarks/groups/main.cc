// SPDX-License-Identifier: Apache-2.0
// groups_bench: memspan next to an MPI in the same processes, which that MPI's mpiexec has started.
// groups.py compiles and runs it, and makes the table.
//
//   --only A,B      these operations (all): barrier, allreduce, broadcast, alltoall, allgather,
//                   reduce_scatter; shmem_barrier, shmem_broadcast, shmem_alltoall, put, get
//   --sizes N,M     bytes (8, 1 KiB, 16 KiB, 256 KiB, 1 MiB, 4 MiB, 64 MiB)
//   --rounds N      9
//   --least MS      of a batch of calls, milliseconds (3)
//   --budget S      of an operation and size, seconds (10): fewer rounds, 3 at least, where they
//   take longer
//   --side NAME     times memspan or mpi alone, for a profiler
//   --after N/M     only what comes after operation N of size M
//   --bind          process i runs on core i
//
// Rank 0 prints lines "NAME SIZE SIDE us VALUE...", the time of a call in each round; the sides are
// memspan, mpi and bare. Before each operation and size stands "begin NAME SIZE", at the end "end".
// The exit code is 1 when results differed, 2 for a wrong command line.
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "cell.h"
#include "operations.h"

using namespace bench;

namespace {

[[noreturn]] void refuse(const std::string& why) {
  std::fprintf(stderr, "groups_bench: %s\n", why.c_str());
  std::exit(2);
}

std::vector<std::string> split(const char* list) {
  std::vector<std::string> words;
  std::stringstream text(list);
  for (std::string word; std::getline(text, word, ',');) words.push_back(word);
  return words;
}

double number(const std::string& name, const std::string& text, double least, double most) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || value < least || value > most) {
    std::stringstream why;
    why << name << " is \"" << text << "\", allowed are " << least << " to " << most;
    refuse(why.str());
  }
  return value;
}

void read_option(Options& options, const std::string& name, const char* value) {
  if (name == "--only") {
    options.only = split(value);
  } else if (name == "--sizes") {
    options.sizes.clear();
    for (const std::string& size : split(value))
      options.sizes.push_back(static_cast<std::size_t>(number(name, size, 8, 1 << 30)));
  } else if (name == "--rounds") {
    options.rounds = static_cast<int>(number(name, value, 1, 10'000));
  } else if (name == "--least") {
    options.least_seconds = number(name, value, 0, 10'000) * 1e-3;
  } else if (name == "--budget") {
    options.budget_seconds = number(name, value, 0, 10'000);
  } else if (name == "--side") {
    options.side = value;
    if (options.side != "memspan" && options.side != "mpi")
      refuse("--side is \"" + options.side + "\", allowed are memspan and mpi");
  } else if (name == "--after") {
    options.after = value;
  } else {
    refuse("unknown option " + name);
  }
}

Options read_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--bind") == 0) {
      options.binds = true;
      continue;
    }
    if (i + 1 == argc) refuse(std::string(argv[i]) + " needs a value");
    read_option(options, argv[i], argv[i + 1]);
    ++i;
  }
  return options;
}

// While it lives the process runs on one core, unless `core` is kAnyCore. Not before the libraries
// have started: they take the cores that they may use for all there are.
constexpr int kAnyCore = -1;
class Binding {
 public:
  explicit Binding(int core) {
    sched_getaffinity(0, sizeof before_, &before_);
    if (core == kAnyCore) return;
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    if (sched_setaffinity(0, sizeof cores, &cores) != 0) refuse("cannot be bound to its core");
  }
  ~Binding() { sched_setaffinity(0, sizeof before_, &before_); }
  Binding(const Binding&) = delete;
  Binding& operator=(const Binding&) = delete;

 private:
  cpu_set_t before_{};
};

// Those of the family that were asked for.
std::vector<std::string> wanted(const Options& options, const Family& family) {
  if (options.only.empty()) return family.names;
  std::vector<std::string> names;
  for (const std::string& name : options.only)
    if (std::find(family.names.begin(), family.names.end(), name) != family.names.end())
      names.push_back(name);
  return names;
}

bool measure_all(const Options& options, const Processes& processes) {
  const std::size_t largest = *std::max_element(options.sizes.begin(), options.sizes.end());
  bool is_right = true, has_begun = options.after.empty();
  for (const Family& family : {group_operations(), openshmem_operations()}) {
    const std::vector<std::string> names = wanted(options, family);
    if (names.empty()) continue;
    const auto operations = family.make(processes, largest);
    const Binding binding(options.binds ? processes.rank : kAnyCore);
    for (const std::string& name : names) {
      const bool has_sizes = name.find("barrier") == std::string::npos;
      for (std::size_t i = 0; i < (has_sizes ? options.sizes.size() : 1); ++i) {
        const Cell cell = operations->cell(name, options.sizes[i]);
        if (has_begun) is_right = measure(cell, options, processes) && is_right;
        has_begun = has_begun || cell.name + "/" + std::to_string(cell.size) == options.after;
      }
    }
  }
  if (processes.rank == 0) {
    std::printf("end\n");
    std::fflush(stdout);
  }
  return is_right;
}

// All that --only names are there.
void check_names(const Options& options) {
  for (const std::string& name : options.only) {
    Options one;
    one.only = {name};
    if (wanted(one, group_operations()).empty() && wanted(one, openshmem_operations()).empty())
      refuse("unknown operation " + name);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = read_options(argc, argv);
  check_names(options);
  MPI_Init(&argc, &argv);
  Processes processes{};
  MPI_Comm_rank(MPI_COMM_WORLD, &processes.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &processes.count);
  if (processes.count < 2) refuse("needs two processes at least");
  const bool is_right = measure_all(options, processes);
  MPI_Finalize();
  return is_right ? 0 : 1;
}
