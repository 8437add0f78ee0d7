// SPDX-License-Identifier: Apache-2.0
// What user code does to a library behind its back: fork, end twice, end late, interrupt.
//
//   failure_user_code CASE
//
// Each case ends with the line "fine RANK" when the job was not hurt. Children say "child: ...".
#include <memspan/memspan.h>
#include <shmem.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr int kRounds = 200;

// Everything still works, and everybody is in step.
void check_job() {
  const int pes = shmem_n_pes();
  const int me = shmem_my_pe();
  auto* word = static_cast<long*>(shmem_calloc(2, sizeof(long)));
  shmem_long_atomic_add(word, me + 1, 0);
  shmem_barrier_all();
  if (me == 0 && word[0] != pes * (pes + 1) / 2) std::abort();
  word[0] = me;
  shmem_long_sum_reduce(SHMEM_TEAM_WORLD, word + 1, word, 1);
  if (word[1] != pes * (pes - 1) / 2) std::abort();
  shmem_free(word);
}

// Not by stdio, which throws away what a signal keeps it from writing to a terminal, and a terminal
// is where a job's output goes.
void say_fine(int me) {
  const std::string line = "fine " + std::to_string(me) + "\n";
  std::fflush(stdout);
  while (::write(STDOUT_FILENO, line.data(), line.size()) < 0 && errno == EINTR) continue;
}

// Runs `child` in a child and says how it ended: "child: code N" or "child: signal N". A child that
// hangs is ended by its alarm.
template <typename Child>
void in_child(Child child) {
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(5);
    child();
    std::exit(0);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
  }
  std::printf("child: %s %d\n", WIFSIGNALED(status) ? "signal" : "code",
              WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  std::fflush(stdout);
}

long* word_of_all;

void child_call(const char* what) {
  if (std::strcmp(what, "fork-exit") == 0) return;
  if (std::strcmp(what, "fork-barrier") == 0) shmem_barrier_all();
  if (std::strcmp(what, "fork-finalize") == 0) shmem_finalize();
  if (std::strcmp(what, "fork-malloc") == 0) shmem_malloc(8);
  if (std::strcmp(what, "fork-put") == 0) shmem_long_p(word_of_all, 13, 0);
  if (std::strcmp(what, "fork-wait") == 0) shmem_long_wait_until(word_of_all, SHMEM_CMP_EQ, 1);
  if (std::strcmp(what, "fork-init") == 0) shmem_init();
  if (std::strcmp(what, "fork-global-exit") == 0) shmem_global_exit(9);
}

int fork_case(const char* what) {
  shmem_init();
  const int me = shmem_my_pe();
  word_of_all = static_cast<long*>(shmem_calloc(1, sizeof(long)));
  if (me == shmem_n_pes() - 1) in_child([&] { child_call(what); });
  check_job();
  if (*word_of_all != 0) std::abort();
  shmem_finalize();
  say_fine(me);
  return 0;
}

int twice() {
  shmem_init();
  shmem_init();
  const int me = shmem_my_pe();
  check_job();
  shmem_finalize();
  check_job();
  shmem_finalize();
  say_fine(me);
  std::fflush(stdout);
  shmem_finalize();  // one too many: a warning
  return 0;
}

int join_again() {
  int me = 0;
  for (int round = 0; round < 5; ++round) {
    shmem_init();
    me = shmem_my_pe();
    check_job();
    shmem_finalize();
  }
  say_fine(me);
  return 0;
}

// A destructor of a static object runs after the exit handlers that came later than its
// construction; with `early` the library is gone by then, else it is still there.
struct Late {
  const char* what = nullptr;
  ~Late() {
    if (what == nullptr) return;
    if (std::strstr(what, "barrier") != nullptr) shmem_barrier_all();
    if (std::strstr(what, "finalize") != nullptr) shmem_finalize();
    if (std::strstr(what, "initialized") != nullptr) {
      int is_initialized = -1;
      shmem_query_initialized(&is_initialized);
      std::printf("initialized %d\n", is_initialized);
    }
  }
};
Late made_before_start;

int destructor_case(const char* what) {
  if (std::strstr(what, "after") == nullptr) made_before_start.what = what;
  shmem_init();
  static Late made_after_start;
  if (std::strstr(what, "after") != nullptr) made_after_start.what = what;
  const int me = shmem_my_pe();
  check_job();
  say_fine(me);
  return 0;
}

int exit_handler(const char* what) {
  if (std::strstr(what, "before") != nullptr) std::atexit([] { shmem_barrier_all(); });
  shmem_init();
  if (std::strstr(what, "after") != nullptr) std::atexit([] { shmem_finalize(); });
  check_job();
  say_fine(shmem_my_pe());
  return 0;
}

volatile std::sig_atomic_t ticks;

// Signals every 300 us, from before the start until after the end, without SA_RESTART.
int interrupted() {
  struct sigaction action = {};
  action.sa_handler = [](int) { ticks = ticks + 1; };
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often = {{0, 300}, {0, 300}};
  setitimer(ITIMER_REAL, &often, nullptr);
  shmem_init();
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  auto* word = static_cast<long*>(shmem_calloc(1, sizeof(long)));
  auto* signal = static_cast<uint64_t*>(shmem_calloc(1, sizeof(uint64_t)));
  for (long round = 1; round <= kRounds; ++round) {
    // Long enough that the others sleep, not only spin.
    const int seen = ticks;
    while (round % pes == me && ticks < seen + 5) {
    }
    shmem_long_p(word, round, (me + 1) % pes);
    shmem_uint64_put_signal(signal, signal, 0, signal, static_cast<uint64_t>(round),
                            SHMEM_SIGNAL_SET, (me + 1) % pes);
    shmem_long_wait_until(word, SHMEM_CMP_GE, round);
    shmem_signal_wait_until(signal, SHMEM_CMP_GE, static_cast<uint64_t>(round));
    shmem_barrier_all();
  }
  for (int round = 0; round < 10; ++round) check_job();
  shmem_finalize();
  if (ticks < kRounds) std::abort();
  say_fine(me);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const char* what = count > 1 ? arguments[1] : "";
  if (std::strncmp(what, "fork-", 5) == 0) return fork_case(what);
  if (std::strcmp(what, "twice") == 0) return twice();
  if (std::strcmp(what, "again") == 0) return join_again();
  if (std::strncmp(what, "destructor-", 11) == 0) return destructor_case(what);
  if (std::strncmp(what, "handler-", 8) == 0) return exit_handler(what);
  if (std::strcmp(what, "interrupted") == 0) return interrupted();
  return 2;
}
