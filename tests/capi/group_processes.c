/* SPDX-License-Identifier: Apache-2.0
 * A group of three processes: what it does, what it says of mistakes, and a death in it. */
#define _GNU_SOURCE
#include <signal.h>

#include "capi/group_job.h"

enum { kMembers = 3, kCount = 200000 };

static int fails(void* user, const void* mine, size_t bytes, void* all) {
  (void)user, (void)mine, (void)bytes, (void)all;
  return 42;
}

/* The second of two members says that it runs memspan 9. */
static int with_version_9(void* user, const void* mine, size_t bytes, void* all) {
  static const char release[] = "memspan ";
  char* const second = (char*)all + bytes;
  (void)user;
  memcpy(all, mine, bytes);
  memcpy(second, mine, bytes);
  char* const found = memmem(second, bytes, release, sizeof release - 1);
  if (found != NULL) found[sizeof release - 1] = '9';
  return 0;
}

static void try_mistakes(memspan_group_t group) {
  float value = 1;
  void* results[kMembers] = {&value, NULL, &value};
  memspan_group_t none = NULL;
  memspan_group_request_t request = NULL;
  CHECK(memspan_group_create(3, 3, exchange, NULL, 100, &none) == SMEM_INVALID_PARAM);
  CHECK(says("rank, which is 3: allowed are 0 to 2"));
  CHECK(memspan_group_create(0, 0, exchange, NULL, 100, &none) == SMEM_INVALID_PARAM);
  CHECK(memspan_group_create(0, 1, exchange, NULL, 0, &none) == SMEM_INVALID_PARAM);
  CHECK(memspan_group_create(0, 2, fails, NULL, 100, &none) != SMEM_OK);
  CHECK(says("the caller's exchange failed with 42"));
  CHECK(memspan_group_create(0, 2, with_version_9, NULL, 100, &none) != SMEM_OK);
  CHECK(says("PE 1 on host ") && says(" runs memspan 9.") && says(", this one memspan "));
  CHECK(memspan_group_all_reduce(group, NULL, &value, 1, MEMSPAN_TYPE_FLOAT32, MEMSPAN_OP_SUM) ==
        SMEM_INVALID_PARAM);
  CHECK(says("result is NULL"));
  CHECK(memspan_group_all_reduce(group, &value, &value, 1, (memspan_type_t)16, MEMSPAN_OP_SUM) ==
        SMEM_INVALID_PARAM);
  CHECK(says("the type is 16, allowed are 0 to 15"));
  CHECK(memspan_group_all_gather(group, results, &value, 4) == SMEM_INVALID_PARAM);
  CHECK(says("results[1] is NULL"));
  CHECK(memspan_group_broadcast(group, &value, 4, 3) == SMEM_INVALID_PARAM);
  CHECK(says("the root is 3, allowed are 0 to 2"));
  CHECK(memspan_group_send(group, 3, 0, &value, 4, &request) == SMEM_INVALID_PARAM);
  CHECK(memspan_group_barrier((memspan_group_t)&value) != SMEM_OK);
  CHECK(memspan_group_test((memspan_group_request_t)group) != SMEM_OK);
  CHECK(memspan_shareable_create(0) == NULL);
  CHECK(memspan_shareable_destroy(&value) == SMEM_INVALID_PARAM);
}

static void reduce_and_gather(memspan_group_t group, int rank) {
  int32_t* values = malloc(kCount * sizeof *values);
  int32_t* all = malloc(kMembers * kCount * sizeof *all);
  void* results[kMembers];
  for (int i = 0; i < kCount; ++i) values[i] = rank * kCount + i;
  for (int member = 0; member < kMembers; ++member) results[member] = all + member * kCount;
  CHECK(memspan_group_all_gather(group, results, values, kCount * sizeof *values) == SMEM_OK);
  for (int i = 0; i < kMembers * kCount; ++i) CHECK(all[i] == i);
  CHECK(memspan_group_all_reduce(group, values, values, kCount, MEMSPAN_TYPE_INT32,
                                 MEMSPAN_OP_SUM) == SMEM_OK);
  for (int i = 0; i < kCount; ++i) CHECK(values[i] == 3 * kCount + 3 * i);
  free(all);
  free(values);
}

