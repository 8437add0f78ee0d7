// SPDX-License-Identifier: Apache-2.0
// memfabric_bench: times of MemFabric's calls between two processes of this host, each next to the
// bare way of doing the same, in turn. memfabric.py runs it and makes the table.
//
//   <prefix>_<write|read>_<workload>  us of one call; bare_...: of the bare way
//     prefix    bm: a pool; trans: memory of a program; mapped: memory of smem_trans_malloc;
//               adopted: memory of a program with adopted pages
//     workload  block: 61 x 128 KiB + 61 x 16 KiB; single; batch and scattered: 32 pieces; many:
//               100,000 pieces
//   trans_register    1 GiB that was never touched; trans_adopt 256 MiB that was
//   bm_start          from smem_bm_init to a byte of every other member, of that many
//   churn_...         of joining and leaving
//
// The exit code is 1 when a byte was wrong or a process failed, 2 for a wrong command line.
#include <cstring>

#include "copies.h"
#include "example.h"
#include "measure.h"

using namespace bench;

namespace {

constexpr const char* kUsage =
    "usage: memfabric_bench [option value]... [group]...\n"
    "  -r N  repetitions (9)\n"
    "  -t N  least milliseconds of a repetition (2)\n"
    "  -m N  MiB of each process that are copied; what is larger is left out (576)\n"
    "  -c N  how often a member joins and leaves (10000)\n"
    "  -n N  members of the start that is timed (2 and 8)\n"
    "groups: bm, trans, mapped, adopted, register, start, churn (all)\n";

struct Group {
  const char* name;
  int (*run)();
};

constexpr Group kGroups[] = {{"bm", copy_big_memory},       {"trans", copy_ordinary},
                             {"mapped", copy_mapped},       {"adopted", copy_adopted},
                             {"register", register_memory}, {"start", start_pools},
                             {"churn", join_and_leave}};

void read_option(const std::string& name, const char* text) {
  if (name == "-r")
    options.repetitions = static_cast<int>(example::number(name, text, 1, 1000));
  else if (name == "-t")
    options.least_seconds = static_cast<double>(example::number(name, text, 0, 1000)) * 1e-3;
  else if (name == "-m")
    options.memory = example::number(name, text, 1, 1 << 20) << 20;
  else if (name == "-c")
    options.cycles = static_cast<long>(example::number(name, text, 10, 1'000'000'000));
  else if (name == "-n")
    options.members = {static_cast<int>(example::number(name, text, 2, 64))};
  else
    example::leave(example::kWrongUse, "unknown option " + name + "\n" + kUsage);
}

const Group& find_group(const std::string& name) {
  for (const Group& group : kGroups)
    if (name == group.name) return group;
  example::leave(example::kWrongUse, "unknown group " + name + "\n" + kUsage);
}

}  // namespace

int main(int argc, char** argv) {
  example::program = "memfabric_bench";
  std::vector<Group> chosen;
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] != '-') {
      chosen.push_back(find_group(argv[i]));
      continue;
    }
    if (i + 1 == argc)
      example::leave(example::kWrongUse, std::string(argv[i]) + " needs a value\n" + kUsage);
    read_option(argv[i], argv[i + 1]);
    ++i;
  }
  if (chosen.empty()) chosen.assign(std::begin(kGroups), std::end(kGroups));
  int code = 0;
  for (const Group& group : chosen) {
    const int one = group.run();
    if (one != 0) std::printf("# ERROR group %s: exit code %d\n", group.name, one);
    if (code == 0) code = one;
  }
  return code;
}
