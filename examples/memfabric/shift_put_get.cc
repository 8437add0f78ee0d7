// SPDX-License-Identifier: Apache-2.0
// What a space of Share Memory offers beside its memory: a context, gatherings of all and of some,
// numbers that are unique among the ranks. And the memory: every rank puts a row into the part of
// the next and gets the row that the one before it has.
#include "example.h"

using namespace example;

namespace {

constexpr std::size_t kRow = 1024;
constexpr int kWarnings = 2, kFatalOnly = 4;  // levels of the log; the first is the usual one

struct Part {
  std::uint64_t own[kRow];
  std::uint64_t put[kRow];  // by the rank before
};

struct Rank {
  smem_shm_t space;
  Part* parts;
  std::uint32_t ranks, rank;
};

// A gathering of two pieces: each rank gives 8 bytes, twice.
void gather_in_halves(const Rank& self) {
  const std::uint64_t mine[2] = {random_number(self.rank), ~random_number(self.rank)};
  const std::uint32_t bytes = static_cast<std::uint32_t>(sizeof mine[0]) * self.ranks;
  for (int half = 0; half < 2; ++half) {
    std::vector<std::uint64_t> all(self.ranks);
    must("smem_shm_control_allgather",
         smem_shm_control_allgather(self.space, reinterpret_cast<const char*>(&mine[half]),
                                    sizeof mine[half], reinterpret_cast<char*>(all.data()), bytes));
    for (std::uint32_t of = 0; of < self.ranks; ++of)
      expect(all[of] == (half == 0 ? random_number(of) : ~random_number(of)),
             "half " + std::to_string(half) + " of rank " + std::to_string(of));
  }
}

// The even ranks meet, and the odd ones.
void meet_in_groups(const Rank& self) {
  const char* const key = self.rank % 2 == 0 ? "even" : "odd";
  const std::uint32_t size = (self.ranks + 1 - self.rank % 2) / 2, index = self.rank / 2;
  must("smem_shm_subgroup_barrier", smem_shm_subgroup_barrier(self.space, key, size, index));
  std::vector<std::uint32_t> all(size);
  must("smem_shm_subgroup_allgather",
       smem_shm_subgroup_allgather(self.space, key, size, index,
                                   reinterpret_cast<const char*>(&self.rank), sizeof self.rank,
                                   reinterpret_cast<char*>(all.data()),
                                   static_cast<std::uint32_t>(sizeof self.rank) * size));
  for (std::uint32_t i = 0; i < size; ++i)
    expect(all[i] == 2 * i + self.rank % 2, std::string("the group of ") + key + " ranks");
}

// As many numbers as ranks: each has one, and no two the same.
void take_a_number(const Rank& self) {
  std::uint32_t mine = UINT32_MAX;
  must("smem_shm_atomic_alloc_value", smem_shm_atomic_alloc_value(self.space, self.ranks, &mine));
  std::vector<std::uint32_t> all(self.ranks);
  must("smem_shm_control_allgather",
       smem_shm_control_allgather(self.space, reinterpret_cast<const char*>(&mine), sizeof mine,
                                  reinterpret_cast<char*>(all.data()),
                                  static_cast<std::uint32_t>(sizeof mine) * self.ranks));
  std::vector<bool> taken(self.ranks);
  for (const std::uint32_t value : all) {
    expect(value < self.ranks && !taken[value], "number " + std::to_string(value));
    taken[value] = true;
  }
  // Asked for one more, the library would say on stderr why there is none.
  must("smem_set_log_level", smem_set_log_level(kFatalOnly));
  std::uint32_t none = 0;
  expect(smem_shm_atomic_alloc_value(self.space, self.ranks, &none) == SMEM_NO_RESOURCES,
         "one number more than there are");
  must("smem_set_log_level", smem_set_log_level(kWarnings));
  must("smem_shm_control_barrier", smem_shm_control_barrier(self.space));
  must("smem_shm_atomic_release_value",
       smem_shm_atomic_release_value(self.space, static_cast<std::int32_t>(mine)));
}

void shift(const Rank& self) {
  const std::uint32_t next = (self.rank + 1) % self.ranks;
  const std::uint32_t previous = (self.rank + self.ranks - 1) % self.ranks;
  Part& mine = self.parts[self.rank];
  fill(mine.own, sizeof mine.own, self.rank);
  std::memcpy(self.parts[next].put, mine.own, sizeof mine.own);
  must("smem_shm_control_barrier", smem_shm_control_barrier(self.space));
  std::uint64_t got[kRow];
  std::memcpy(got, self.parts[previous].own, sizeof got);
  expect(wrong_bytes(got, sizeof got, previous) == 0, "the row that was got");
  expect(wrong_bytes(mine.put, sizeof mine.put, previous) == 0, "the row that was put");
}

int run_rank(const char* store, std::uint32_t ranks, std::uint32_t rank) {
  smem_shm_config_t config;
  must("smem_shm_config_init", smem_shm_config_init(&config));
  must("smem_shm_init", smem_shm_init(store, ranks, rank, 0, &config));
  void* base = nullptr;
  smem_shm_t const space = must("smem_shm_create", smem_shm_create(0, ranks, rank, sizeof(Part),
                                                                   SMEMS_DATA_OP_MTE, 0, &base));
  const Rank self = {space, static_cast<Part*>(base), ranks, rank};
  expect(smem_shm_get_global_rank(space) == rank && smem_shm_get_global_rank_size(space) == ranks,
         "the rank, or how many there are");
  must("smem_shm_set_extra_context", smem_shm_set_extra_context(space, &self, sizeof self));
  gather_in_halves(self);
  meet_in_groups(self);
  take_a_number(self);
  shift(self);
  must("smem_shm_control_barrier", smem_shm_control_barrier(space));  // all have read
  std::printf("shift_put_get: rank %u of %u, PASS\n", rank, ranks);
  must("smem_shm_destroy", smem_shm_destroy(space, 0));
  smem_shm_uninit(0);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("shift_put_get", argc, argv, 4, run_rank);
}
