/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "support/processes.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"
#include "support/free_url.h"

struct page* page;
int members;
static void (*role)(int);
static int ready[2]; /* the pipe on which a helper says that it is ready */
static struct scenario* scenarios;

enum { kSeconds = 60, kPatience = 50 };

/* ---- words that all have ---- */

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

double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

void await_word(int word, uint64_t value) {
  const double end = now() + kPatience;
  while (atomic_load(&page->words[word]) != value) {
    CHECK(now() < end);
    sched_yield();
  }
}

void await_count(int word, uint64_t least) {
  const double end = now() + kPatience;
  while (atomic_load(&page->words[word]) < least) {
    CHECK(now() < end);
    sched_yield();
  }
}

/* A text's place is used again, by when all have read it. */
int exchange(void* talk, const void* mine, size_t bytes, void* all) {
  struct talk* self = talk;
  if (bytes > kMostText) return 1;
  const int place = self->round % kTexts;
  const uint32_t wanted = (uint32_t)((self->round / kTexts + 1) * self->members);
  const double end = now() + kPatience;
  memcpy(page->texts[place][self->rank], mine, bytes);
  atomic_fetch_add(&page->here[place], 1);
  while (atomic_load(&page->here[place]) < wanted) {
    if (now() > end) return 2;
    sched_yield();
  }
  for (int member = 0; member < self->members; ++member)
    memcpy((char*)all + (size_t)member * bytes, page->texts[place][member], bytes);
  ++self->round;
  return 0;
}

void fill(char* bytes, size_t count, int seed) {
  for (size_t i = 0; i < count; ++i) bytes[i] = (char)(i * 7 + (size_t)seed * 31 + i / 251);
}

int is_filled(const char* bytes, size_t count, int seed) {
  for (size_t i = 0; i < count; ++i)
    if (bytes[i] != (char)(i * 7 + (size_t)seed * 31 + i / 251)) return 0;
  return 1;
}

/* ---- beginning ---- */

pid_t fork_process(unsigned seconds) {
  fflush(NULL);
  const pid_t child = fork();
  if (child != 0) return child;
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(seconds);
  return 0;
}

static void start_helper(void (*helper)(void)) {
  char byte;
  CHECK(pipe(ready) == 0);
  const pid_t child = fork_process(kSeconds);
  CHECK(child >= 0);
  if (child == 0) {
    helper();
    for (;;) pause();
  }
  page->helper = child;
  close(ready[1]);
  CHECK(read(ready[0], &byte, 1) == 1);
  close(ready[0]);
}

void helper_is_ready(void) {
  CHECK(write(ready[1], "", 1) == 1);
}

/* Of the host-th of "PID:PID:...". */
static void enter_namespaces(const char* holders, int host) {
  while (host-- > 0) {
    holders = strchr(holders, ':');
    CHECK(holders != NULL);
    ++holders;
  }
  /* By files: the test may refuse pidfd_open(). All are open before the first is entered, since
   * /proc may be another one then. */
  static const char* const kinds[] = {"net", "uts", "ipc", "mnt"};
  enum { kKinds = sizeof kinds / sizeof *kinds };
  int files[kKinds];
  for (int i = 0; i < kKinds; ++i) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/%s", atoi(holders), kinds[i]);
    files[i] = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(files[i] >= 0);
  }
  for (int i = 0; i < kKinds; ++i) {
    CHECK(setns(files[i], 0) == 0);
    close(files[i]);
  }
}

void join_test_host(int number) {
  const char* hosts = getenv("MEMSPAN_TEST_HOSTS");
  const char* holders = getenv("MEMSPAN_TEST_HOLDERS");
  if (hosts == NULL || atoi(hosts) < 1) return;
  const int mine = number % atoi(hosts);
  if (holders != NULL) {
    enter_namespaces(holders, mine);
    return;
  }
  char host[32];
  snprintf(host, sizeof host, "test-host-%d", mine);
  setenv("MEMSPAN_HOST_ID", host, 1);
}

static void start_member(int number) {
  const pid_t child = fork_process(kSeconds);
  CHECK(child >= 0);
  if (child == 0) {
    join_test_host(number);
    role(number);
    exit(0);
  }
  page->members[number] = child;
}

/* ---- ending ---- */

/* The parent takes it off the page when it has waited for it. */
static void end_process(volatile pid_t* place) {
  const pid_t victim = *place;
  kill(victim, SIGKILL);
  while (*place == victim) sched_yield();
}

void end_member(int number) {
  end_process(&page->members[number]);
}

void end_helper(void) {
  end_process(&page->helper);
}

void restart_member(int number) {
  atomic_store(&page->wish, (uint64_t)number + 1);
  kill(getppid(), SIGUSR1);
  while (atomic_load(&page->wish) != 0) sched_yield();
}

static void take_wish(int* left) {
  const uint64_t wish = atomic_load(&page->wish);
  if (wish == 0) return;
  start_member((int)wish - 1);
  ++*left;
  atomic_store(&page->wish, 0);
}

/* A member that was killed is no failure; one that ended otherwise than with 0 is. */
static int is_sound(pid_t child, int status) {
  int number = 0;
  while (number < kMostMembers - 1 && page->members[number] != child) ++number;
  page->members[number] = 0;
  if (status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)) return 1;
  fprintf(stderr, "member %d ended with %s %d\n", number, WIFEXITED(status) ? "code" : "signal",
          WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
  return 0;
}

static int wait_for_members(int left, const sigset_t* signals) {
  int failures = 0;
  while (left > 0) {
    sigwaitinfo(signals, NULL);
    take_wish(&left);
    int status = 0;
    for (pid_t child; (child = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (child == page->helper) {
        page->helper = 0;
        continue;
      }
      --left;
      if (is_sound(child, status)) continue;
      /* The others may wait for it. */
      if (failures++ > 0) continue;
      for (int i = 0; i < kMostMembers; ++i)
        if (page->members[i] > 0) kill(page->members[i], SIGKILL);
    }
  }
  return failures;
}

int run_members(int count, void (*member)(int), void (*helper)(void)) {
  members = count;
  role = member;
  page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(page != MAP_FAILED && count <= kMostMembers && write_free_url(page->url, sizeof page->url));
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  sigaddset(&signals, SIGUSR1);
  sigprocmask(SIG_BLOCK, &signals, NULL);
  alarm(kSeconds + 10);
  if (helper != NULL) start_helper(helper);
  for (int i = 0; i < count; ++i) start_member(i);
  const int failures = wait_for_members(count, &signals);
  if (page->helper != 0) {
    kill(page->helper, SIGKILL);
    waitpid(page->helper, NULL, 0);
  }
  alarm(0);
  munmap(page, sizeof *page);
  return failures != 0;
}

/* ---- scenarios ---- */

void add_scenario(struct scenario* scenario) {
  scenario->next = scenarios;
  scenarios = scenario;
}

int run_scenario(int argc, char** argv, void (*helper)(void)) {
  for (const struct scenario* one = scenarios; argc == 2 && one != NULL; one = one->next)
    if (strcmp(one->name, argv[1]) == 0)
      return run_members(one->count, one->member, one->is_lone ? NULL : helper);
  fprintf(stderr, "usage: %s SCENARIO; there are\n", argv[0]);
  for (const struct scenario* one = scenarios; one != NULL; one = one->next)
    fprintf(stderr, "  %s\n", one->name);
  return 2;
}
