// SPDX-License-Identifier: Apache-2.0
// Faults of the original CANN SHMEM that its users know, each as the shortest program that shows
// it there: heap and teams. (That one instance spoils another's teams: instances_test.cc.)
#include <aclshmem.h>
#include <memspan/memspan.h>
#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr int kPes = 8;
constexpr std::uint64_t kHeap = 4 << 20;
int me = -1;

#define CHECK(condition)                                                          \
  do {                                                                            \
    if (!(condition)) {                                                           \
      std::fprintf(stderr, "PE %d, line %d: %s (%s)\n", me, __LINE__, #condition, \
                   memspan_last_error());                                         \
      std::_Exit(1);                                                              \
    }                                                                             \
  } while (false)

bool overlap(const void* a, std::uintptr_t a_bytes, const void* b, std::uintptr_t b_bytes) {
  const auto x = reinterpret_cast<std::uintptr_t>(a);
  const auto y = reinterpret_cast<std::uintptr_t>(b);
  return x < y + b_bytes && y < x + a_bytes;
}

// An aligned block out of a hole: what was the hole is given out twice there.
void memory_in_use_is_not_given_out() {
  void* const first = aclshmem_malloc(2048);
  void* const second = aclshmem_malloc(1024);
  void* const third = aclshmem_malloc(1024);
  aclshmem_free(first);
  void* const aligned = aclshmem_align(64, 1024);
  void* const after = aclshmem_malloc(1024);
  aclshmem_free(second);
  void* const last = aclshmem_malloc(2048);
  CHECK(aligned != nullptr && after != nullptr && last != nullptr);
  CHECK(!overlap(last, 2048, aligned, 1024) && !overlap(last, 2048, after, 1024));
  CHECK(!overlap(last, 2048, third, 1024) && !overlap(aligned, 1024, after, 1024));
  for (void* block : {aligned, after, third, last}) aclshmem_free(block);
}

// All is free again, but the heap stays in pieces there.
void a_freed_heap_is_whole() {
  void* const blocks[] = {aclshmem_align(1024, 5000), aclshmem_malloc(3000), aclshmem_malloc(100)};
  for (void* block : blocks) aclshmem_free(block);
  void* const whole = aclshmem_malloc(kHeap - 64 * 1024);
  CHECK(whole != nullptr);
  aclshmem_free(whole);
  CHECK(aclshmem_align(std::size_t{1} << 40, 8) == nullptr);
  CHECK(std::strstr(memspan_last_error(), "8 bytes at a multiple of 1099511627776 do not fit"));
}

aclshmem_team_t split(aclshmem_team_t parent, int start, int stride, int size) {
  aclshmem_team_t team = ACLSHMEM_TEAM_INVALID;
  CHECK(aclshmem_team_split_strided(parent, start, stride, size, &team) == ACLSHMEM_SUCCESS);
  return team;
}

// PE 1 has made one team more than PEs 2 and 3 have: its barrier is another one's there.
void members_that_made_other_teams_meet() {
  const aclshmem_team_t pair = me < 2 ? split(ACLSHMEM_TEAM_WORLD, 0, 1, 2) : ACLSHMEM_TEAM_INVALID;
  if (me >= 1 && me < 4) {
    const aclshmem_team_t three = split(ACLSHMEM_TEAM_WORLD, 1, 1, 3);
    for (int i = 0; i < 10; ++i) aclshmem_barrier(three);
    CHECK(aclshmem_team_my_pe(three) == me - 1);
    aclshmem_team_destroy(three);
  }
  if (pair != ACLSHMEM_TEAM_INVALID) {
    aclshmem_barrier(pair);
    aclshmem_team_destroy(pair);
  }
  aclshmem_barrier_all();
}

// A part of {1, 3, 5, 7} counts that team's PEs.
void a_part_of_a_team_counts_its_pes() {
  if (me % 2 == 1) {
    const aclshmem_team_t odd = split(ACLSHMEM_TEAM_WORLD, 1, 2, 4);
    const aclshmem_team_t middle = split(odd, 1, 1, 2);
    CHECK((middle != ACLSHMEM_TEAM_INVALID) == (me == 3 || me == 5));
    if (me == 3 || me == 5) {
      CHECK(aclshmem_team_n_pes(middle) == 2 && aclshmem_team_my_pe(middle) == (me - 3) / 2);
      aclshmem_barrier(middle);
      aclshmem_team_destroy(middle);
    }
    aclshmem_team_destroy(odd);
  }
  aclshmem_barrier_all();
}

// There it ends at 64.
void there_is_room_for_2048_teams() {
  std::vector<aclshmem_team_t> teams;
  for (int i = 0; i < 2048; ++i) teams.push_back(split(ACLSHMEM_TEAM_WORLD, me / 2 * 2, 1, 2));
  for (const aclshmem_team_t team : teams) CHECK(aclshmem_team_my_pe(team) == me % 2);
  aclshmem_barrier(teams.back());
  for (const aclshmem_team_t team : teams) aclshmem_team_destroy(team);
  aclshmem_barrier_all();
}

void who_is_not_in_a_team_has_no_number_in_it() {
  aclshmem_team_t even = ACLSHMEM_TEAM_INVALID;
  if (me % 2 == 0) even = split(ACLSHMEM_TEAM_WORLD, 0, 2, kPes / 2);
  if (me % 2 == 0) {
    for (int pe = 0; pe < kPes; ++pe)
      CHECK(aclshmem_team_translate_pe(ACLSHMEM_TEAM_WORLD, pe, even) ==
            (pe % 2 == 0 ? pe / 2 : -1));
    aclshmem_team_destroy(even);
  }
  aclshmem_barrier_all();
}

void the_team_of_all_stays() {
  aclshmem_team_destroy(ACLSHMEM_TEAM_WORLD);
  CHECK(aclshmem_team_my_pe(ACLSHMEM_TEAM_WORLD) == me);
  aclshmem_barrier(ACLSHMEM_TEAM_WORLD);
}

// 262 MiB of a table of teams there, before the first of them.
void starting_takes_little_memory(long kilobytes_before) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  CHECK(usage.ru_maxrss - kilobytes_before < 32 * 1024);
}

}  // namespace

int main() {
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  aclshmemx_init_attr_t attributes{};
  attributes.my_pe = me = std::atoi(std::getenv("RANK"));
  attributes.n_pes = std::atoi(std::getenv("WORLD_SIZE"));
  attributes.local_mem_size = kHeap;
  CHECK(attributes.n_pes == kPes);
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_DEFAULT, &attributes) == ACLSHMEM_SUCCESS);
  starting_takes_little_memory(before.ru_maxrss);
  memory_in_use_is_not_given_out();
  a_freed_heap_is_whole();
  members_that_made_other_teams_meet();
  a_part_of_a_team_counts_its_pes();
  there_is_room_for_2048_teams();
  who_is_not_in_a_team_has_no_number_in_it();
  the_team_of_all_stays();
  return aclshmem_finalize() == ACLSHMEM_SUCCESS ? 0 : 1;
}
