/* SPDX-License-Identifier: Apache-2.0
 * A member of a pool that does what its standard input says, for tests that choose when members
 * come, go and die:
 *
 *   hosts_pool URL RANK RANKS       joins and says "ready RANK PID"
 *
 * Each command is a line and has an answer of one line. A result is "ok", "wrong" (the bytes are
 * not those of the seed) or "failed CODE: TEXT".
 *
 *   fill SEED           its own memory        -> ok
 *   own SEED            looks there           -> result
 *   read RANK SEED      copies that rank's    -> result
 *   write RANK SEED     copies to that rank   -> result
 *   until RANK SEED     reads until it is ok  -> "ok at SECONDS" of CLOCK_MONOTONIC
 *   lost RANK           reads until it fails  -> "failed at SECONDS CODE: TEXT"
 *   load RANK SEED      a thread reads all the time, another one writes nothing but that seed
 *   flood RANK SEED     a thread writes all the time, until a copy fails and the thread is told to
 * end end                 ends the threads      -> "done OK WRONG REFUSED OTHER", numbers of copies
 *   leave, join         -> "ok at SECONDS" or "failed ..."
 *
 * It ends with its input.
 */
#include <pthread.h>
#include <smem/host/smem_bm.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kWindow = 2 << 20, kBytes = 256 << 10, kPatience = 30 };

static smem_bm_t pool;
static int me;
static atomic_int over;

struct work {
  pthread_t thread;
  int rank, seed, writes;
  long ok, wrong, refused, other;
};
static struct work works[4];
static int begun;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static uint64_t word_of(int seed, size_t i) {
  return ((uint64_t)seed << 32) + i * 2654435761U;
}
static void fill(uint64_t* words, int seed) {
  for (size_t i = 0; i < kBytes / sizeof *words; ++i) words[i] = word_of(seed, i);
}
static int is_filled(const uint64_t* words, int seed) {
  for (size_t i = 0; i < kBytes / sizeof *words; ++i)
    if (words[i] != word_of(seed, i)) return 0;
  return 1;
}

static void* window(int rank) {
  return smem_bm_ptr_by_mem_type(pool, SMEM_MEM_TYPE_HOST, (uint16_t)rank);
}
static int32_t read_from(int rank, uint64_t* words) {
  smem_copy_params params = {window(rank), words, kBytes};
  memset(words, 0, kBytes);
  return smem_bm_copy(pool, &params, SMEMB_COPY_G2H, 0);
}
static int32_t write_to(int rank, uint64_t* words) {
  smem_copy_params params = {words, window(rank), kBytes};
  return smem_bm_copy(pool, &params, SMEMB_COPY_H2G, 0);
}

static void* work(void* argument) {
  struct work* mine = argument;
  uint64_t* words = malloc(kBytes);
  while (!atomic_load(&over)) {
    if (mine->writes) fill(words, mine->seed);
    const int32_t code = mine->writes ? write_to(mine->rank, words) : read_from(mine->rank, words);
    if (code == SMEM_OK && is_filled(words, mine->seed))
      ++mine->ok;
    else if (code == SMEM_OK)
      ++mine->wrong;
    else if (code == SMEM_NOT_CONNECTED)
      ++mine->refused;
    else {
      ++mine->other;
      fprintf(stderr, "copy: %d: %s\n", code, smem_get_last_err_msg());
    }
  }
  free(words);
  return NULL;
}

static void start_work(int rank, int seed, int writes) {
  if (begun == 0) atomic_store(&over, 0);
  works[begun] = (struct work){.rank = rank, .seed = seed, .writes = writes};
  pthread_create(&works[begun].thread, NULL, work, &works[begun]);
  ++begun;
}

static void end_work(void) {
  long ok = 0, wrong = 0, refused = 0, other = 0;
  atomic_store(&over, 1);
  for (int i = 0; i < begun; ++i) {
    pthread_join(works[i].thread, NULL);
    ok += works[i].ok;
    wrong += works[i].wrong;
    refused += works[i].refused;
    other += works[i].other;
  }
  begun = 0;
  printf("done %ld %ld %ld %ld\n", ok, wrong, refused, other);
}

