/* SPDX-License-Identifier: Apache-2.0
 * Processes of a test: a host of a store and some members, made by fork before anything of the
 * library runs, with a page that they share. The test ends, with whatever is still there, after a
 * minute. */
#ifndef MEMSPAN_TESTS_FABRIC_FAMILY_H
#define MEMSPAN_TESTS_FABRIC_FAMILY_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#define MOST_MEMBERS 16

/* The same page in all of them. */
struct page {
  char url[64];                /* of the store */
  pid_t host;                  /* of the store; 0: none, or none any more */
  pid_t members[MOST_MEMBERS]; /* by number; 0 once it is gone */
  _Atomic uint64_t words[256]; /* for the test */
  _Atomic uint32_t arrived;
  _Atomic uint32_t round;
};
extern struct page* page;
extern int members; /* how many */

/* Waits until `count` processes are here; nobody waits for one that is dead. */
void meet(int count);
/* Waits until the word has the value. */
void await_word(int word, uint64_t value);

/* Hosts a store in a process of its own, runs `member` in `count` others, and gives 0 when all of
 * them returned 0 or were killed by `end_member`. */
int run_family(int count, int (*member)(int number));
/* The same with rank 0 as the host of the store: nobody hosts one before. */
int run_family_without_store(int count, int (*member)(int number));
/* Kills (SIGKILL) a member and waits until it is gone; for another member. */
void end_member(int number);
/* The same for the host of the store. */
void end_store(void);
/* Runs `member` once more in a new process, as that number; in the parent's place. */
void restart_member(int number);

/* The case of that name, among a null-ended list; for main(). */
struct test_case {
  const char* name;
  int count; /* of members */
  int (*member)(int number);
  int hosts_itself;
};
int run_case(int argc, char** argv, const struct test_case* cases);

#define EXPECT(condition)                                             \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      fprintf(stderr, "  last error: %s\n", smem_get_last_err_msg()); \
      return 1;                                                       \
    }                                                                 \
  } while (0)
/* That the call failed with that code, and said these words. */
#define EXPECT_FAILURE(call, code, words) EXPECT(is_failure((call), (code), (words)))
int is_failure(int32_t got, int32_t wanted, const char* words);

#endif
