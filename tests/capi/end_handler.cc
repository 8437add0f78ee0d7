// SPDX-License-Identifier: Apache-2.0
// What bindings of other languages use: calls that would end the process throw, and the job goes
// on.
#include <memspan/memspan.h>
#include <shmem.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace {

struct Ended {
  int reason;
  std::string text;
};

void throw_it(const char* call, int reason, const char* message) {
  throw Ended{reason, std::string(call) + ": " + message};
}

void throw_sentence(const char* call, int, const char* message) {
  throw std::string(call) + " of the thread: " + message;
}

void check(bool is_right, const char* what) {
  if (is_right) return;
  std::fprintf(stderr, "wrong: %s (last error: %s)\n", what, memspan_last_error());
  std::exit(1);
}

template <typename Call>
Ended ended(Call call) {
  try {
    call();
  } catch (const Ended& end) {
    return end;
  }
  return {-1, "nothing"};
}

// A thread's own handler is told first, in that thread alone, and until it is taken back.
void check_thread_handler() {
  check(memspan_set_thread_end_handler(throw_sentence) == nullptr, "a handler at the start");
  std::string told;
  try {
    shmem_sync(reinterpret_cast<shmem_team_t>(99L));
  } catch (const std::string& sentence) {
    told = sentence;
  }
  check(told.rfind("shmem_team_sync of the thread: team is", 0) == 0, told.c_str());
  int reason = -1;
  std::thread other(
      [&] { reason = ended([] { shmem_sync(reinterpret_cast<shmem_team_t>(99L)); }).reason; });
  other.join();
  check(reason == MEMSPAN_END_MISTAKE, "another thread");
  check(memspan_set_thread_end_handler(nullptr) == throw_sentence, "the handler before");
}

// A wait asks the thread's interrupt handler, and ends when that says so.
void check_interrupts(const long* word) {
  check(memspan_set_thread_interrupt_handler([] { return 1; }) == nullptr, "a handler before");
  const Ended end =
      ended([&] { shmem_long_wait_until(const_cast<long*>(word), SHMEM_CMP_EQ, 77); });
  check(end.reason == MEMSPAN_END_SYSTEM, "the reason of an interruption");
  check(end.text.find("interrupted") != std::string::npos, end.text.c_str());
  check(memspan_set_thread_interrupt_handler(nullptr) != nullptr, "the handler that was set");
}

}  // namespace

int main() {
  memspan_set_end_handler(throw_it);
  check(memspan_heap_base() == nullptr, "a heap before the start");
  const Ended early = ended([] { shmem_barrier_all(); });
  check(early.reason == MEMSPAN_END_MISTAKE, "the reason before the start");
  check(early.text.find("before shmem_init") != std::string::npos, early.text.c_str());

  shmem_init();
  auto* const words = static_cast<long*>(shmem_calloc(4, sizeof(long)));
  check(memspan_heap_base() != nullptr && memspan_heap_base() <= words, "the heap's beginning");
  long value = 3;
  const Ended nobody = ended([&] { shmem_long_put(words, &value, 1, 7); });
  check(nobody.text ==
            "shmem_long_put: pe is 7, allowed are 0 to 0 [memspan-explain pe-out-of-range]",
        nobody.text.c_str());
  check(memspan_last_error() == nobody.text, "what is kept");
  check(ended([&] { shmem_long_put(&value, words, 1, 0); }).reason == MEMSPAN_END_MISTAKE,
        "a variable of the stack");
  check(
      ended([&] { shmem_sync(reinterpret_cast<shmem_team_t>(99L)); }).reason == MEMSPAN_END_MISTAKE,
      "a team that is none");
  check_thread_handler();
  shmem_long_put(words, &value, 1, 0);
  check(shmem_long_g(words, 0) == 3, "the job after that");
  check(memspan_keep_failure("binding", -7, "a sentence") == -7, "the code that is kept");
  check(memspan_last_error() == std::string("binding: a sentence"), "the sentence that is kept");
  check_interrupts(words);
  check(memspan_keep_pages(&value, sizeof value) < 0, "keeping what is not in the heap");
  check(memspan_keep_pages(words, 2 * sizeof(long)) == 0, "keeping pages");
  shmem_finalize();
  check(words[0] == 3, "pages that stay when the job ends");
  words[1] = 4;
  check(memspan_keep_pages(words, sizeof(long)) < 0, "keeping pages in no job");
  memspan_set_end_handler(nullptr);
  return 0;
}