/* The bits of a collective, without a group. */
static void reduce_local(void) {
  int32_t one[3] = {1, -5, INT32_MAX};
  const int32_t two[3] = {4, 2, 1};
  const int32_t three[3] = {6, 3, 0};
  const void* const arrays[3] = {one, two, three};
  CHECK(memspan_reduce_local(one, arrays, 3, 3, MEMSPAN_TYPE_INT32, MEMSPAN_OP_SUM) == SMEM_OK);
  CHECK(one[0] == 11 && one[1] == 0 && one[2] == INT32_MIN);
  const float first = 1.0F;
  const float second = 4.0F;
  const void* const floats[2] = {&first, &second};
  float mean = 0;
  CHECK(memspan_reduce_local(&mean, floats, 2, 1, MEMSPAN_TYPE_FLOAT32, MEMSPAN_OP_AVERAGE) ==
        SMEM_OK);
  CHECK(mean > 2.4F && mean < 2.6F);
  CHECK(memspan_reduce_local(&mean, floats, 1, 1, MEMSPAN_TYPE_FLOAT32, MEMSPAN_OP_MAX) == SMEM_OK);
  CHECK(memcmp(&mean, &first, sizeof mean) == 0);
  /* 448 + 448 of e4m3fn, which is as much as it has; 57344 twice of e5m2, which is infinity */
  unsigned char small[2] = {0x7e, 0x7b};
  const void* const twice[][2] = {{&small[0], &small[0]}, {&small[1], &small[1]}};
  CHECK(memspan_reduce_local(&small[0], twice[0], 2, 1, MEMSPAN_TYPE_FLOAT8_E4M3FN,
                             MEMSPAN_OP_SUM) == SMEM_OK);
  CHECK(memspan_reduce_local(&small[1], twice[1], 2, 1, MEMSPAN_TYPE_FLOAT8_E5M2, MEMSPAN_OP_SUM) ==
        SMEM_OK);
  CHECK(small[0] == 0x7e && small[1] == 0x7c);
  CHECK(memspan_reduce_local(NULL, NULL, 0, 0, MEMSPAN_TYPE_FLOAT32, MEMSPAN_OP_SUM) ==
        SMEM_INVALID_PARAM);
  CHECK(says("arrays, which is 0"));
  const void* const missing[2] = {&first, NULL};
  CHECK(memspan_reduce_local(&mean, missing, 2, 1, MEMSPAN_TYPE_FLOAT32, MEMSPAN_OP_SUM) ==
        SMEM_INVALID_PARAM);
  CHECK(says("values[1] is NULL"));
  CHECK(memspan_reduce_local(&mean, floats, 2, 1, MEMSPAN_TYPE_FLOAT32, MEMSPAN_OP_AND) ==
        SMEM_INVALID_PARAM);
  CHECK(says("there is no and of float32"));
}

static void pass_messages(memspan_group_t group, int rank) {
  memspan_group_request_t requests[2];
  int64_t sent = 7 + rank;
  int64_t got = 0;
  const int before = (rank + kMembers - 1) % kMembers;
  CHECK(memspan_group_send(group, (rank + 1) % kMembers, 5, &sent, sizeof sent, &requests[0]) ==
        SMEM_OK);
  CHECK(memspan_group_receive(group, MEMSPAN_GROUP_ANYBODY, 5, &got, sizeof got, &requests[1]) ==
        SMEM_OK);
  for (int i = 0; i < 2; ++i) CHECK(memspan_group_wait(requests[i], 0) == SMEM_OK);
  CHECK(got == 7 + before);
  CHECK(memspan_group_sender(requests[1]) == before);
  for (int i = 0; i < 2; ++i) CHECK(memspan_group_request_free(requests[i]) == SMEM_OK);
  CHECK(memspan_group_wait(requests[0], 0) != SMEM_OK);
  CHECK(memspan_group_receive(group, before, 6, &got, sizeof got, &requests[0]) == SMEM_OK);
  CHECK(memspan_group_test(requests[0]) == MEMSPAN_GROUP_PENDING);
  CHECK(memspan_group_wait(requests[0], 5) == SMEM_TIMEOUT);
  CHECK(memspan_group_set_timeout(group, 0) == SMEM_INVALID_PARAM);
  CHECK(says("timeout_ms, which is 0"));
  CHECK(memspan_group_set_timeout(group, 20) == SMEM_OK);
  CHECK(memspan_group_wait(requests[0], 0) == SMEM_TIMEOUT);
  CHECK(memspan_group_set_timeout(group, kTimeoutMs) == SMEM_OK);
  CHECK(memspan_group_request_free(requests[0]) == SMEM_OK);
}

