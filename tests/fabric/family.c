/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "family.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <smem/host/smem.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/free_url.h"

struct page* page;
int members;
static int (*role)(int);

enum { kSeconds = 60, kRestart = 1000 };

static void futex(_Atomic uint32_t* word, int operation, uint32_t value) {
  syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

void meet(int count) {
  const uint32_t round = atomic_load(&page->round);
  if (atomic_fetch_add(&page->arrived, 1) + 1 == (uint32_t)count) {
    atomic_store(&page->arrived, 0);
    atomic_fetch_add(&page->round, 1);
    futex(&page->round, FUTEX_WAKE, INT32_MAX);
    return;
  }
  while (atomic_load(&page->round) == round) futex(&page->round, FUTEX_WAIT, round);
}

void await_word(int word, uint64_t value) {
  while (atomic_load(&page->words[word]) != value) sched_yield();
}

int is_failure(int32_t got, int32_t wanted, const char* words) {
  if (got == wanted && smem_get_last_err_code() == wanted &&
      strstr(smem_get_last_err_msg(), words) != NULL)
    return 1;
  fprintf(stderr, "code %d (kept %d), wanted %d and \"%s\"\n", got, smem_get_last_err_code(),
          wanted, words);
  return 0;
}

static void begin_child(void) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(kSeconds);
}

static void choose_url(void) {
  if (!write_free_url(page->url, sizeof page->url)) abort();
}

/* Hosts until it is killed. */
static void host_store(int ready) {
  begin_child();
  smem_set_log_level(4);
  choose_url();
  if (smem_create_config_store(page->url) != SMEM_OK) abort();
  if (write(ready, "", 1) != 1) _exit(1);
  for (;;) pause();
}

static void start_host(void) {
  int ready[2];
  char byte;
  if (pipe(ready) != 0) abort();
  const pid_t child = fork();
  if (child == 0) host_store(ready[1]);
  page->host = child;
  close(ready[1]);
  if (read(ready[0], &byte, 1) != 1) abort();
  close(ready[0]);
}

static void start_member(int number) {
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    begin_child();
    smem_set_log_level(4);
    exit(role(number));
  }
  page->members[number] = child;
}

/* The parent takes it off the page when it has waited for it. */
static void end_process(volatile pid_t* place) {
  const pid_t victim = *place;
  kill(victim, SIGKILL);
  while (*place == victim) sched_yield();
}

void end_member(int number) {
  end_process(&page->members[number]);
}

void end_store(void) {
  end_process(&page->host);
}

void restart_member(int number) {
  atomic_store(&page->words[255], (uint64_t)number + kRestart);
  kill(getppid(), SIGUSR1);
  while (atomic_load(&page->words[255]) != 0) sched_yield();
}

static void take_wish(int* left) {
  const uint64_t wish = atomic_load(&page->words[255]);
  if (wish < kRestart) return;
  start_member((int)(wish - kRestart));
  ++*left;
  atomic_store(&page->words[255], 0);
}

/* A member that was killed is no failure; one that returned something else than 0 is. */
static int is_sound(pid_t child, int status) {
  for (int i = 0; i < MOST_MEMBERS; ++i)
    if (page->members[i] == child) page->members[i] = 0;
  if (status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)) return 1;
  fprintf(stderr, "a member ended with status %#x\n", (unsigned)status);
  return 0;
}

static int wait_for_members(int left, const sigset_t* signals) {
  int failures = 0;
  while (left > 0) {
    sigwaitinfo(signals, NULL);
    take_wish(&left);
    int status = 0;
    for (pid_t child; (child = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (child == page->host) {
        page->host = 0;
        continue;
      }
      --left;
      if (is_sound(child, status)) continue;
      /* The others may wait for it. */
      if (failures++ > 0) continue;
      for (int i = 0; i < MOST_MEMBERS; ++i)
        if (page->members[i] > 0) kill(page->members[i], SIGKILL);
    }
  }
  return failures;
}

static int run(int count, int (*member)(int), int has_store) {
  members = count;
  role = member;
  page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return 1;
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  sigaddset(&signals, SIGUSR1);
  sigprocmask(SIG_BLOCK, &signals, NULL);
  alarm(kSeconds + 10);
  if (has_store)
    start_host();
  else
    choose_url();
  for (int i = 0; i < count; ++i) start_member(i);
  const int failures = wait_for_members(count, &signals);
  if (page->host != 0) {
    kill(page->host, SIGKILL);
    waitpid(page->host, NULL, 0);
  }
  return failures != 0;
}

int run_family(int count, int (*member)(int)) {
  return run(count, member, 1);
}

int run_family_without_store(int count, int (*member)(int)) {
  return run(count, member, 0);
}

int run_case(int argc, char** argv, const struct test_case* cases) {
  for (const struct test_case* one = cases; argc == 2 && one->name != NULL; ++one)
    if (strcmp(one->name, argv[1]) == 0) return run(one->count, one->member, !one->hosts_itself);
  fprintf(stderr, "usage: %s CASE; the cases are\n", argv[0]);
  for (const struct test_case* one = cases; one->name != NULL; ++one)
    fprintf(stderr, "  %s\n", one->name);
  return 2;
}
