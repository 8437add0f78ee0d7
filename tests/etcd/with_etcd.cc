// SPDX-License-Identifier: Apache-2.0
// Runs a program while there are three processes of etcd:
//
//   with_etcd PROGRAM ARGUMENTS...           with MEMSPAN_TEST_ETCD=etcd://...
//   with_etcd --ranks N PROGRAM ARGUMENTS... N times, as the ranks of a job that meets there
//                                            (RANK, WORLD_SIZE, MEMSPAN_STORE)
//   --lose-leader                            kills the leader once all processes are there
//
// Ends as the first of them that fails. Where etcd is not installed it says so and exits with 77.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "support/etcd_cluster.h"

namespace memspan {
namespace {

std::string places(const EtcdCluster& cluster) {
  const std::string all = cluster.address("").to_string();
  return all.substr(0, all.rfind('/'));
}

pid_t start(char** arguments, const std::string& places, int rank, int ranks) {
  const pid_t process = ::fork();
  if (process != 0) return process;
  if (ranks == 0) {
    ::setenv("MEMSPAN_TEST_ETCD", places.c_str(), 1);
  } else {
    ::setenv("RANK", std::to_string(rank).c_str(), 1);
    ::setenv("WORLD_SIZE", std::to_string(ranks).c_str(), 1);
    ::setenv("MEMSPAN_STORE", (places + "/jobs").c_str(), 1);
  }
  ::execv(arguments[0], arguments);
  ::perror(arguments[0]);
  ::_exit(127);
}

int run(char** arguments, int ranks, bool loses_leader) {
  const auto cluster = EtcdCluster::start();
  if (cluster == nullptr) return 1;
  std::vector<pid_t> processes;
  for (int rank = 0; rank == 0 || rank < ranks; ++rank)
    processes.push_back(start(arguments, places(*cluster), rank, ranks));
  if (loses_leader) cluster->kill(cluster->leader());
  int worst = 0;
  for (const pid_t process : processes) {
    int status = 0;
    ::waitpid(process, &status, 0);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (worst == 0) worst = code;
  }
  return worst;
}

}  // namespace
}  // namespace memspan

int main(int argc, char** argv) {
  int ranks = 0;
  bool loses_leader = false;
  int at = 1;
  for (; at < argc && std::string_view(argv[at]).starts_with("--"); ++at) {
    if (std::string_view(argv[at]) == "--lose-leader") loses_leader = true;
    if (std::string_view(argv[at]) == "--ranks" && at + 1 < argc) ranks = std::atoi(argv[++at]);
  }
  if (at >= argc) return 2;
  if (const std::string why = memspan::why_no_etcd(); !why.empty()) {
    std::printf("needs=etcd: %s\n", why.c_str());
    return 77;
  }
  return memspan::run(argv + at, ranks, loses_leader);
}
