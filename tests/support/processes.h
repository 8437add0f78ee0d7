/* SPDX-License-Identifier: Apache-2.0
 * The process harness of C and C++ tests: members, made by fork before anything of the library
 * runs, and a page that they share. No process outlives the test, which takes a minute at most. */
#ifndef MEMSPAN_TESTS_SUPPORT_PROCESSES_H
#define MEMSPAN_TESTS_SUPPORT_PROCESSES_H

#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* fork: the child has no signal blocked, and ends with its parent, or after so many seconds. */
pid_t fork_process(unsigned seconds);

/* With MEMSPAN_TEST_HOSTS=n in the environment: this process, which is the number-th, is on host
 * number % n from now on. They are simulated ones, or network namespaces when MEMSPAN_TEST_HOLDERS
 * has the ids of processes there (tests/hosts/on_hosts.py); a process that does not call this is on
 * host 0 then. To be called before anything of the library runs, and before there are threads. */
void join_test_host(int number);

#ifdef __cplusplus
}
#else

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { kMostMembers = 16, kWords = 256, kTexts = 8, kMostText = 2048 };

/* The same page in all of them; all zero when run_members() begins. */
struct page {
  char url[64];                   /* of a store; nobody listens there yet, unless the helper does */
  pid_t helper;                   /* 0: none, or none any more */
  pid_t members[kMostMembers];    /* by number; 0 once it is gone */
  _Atomic uint64_t words[kWords]; /* for the test */
  _Atomic uint32_t arrived, round; /* at meet() */
  _Atomic uint64_t wish;           /* of restart_member() */
  _Atomic uint32_t here[kTexts];   /* at exchange() */
  char texts[kTexts][kMostMembers][kMostText];
};
extern struct page* page;
extern int members; /* how many */

/* Runs `member` in `count` processes, and gives 0 when each returned or was killed (SIGKILL). The
 * first one that failed ends the others. `helper`, unless NULL, runs before in a process of its
 * own, which calls helper_is_ready(); it is killed at the end. */
int run_members(int count, void (*member)(int number), void (*helper)(void));
void helper_is_ready(void);

/* Kills (SIGKILL) a member, or the helper, and waits until it is gone; for another member. */
void end_member(int number);
void end_helper(void);
/* Runs a member once more in a new process, as that number. */
void restart_member(int number);

/* Waits until `count` processes are here; nobody waits for one that is dead. */
void meet(int count);
/* Waits until the word has the value, or at least this value. */
void await_word(int word, uint64_t value);
void await_count(int word, uint64_t least);
/* Seconds of a clock that all processes share. */
double now(void);

/* memspan_group_create's exchange; `talk` is the caller's. */
struct talk {
  int members;
  int rank;
  int round;
};
int exchange(void* talk, const void* mine, size_t bytes, void* all);

/* Bytes that every process can make again. */
void fill(char* bytes, size_t count, int seed);
int is_filled(const char* bytes, size_t count, int seed);

/* SCENARIO(goes_on_after_a_death, 3, int rank) { ... }: what each of 3 members does in the
 * scenario, with its number. ctest has every scenario of the file (memspan_add_scenarios). A
 * LONE_SCENARIO has no helper. */
struct scenario {
  const char* name;
  int count;
  void (*member)(int number);
  int is_lone;
  struct scenario* next;
};
void add_scenario(struct scenario* scenario);
#define SCENARIO(name, count, parameter) SCENARIO_OF(name, count, parameter, 0)
#define LONE_SCENARIO(name, count, parameter) SCENARIO_OF(name, count, parameter, 1)
#define SCENARIO_OF(name, count, parameter, is_lone)                             \
  static void name(parameter);                                                   \
  __attribute__((constructor)) static void add_##name(void) {                    \
    static struct scenario scenario = {#name, (count), (name), (is_lone), NULL}; \
    add_scenario(&scenario);                                                     \
  }                                                                              \
  static void name(__attribute__((unused)) parameter)

/* Runs the scenario that the first argument names; for main(). */
int run_scenario(int argc, char** argv, void (*helper)(void));

#endif
#endif
