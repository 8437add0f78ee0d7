// SPDX-License-Identifier: Apache-2.0
// How long it takes until new members read each other's memory, and what is left of joining and
// leaving ten thousand times.
#include <dirent.h>
#include <sched.h>
#include <smem/host/smem_bm.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <vector>

#include "copies.h"
#include "example.h"
#include "measure.h"

namespace bench {
namespace {

using example::must;

constexpr std::size_t kGiven = 16 << 20;  // by each member of a start
constexpr std::size_t kBlock = 4096;      // of what is sent to and fro
constexpr int kMostMembers = 64;

// What the processes of one measurement share.
struct Shared {
  std::atomic<int> arrived, done;
  double began[kMostMembers], ended[kMostMembers];
  std::atomic<long> joined, answered;
  long wrong[2], resident_kib[2], descriptors[2];
};

Shared* share() {
  void* const memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) example::leave(example::kFailed, "no shared page");
  return new (memory) Shared;
}

template <typename Value>
void wait_for(const std::atomic<Value>& word, Value least) {
  while (word.load(std::memory_order_acquire) < least) sched_yield();
}

smem_bm_t make_pool(const char* store, int members, int rank, std::size_t bytes) {
  smem_set_log_level(4);  // that others are not there yet is no news
  smem_bm_config_t config;
  must("smem_bm_config_init", smem_bm_config_init(&config));
  config.autoRanking = false;
  config.rankId = static_cast<std::uint16_t>(rank);
  must("smem_bm_init", smem_bm_init(store, static_cast<std::uint32_t>(members), 0, &config));
  return must("smem_bm_create", smem_bm_create(0, 0, SMEMB_DATA_OP_SDMA, bytes, 0, 0));
}

char* part_of(smem_bm_t pool, int rank) {
  return static_cast<char*>(
      must("smem_bm_ptr_by_mem_type",
           smem_bm_ptr_by_mem_type(pool, SMEM_MEM_TYPE_HOST, static_cast<std::uint16_t>(rank))));
}

// As soon as both ends' ranks are joined.
void copy(smem_bm_t pool, const void* from, void* to, std::size_t bytes, smem_bm_copy_type type) {
  smem_copy_params params = {from, to, bytes};
  int32_t code = SMEM_OK;
  while ((code = smem_bm_copy(pool, &params, type, 0)) == SMEM_NOT_CONNECTED) sched_yield();
  must("smem_bm_copy", code);
}

// ---- the start --------------------------------------------------------------------------------

char mark_of(int rank) {
  return static_cast<char>('A' + rank % 32);
}

int start_member(Shared& shared, const char* store, int members, int rank) {
  shared.arrived.fetch_add(1);
  wait_for(shared.arrived, members);
  shared.began[rank] = example::seconds_now();
  smem_bm_t const pool = make_pool(store, members, rank, kGiven);
  part_of(pool, rank)[0] = mark_of(rank);
  must("smem_bm_join", smem_bm_join(pool, 0));
  bool is_right = true;
  for (int i = 1; i < members; ++i) {
    const int other = (rank + i) % members;
    char mark = 0;
    copy(pool, part_of(pool, other), &mark, 1, SMEMB_COPY_G2H);
    is_right = is_right && mark == mark_of(other);
  }
  shared.ended[rank] = example::seconds_now();
  shared.done.fetch_add(1);
  wait_for(shared.done, members);  // nobody leaves before all have read
  smem_bm_destroy(pool);
  smem_bm_uninit(0);
  return is_right ? 0 : example::kFailed;
}

// ---- joining and leaving ----------------------------------------------------------------------

long resident_kib() {
  long total = 0, resident = 0;
  if (std::FILE* const file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &total, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * (::sysconf(_SC_PAGESIZE) >> 10);
}

long descriptors() {
  long count = 0;
  if (DIR* const folder = ::opendir("/proc/self/fd")) {
    while (::readdir(folder) != nullptr) ++count;
    ::closedir(folder);
  }
  return count;
}

// Takes the difference between the first tenth and the end.
class Holdings {
 public:
  void look(Shared& shared, int rank, long cycle) {
    if (cycle == options.cycles / 10) {
      resident_ = resident_kib();
      descriptors_ = descriptors();
    }
    if (cycle + 1 != options.cycles) return;
    shared.resident_kib[rank] = resident_kib() - resident_;
    shared.descriptors[rank] = descriptors() - descriptors_;
  }

 private:
  long resident_ = 0, descriptors_ = 0;
};

// Stays, and reads what each newcomer has.
int stay(Shared& shared, const char* store) {
  smem_bm_t const pool = make_pool(store, 2, 0, 1 << 20);
  must("smem_bm_join", smem_bm_join(pool, 0));
  shared.arrived.store(1);
  std::vector<char> block(kBlock);
  Holdings holdings;
  for (long i = 0; i < options.cycles; ++i) {
    wait_for(shared.joined, i + 1);
    copy(pool, part_of(pool, 1), block.data(), kBlock, SMEMB_COPY_G2H);
    shared.wrong[0] += static_cast<long>(
        example::wrong_bytes(block.data(), kBlock, static_cast<unsigned long>(i)));
    holdings.look(shared, 0, i);
    shared.answered.store(i + 1, std::memory_order_release);
  }
  wait_for(shared.done, 1);
  smem_bm_destroy(pool);
  smem_bm_uninit(0);
  return 0;
}

// Joins, writes to the other and reads it back, is read by the other, leaves.
int come_and_go(Shared& shared, const char* store) {
  wait_for(shared.arrived, 1);
  smem_bm_t const pool = make_pool(store, 2, 1, 1 << 20);
  std::vector<char> block(kBlock), back(kBlock);
  Holdings holdings;
  for (long i = 0; i < options.cycles; ++i) {
    const auto seed = static_cast<unsigned long>(i);
    example::fill(part_of(pool, 1), kBlock, seed);
    example::fill(block.data(), kBlock, ~seed);
    must("smem_bm_join", smem_bm_join(pool, 0));
    shared.joined.store(i + 1, std::memory_order_release);
    copy(pool, block.data(), part_of(pool, 0), kBlock, SMEMB_COPY_H2G);
    copy(pool, part_of(pool, 0), back.data(), kBlock, SMEMB_COPY_G2H);
    shared.wrong[1] += static_cast<long>(example::wrong_bytes(back.data(), kBlock, ~seed));
    wait_for(shared.answered, i + 1);
    must("smem_bm_leave", smem_bm_leave(pool, 0));
    holdings.look(shared, 1, i);
  }
  smem_bm_destroy(pool);
  smem_bm_uninit(0);
  shared.done.store(1);
  return 0;
}

}  // namespace

int start_pools() {
  for (const int members : options.members) {
    std::vector<double> milliseconds;
    for (int i = 0; i < options.repetitions; ++i) {
      const example::StoreUrl store("auto");
      Shared* const shared = share();
      const int code = example::run_ranks(0, members, 60, [&](int rank) {
        return start_member(*shared, store.c_str(), members, rank);
      });
      if (code != 0) return code;
      const double began = *std::min_element(shared->began, shared->began + members);
      const double ended = *std::max_element(shared->ended, shared->ended + members);
      milliseconds.push_back((ended - began) * 1e6);
      ::munmap(shared, sizeof *shared);
    }
    report("bm_start", static_cast<std::size_t>(members), "us", milliseconds);
  }
  return 0;
}

int join_and_leave() {
  const example::StoreUrl store("auto");
  Shared* const shared = share();
  const double began = example::seconds_now();
  const int code = example::run_ranks(0, 2, 300, [&](int rank) {
    return rank == 0 ? stay(*shared, store.c_str()) : come_and_go(*shared, store.c_str());
  });
  const double seconds = example::seconds_now() - began;
  const auto cycles = static_cast<std::size_t>(options.cycles);
  if (code == 0) {
    report("churn_cycle", cycles, "us", {seconds * 1e6 / static_cast<double>(cycles)});
    const long wrong = shared->wrong[0] + shared->wrong[1];
    report("churn_wrong_bytes", cycles, "count", {static_cast<double>(wrong)});
    for (const int rank : {0, 1}) {
      const std::string who = rank == 0 ? "_who_stays" : "_who_leaves";
      report("churn_memory" + who, cycles, "KiB",
             {static_cast<double>(shared->resident_kib[rank])});
      report("churn_descriptors" + who, cycles, "count",
             {static_cast<double>(shared->descriptors[rank])});
    }
    if (wrong != 0) return example::kFailed;
  }
  ::munmap(shared, sizeof *shared);
  return code;
}

}  // namespace bench
