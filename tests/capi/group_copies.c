/* SPDX-License-Identifier: Apache-2.0
 * The results of a group whose members copy in different ways. */
#define _GNU_SOURCE
#include "capi/group_job.h"

enum { kMembers = 3, kCalls = 60 };

/* Each has its bytes as another pattern in each call. */
static unsigned char byte_of(int member, int call, size_t at) {
  return (unsigned char)(at * 7 + at / 251 + 31 * (size_t)member + 3 * (size_t)call);
}

static void gather(memspan_group_t group, int rank, size_t bytes) {
  unsigned char* mine = malloc(bytes);
  unsigned char* all = malloc(kMembers * bytes);
  void* results[kMembers];
  for (int member = 0; member < kMembers; ++member) results[member] = all + (size_t)member * bytes;
  for (int call = 0; call < kCalls; ++call) {
    for (size_t i = 0; i < bytes; ++i) mine[i] = byte_of(rank, call, i);
    memset(all, 0, kMembers * bytes);
    CHECK(memspan_group_all_gather(group, results, mine, bytes) == SMEM_OK);
    size_t wrong = 0;
    for (int member = 0; member < kMembers; ++member)
      for (size_t i = 0; i < bytes; ++i)
        wrong += all[(size_t)member * bytes + i] != byte_of(member, call, i);
    CHECK(wrong == 0);
  }
  free(all);
  free(mine);
}

static void reduce(memspan_group_t group, int rank, size_t count) {
  int32_t* values = malloc(count * sizeof *values);
  for (int call = 0; call < kCalls; ++call) {
    for (size_t i = 0; i < count; ++i) values[i] = (rank + 1) * ((int32_t)i + call);
    CHECK(memspan_group_all_reduce(group, values, values, count, MEMSPAN_TYPE_INT32,
                                   MEMSPAN_OP_SUM) == SMEM_OK);
    size_t wrong = 0;
    for (size_t i = 0; i < count; ++i) wrong += values[i] != 6 * ((int32_t)i + call);
    CHECK(wrong == 0);
  }
  free(values);
}

static void run(int rank) {
  /* The ways that every processor of the kind has. */
#ifdef __x86_64__
  const char* const ways[kMembers] = {"library", "string", "measured"};
#else
  const char* const ways[kMembers] = {"library", "measured", "measured"};
#endif
  CHECK(setenv("MEMSPAN_COPY", ways[rank], 1) == 0);
  struct talk talk = {kMembers, rank, 0};
  memspan_group_t group = join(&talk);
  const size_t sizes[] = {5000, 70001, 600000};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    gather(group, rank, sizes[i]);
    reduce(group, rank, sizes[i] / sizeof(int32_t));
  }
  CHECK(memspan_group_destroy(group) == SMEM_OK);
}

int main(void) {
  return run_members(kMembers, run, NULL);
}