/* Each member's number in the others' memory. */
static void map_memory(memspan_group_t group, int rank) {
  uint32_t* mine = memspan_shareable_create(100);
  void* mapped[kMembers];
  CHECK(mine != NULL && mine[0] == 0);
  if (!on_one_host(kMembers)) {
    CHECK(memspan_group_map(group, mine, mapped) == SMEM_ERROR);
    CHECK(says("on host test-host-0"));
    CHECK(says("on host test-host-1"));
    CHECK(memspan_shareable_destroy(mine) == SMEM_OK);
    return;
  }
  CHECK(memspan_group_map(group, mine, mapped) == SMEM_OK);
  CHECK(mapped[rank] == mine);
  for (int member = 0; member < kMembers; ++member)
    ((uint32_t*)mapped[member])[1 + rank] = 100 + (uint32_t)rank;
  CHECK(memspan_group_barrier(group) == SMEM_OK);
  for (uint32_t member = 0; member < kMembers; ++member) CHECK(mine[1 + member] == 100 + member);
  const int next = (rank + 1) % kMembers;
  CHECK(memspan_group_swap_word(group, mapped[next], 0, 1, next, 0) == SMEM_OK);
  CHECK(memspan_group_swap_word(group, mine, 1, 0, (rank + 2) % kMembers, 0) == SMEM_OK);
  CHECK(memspan_group_swap_word(group, mine, 9, 0, next, 5) == SMEM_TIMEOUT);
  CHECK(memspan_group_map(group, rank == 1 ? NULL : mine, mapped) == SMEM_INVALID_PARAM);
  CHECK(says("member 1's address is not in shareable memory"));
  /* Memory of a member that is gone stays with those who mapped it. */
  if (rank == 0) {
    memset(mine, 7, 100);
    CHECK(memspan_shareable_destroy(mine) == SMEM_OK);
  }
  CHECK(memspan_group_barrier(group) == SMEM_OK);
  if (rank != 0) CHECK(((unsigned char*)mapped[0])[99] == 7);
  CHECK(memspan_group_unmap(group, mapped) == SMEM_OK);
  if (rank != 0) CHECK(memspan_shareable_destroy(mine) == SMEM_OK);
}

static void lose_a_member(memspan_group_t group, int rank) {
  uint32_t* mine = memspan_shareable_create(8);
  void* mapped[kMembers];
  if (on_one_host(kMembers)) CHECK(memspan_group_map(group, mine, mapped) == SMEM_OK);
  CHECK(memspan_group_barrier(group) == SMEM_OK);
  if (rank == 2) raise(SIGKILL);
  const double begin = now();
  int64_t got = 0;
  memspan_group_request_t request;
  CHECK(memspan_group_receive(group, 2, 0, &got, sizeof got, &request) == SMEM_OK);
  CHECK(memspan_group_wait(request, 0) == SMEM_NOT_CONNECTED);
  CHECK(says("PE 2"));
  CHECK(memspan_group_barrier(group) == SMEM_NOT_CONNECTED);
  /* On another host a death is a broken connection. */
  CHECK(says("PE 2") && (!on_one_host(kMembers) || says("died")));
  CHECK(memspan_group_barrier(group) == SMEM_NOT_CONNECTED);
  /* Those who live have their words as before. */
  const int other = 1 - rank;
  for (int times = 0; on_one_host(kMembers) && times < 100; ++times) {
    CHECK(memspan_group_swap_word(group, mapped[other], 0, 1, other, 0) == SMEM_OK);
    CHECK(memspan_group_swap_word(group, mine, 1, 0, other, 0) == SMEM_OK);
  }
  if (on_one_host(kMembers))
    CHECK(memspan_group_swap_word(group, mine + 1, 1, 0, 2, 0) == SMEM_NOT_CONNECTED);
  CHECK(says("PE 2") && (!on_one_host(kMembers) || says("died")));
  CHECK(now() - begin < 10);
  CHECK(memspan_group_destroy(group) == SMEM_OK);
  CHECK(memspan_group_wait(request, 0) != SMEM_OK);
  CHECK(says("has been destroyed"));
}

static void run(int rank) {
  struct talk talk = {kMembers, rank, 0};
  memspan_group_t group = join(&talk);
  CHECK(memspan_group_rank(group) == rank && memspan_group_size(group) == kMembers);
  try_mistakes(group);
  reduce_and_gather(group, rank);
  reduce_local();
  pass_messages(group, rank);
  map_memory(group, rank);
  lose_a_member(group, rank);
}

int main(void) {
  return run_members(kMembers, run, NULL);
}
