// SPDX-License-Identifier: Apache-2.0
// A process of a job that calls one small and one large operation and then stays, so that memory.py
// can look at its memory:
//
//   memory_resident openshmem|group|pool FOLDER [RANK SIZE URL]
//   memory_resident mpi FOLDER                        (compiled with -DRESIDENT_MPI by an MPI's
//   mpicc)
//
// It prints "at PHASE PID" and waits until memory.py unlocks the file FOLDER/PHASE, for each phase:
// started (after a barrier), used (after the calls), and idle (a group: after its idle time). Its
// own data are kBytes to send and kBytes to receive, all of them written. They are not zeros, of
// which a compiler makes calloc() and the kernel no pages.
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>
#ifdef RESIDENT_MPI
#include <mpi.h>
#else
#include <memspan/group.h>
#include <shmem.h>
#include <smem/host/smem_bm.h>
#endif

enum { kBytes = 1 << 20, kCount = kBytes / sizeof(float) };

static const char* folder;

static int fail(const char* what, const char* why) {
  printf("failed %s: %s\n", what, why);
  fflush(stdout);
  return 1;
}

static void stay(const char* phase) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, phase);
  printf("at %s %d\n", phase, (int)getpid());
  fflush(stdout);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0 || flock(file, LOCK_SH) != 0) _exit(fail(phase, "its file cannot be locked"));
  close(file);
}

#ifdef RESIDENT_MPI

static int of_mpi(void) {
  float* const data = malloc(2 * kBytes);
  MPI_Init(NULL, NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  stay("started");
  memset(data, 1, 2 * kBytes);
  MPI_Allreduce(data, data + kCount, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(data, data + kCount, kCount, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  stay("used");
  MPI_Finalize();
  free(data);
  return 0;
}

#else

static int of_openshmem(void) {
  shmem_init();
  shmem_barrier_all();
  stay("started");
  float* const data = shmem_malloc(2 * kBytes);
  if (data == NULL) return fail("openshmem", "no memory");
  memset(data, 1, 2 * kBytes);
  shmem_float_sum_reduce(SHMEM_TEAM_WORLD, data + kCount, data, 1);
  shmem_float_sum_reduce(SHMEM_TEAM_WORLD, data + kCount, data, kCount);
  shmem_barrier_all();
  stay("used");
  shmem_finalize();
  return 0;
}

// Texts that the members give each other, as a launcher would: files FOLDER/STEP.RANK.
struct exchange {
  int rank, size, step;
};
static int exchange(void* user, const void* mine, size_t bytes, void* all) {
  struct exchange* const with = user;
  char path[512], made[512];
  snprintf(made, sizeof made, "%s/new.%d", folder, with->rank);
  snprintf(path, sizeof path, "%s/%d.%d", folder, ++with->step, with->rank);
  FILE* file = fopen(made, "w");
  if (file == NULL || fwrite(mine, 1, bytes, file) != bytes || fclose(file) != 0) return 1;
  if (rename(made, path) != 0) return 1;
  const struct timespec pause = {0, 1000000};
  for (int rank = 0; rank < with->size; ++rank) {
    snprintf(path, sizeof path, "%s/%d.%d", folder, with->step, rank);
    for (int tries = 0; (file = fopen(path, "r")) == NULL; ++tries) {
      if (tries == 60000) return 1;
      nanosleep(&pause, NULL);
    }
    const size_t got = fread((char*)all + (size_t)rank * bytes, 1, bytes, file);
    fclose(file);
    if (got != bytes) return 1;
  }
  return 0;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int of_group(int rank, int size) {
  struct exchange with = {rank, size, 0};
  memspan_group_t group;
  if (memspan_group_create(rank, size, exchange, &with, 120000, &group) != SMEM_OK)
    return fail("group", smem_get_last_err_msg());
  int32_t bad = memspan_group_barrier(group);
  stay("started");
  float* const data = malloc(2 * kBytes);
  memset(data, 1, 2 * kBytes);
  bad |=
      memspan_group_all_reduce(group, data + kCount, data, 1, MEMSPAN_TYPE_FLOAT32, MEMSPAN_OP_SUM);
  bad |= memspan_group_all_reduce(group, data + kCount, data, kCount, MEMSPAN_TYPE_FLOAT32,
                                  MEMSPAN_OP_SUM);
  bad |= memspan_group_barrier(group);
  stay("used");
  // Twice the idle time of the members: max(1 s, 0.1 s for each). The sum says when all are over
  // it.
  const double end = now() + (size > 10 ? 0.2 * size : 2) + 0.5;
  for (float sum = 0; bad == SMEM_OK && sum < (float)size;) {
    const float is_over = now() > end ? 1 : 0;
    bad |= memspan_group_all_reduce(group, &sum, &is_over, 1, MEMSPAN_TYPE_FLOAT32, MEMSPAN_OP_SUM);
    nanosleep(&(struct timespec){0, 10000000}, NULL);
  }
  bad |= memspan_group_barrier(group);
  stay("idle");
  if (bad != SMEM_OK) return fail("group", smem_get_last_err_msg());
  memspan_group_destroy(group);
  free(data);
  return 0;
}

// Each member writes to the window of the next one and waits for what the one before it writes.
static int of_pool(int rank, int size, const char* url) {
  smem_bm_config_t config;
  smem_bm_config_init(&config);
  config.autoRanking = false;
  config.rankId = (uint16_t)rank;
  config.startConfigStoreServer = rank == 0;
  if (smem_bm_init(url, (uint32_t)size, 0, &config) != SMEM_OK)
    return fail("pool", smem_get_last_err_msg());
  const smem_bm_t pool = smem_bm_create(1, 0, SMEMB_DATA_OP_SDMA, kBytes, 0, 0);
  struct exchange with = {rank, size, 0};
  char* const words = calloc(1, (size_t)size);
  void* mine = NULL;
  if (pool == NULL || smem_bm_join(pool, 0, &mine) != SMEM_OK)
    return fail("pool", smem_get_last_err_msg());
  if (words == NULL || exchange(&with, "", 1, words) != 0) return fail("pool", "no exchange");
  stay("started");
  char* const data = malloc(kBytes);
  memset(data, 1, kBytes);
  void* const next =
      smem_bm_ptr_by_mem_type(pool, SMEM_MEM_TYPE_HOST, (uint16_t)((rank + 1) % size));
  smem_copy_params small = {data, next, 8};
  smem_copy_params large = {data, next, kBytes};
  if (smem_bm_copy(pool, &small, SMEMB_COPY_H2G, 0) != SMEM_OK ||
      smem_bm_copy(pool, &large, SMEMB_COPY_H2G, 0) != SMEM_OK)
    return fail("pool", smem_get_last_err_msg());
  if (exchange(&with, "", 1, words) != 0) return fail("pool", "no exchange");
  stay("used");
  exchange(&with, "", 1, words);
  smem_bm_uninit(0);
  free(data);
  free(words);
  return 0;
}

#endif

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  folder = argv[2];
#ifdef RESIDENT_MPI
  return of_mpi();
#else
  if (strcmp(argv[1], "openshmem") == 0) return of_openshmem();
  if (argc < 6) return 2;
  if (strcmp(argv[1], "group") == 0) return of_group(atoi(argv[3]), atoi(argv[4]));
  return of_pool(atoi(argv[3]), atoi(argv[4]), argv[5]);
#endif
}
