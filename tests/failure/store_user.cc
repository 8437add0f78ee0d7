// SPDX-License-Identifier: Apache-2.0
// A member of a job that also uses a store of its own accord:
//
//   failure_store_user calls URL    shmem data traffic on all ranks, and on each a thread for every
//                                   kind of blocking store call; each kind says when the store was
//                                   lost: "lost RANK CALL MICROSECONDS CODE" (of CLOCK_MONOTONIC)
//   failure_store_user wait URL MS  one wait for a key that does not come: "waited MS CODE"
//
// `calls` says "ready RANK PID" when all threads have called, then, after the loss, does as many
// rounds of put, get and barrier as before, checks them and says "fine RANK ROUNDS".
#include <fmt/format.h>
#include <shmem.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "store/client.h"
#include "store/recipes/store_group.h"

namespace memspan {
namespace {

constexpr auto kLimit = std::chrono::seconds(60);

struct Call {
  const char* name;
  bool is_repeated;  // returns at once while the store lives
  std::function<Status(StoreClient&)> make;
};

std::vector<Call> calls(int rank) {
  const std::string mine = fmt::format("key-{}", rank);
  auto later = [] { return Deadline::after(kLimit); };
  return {
      {"set", true, [=](StoreClient& s) { return s.set(mine, "x", later()); }},
      {"get_now", true, [=](StoreClient& s) { return s.get_now("always", later()).status(); }},
      {"list", true, [=](StoreClient& s) { return s.list("key-", later()).status(); }},
      {"compare_and_swap", true,
       [=](StoreClient& s) { return s.compare_and_swap("a", "", "", later()).status(); }},
      {"get", false, [=](StoreClient& s) { return s.get("never", later()).status(); }},
      {"meet", false,
       [=](StoreClient& s) {
         return StoreGroup(s, fmt::format("lonely-{}", rank), 0, 2).barrier(later());
       }},
  };
}

long microseconds() {
  return static_cast<long>(std::chrono::duration_cast<std::chrono::microseconds>(
                               std::chrono::steady_clock::now().time_since_epoch())
                               .count());
}

void report_loss(int rank, const Call& call, const Status& status) {
  std::string line =
      fmt::format("lost {} {} {} {}\n", rank, call.name, microseconds(), code_name(status.code()));
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
}

// Puts to the next, gets from the one before, meets. Aborts on a wrong byte.
void traffic(std::uint64_t* words, long round, int me, int pes) {
  constexpr int kWords = 512;
  const int next = (me + 1) % pes;
  const int before = (me + pes - 1) % pes;
  std::uint64_t sent[kWords];
  for (int i = 0; i < kWords; ++i)
    sent[i] = static_cast<std::uint64_t>(me * 1'000'003 + round * kWords + i);
  shmem_uint64_put(words, sent, kWords, next);
  shmem_barrier_all();
  std::uint64_t got[kWords];
  shmem_uint64_get(got, words, kWords, next);
  for (int i = 0; i < kWords; ++i) {
    if (got[i] != sent[i]) std::abort();
    if (words[i] != static_cast<std::uint64_t>(before * 1'000'003 + round * kWords + i))
      std::abort();
  }
  shmem_barrier_all();
}

int run_calls(const Endpoint& where) {
  shmem_init();
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  auto* words = static_cast<std::uint64_t*>(shmem_calloc(512, sizeof(std::uint64_t)));
  auto* lost = static_cast<long*>(shmem_calloc(2, sizeof(long)));
  std::vector<std::unique_ptr<StoreClient>> clients;
  std::vector<std::thread> threads;
  std::atomic<int> called{0};
  std::atomic<int> ended{0};
  const std::vector<Call> all = calls(me);
  for (const Call& call : all) {
    auto client = StoreClient::connect({.endpoint = where}, Deadline::after(kLimit));
    if (!client.is_ok()) {
      std::fprintf(stderr, "%s\n", client.status().to_string().c_str());
      return 1;
    }
    if (!(*client)->set("always", "x", Deadline::after(kLimit)).is_ok()) return 1;
    clients.push_back(std::move(*client));
    threads.emplace_back([&, client = clients.back().get(), &call = call] {
      ++called;
      Status status = call.make(*client);
      while (call.is_repeated && status.is_ok()) {
        std::this_thread::yield();
        status = call.make(*client);
      }
      report_loss(me, call, status);
      ++ended;
    });
  }
  const int count = static_cast<int>(all.size());
  while (called < count) std::this_thread::yield();
  std::printf("ready %d %d\n", me, static_cast<int>(getpid()));
  std::fflush(stdout);
  long round = 0;
  long before = 0;
  // The job ends together: when everybody's calls have, and as many rounds after as before.
  for (bool is_over = false; !is_over; ++round) {
    traffic(words, round, me, pes);
    lost[0] = ended == count ? 1 : 0;
    shmem_long_min_reduce(SHMEM_TEAM_WORLD, lost + 1, lost, 1);
    if (lost[1] == 0) before = round;
    is_over = lost[1] == 1 && round >= 2 * before && round >= before + 100;
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("fine %d %ld\n", me, round - before);
  std::fflush(stdout);
  shmem_finalize();
  return 0;
}

int run_wait(const Endpoint& where, int limit_ms) {
  auto client = StoreClient::connect({.endpoint = where}, Deadline::after(kLimit));
  if (!client.is_ok()) return 1;
  std::printf("ready 0 %d\n", static_cast<int>(getpid()));
  std::fflush(stdout);
  const long since = microseconds();
  const Status status =
      (*client)->get("never", Deadline::after(std::chrono::milliseconds(limit_ms))).status();
  std::printf("waited %.3f %s\n", 1e-3 * static_cast<double>(microseconds() - since),
              std::string(code_name(status.code())).c_str());
  return 0;
}

}  // namespace
}  // namespace memspan

int main(int count, char** arguments) {
  if (count < 3) return 2;
  auto where = memspan::Endpoint::parse(arguments[2]);
  if (!where.is_ok()) return 2;
  const std::string what = arguments[1];
  if (what == "calls") return memspan::run_calls(*where);
  if (what == "wait" && count > 3) return memspan::run_wait(*where, std::atoi(arguments[3]));
  return 2;
}