static void say_failed(int32_t code) {
  printf("failed %d: %s\n", code, smem_get_last_err_msg());
}
static void say(int32_t code, int is_right) {
  if (code != SMEM_OK)
    say_failed(code);
  else
    puts(is_right ? "ok" : "wrong");
}
static void say_when(int32_t code) {
  if (code == SMEM_OK)
    printf("ok at %.6f\n", now());
  else
    say_failed(code);
}

static void until(int rank, int seed, uint64_t* words) {
  int32_t code = SMEM_OK;
  int is_right = 0;
  for (const double end = now() + kPatience; !is_right && now() < end;) {
    code = read_from(rank, words);
    is_right = code == SMEM_OK && is_filled(words, seed);
  }
  if (is_right)
    say_when(code);
  else
    say(code, 0);
}

static void until_lost(int rank, uint64_t* words) {
  int32_t code = SMEM_OK;
  for (const double end = now() + kPatience; code == SMEM_OK && now() < end;)
    code = read_from(rank, words);
  if (code == SMEM_OK)
    puts("ok");
  else
    printf("failed at %.6f %d: %s\n", now(), code, smem_get_last_err_msg());
}

static void obey(const char* command, int rank, int seed, uint64_t* words) {
  const char first_of_two = command[0];
  if (strcmp(command, "fill") == 0) {
    fill(window(me), rank);
    puts("ok");
  } else if (strcmp(command, "own") == 0) {
    say(SMEM_OK, is_filled(window(me), rank));
  } else if (strcmp(command, "read") == 0) {
    const int32_t code = read_from(rank, words);
    say(code, is_filled(words, seed));
  } else if (strcmp(command, "write") == 0) {
    fill(words, seed);
    say(write_to(rank, words), 1);
  } else if (strcmp(command, "until") == 0) {
    until(rank, seed, words);
  } else if (strcmp(command, "lost") == 0) {
    until_lost(rank, words);
  } else if (strcmp(command, "load") == 0 || strcmp(command, "flood") == 0) {
    start_work(rank, seed, first_of_two == 'f');
    puts("ok");
  } else if (strcmp(command, "end") == 0) {
    end_work();
  } else if (strcmp(command, "leave") == 0) {
    say_when(smem_bm_leave(pool, 0));
  } else if (strcmp(command, "join") == 0) {
    say_when(smem_bm_join(pool, 0, NULL));
  } else {
    puts("unknown");
  }
}

static int fails(const char* what) {
  fprintf(stderr, "%s: %s\n", what, smem_get_last_err_msg());
  return 1;
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  me = atoi(argv[2]);
  smem_bm_config_t config;
  smem_bm_config_init(&config);
  config.startConfigStoreServer = false;
  config.autoRanking = false;
  config.rankId = (uint16_t)me;
  config.initTimeout = config.createTimeout = 20;
  config.controlOperationTimeout = 10;
  if (smem_bm_init(argv[1], (uint32_t)atoi(argv[3]), 0, &config) != SMEM_OK) return fails("init");
  pool = smem_bm_create(1, 0, SMEMB_DATA_OP_SDMA, kWindow, 0, 0);
  if (pool == NULL) return fails("create");
  fill(window(me), me);
  if (smem_bm_join(pool, 0, NULL) != SMEM_OK) return fails("join");
  printf("ready %d %d\n", me, (int)getpid());
  fflush(stdout);
  uint64_t* words = malloc(kBytes);
  char line[200], command[20] = "";
  while (fgets(line, sizeof line, stdin) != NULL) {
    int rank = 0, seed = 0;
    if (sscanf(line, "%19s %d %d", command, &rank, &seed) < 1) continue;
    obey(command, rank, seed, words);
    fflush(stdout);
  }
  free(words);
  smem_bm_uninit(0);
  return 0;
}
