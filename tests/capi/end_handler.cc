// SPDX-License-Identifier: Apache-2.0
// What bindings of other languages use: calls that would end the process throw, and the job goes
// on.
#include <memspan/memspan.h>
#include <shmem.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

struct Ended {
  int reason;
  std::string text;
};

void throw_it(const char* call, int reason, const char* message) {
  throw Ended{reason, std::string(call) + ": " + message};
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
  check(nobody.text == "shmem_long_put: pe is 7, allowed are 0 to 0", nobody.text.c_str());
  check(memspan_last_error() == nobody.text, "what is kept");
  check(ended([&] { shmem_long_put(&value, words, 1, 0); }).reason == MEMSPAN_END_MISTAKE,
        "a variable of the stack");
  check(
      ended([&] { shmem_sync(reinterpret_cast<shmem_team_t>(99L)); }).reason == MEMSPAN_END_MISTAKE,
      "a team that is none");
  shmem_long_put(words, &value, 1, 0);
  check(shmem_long_g(words, 0) == 3, "the job after that");
  check(memspan_keep_failure("binding", -7, "a sentence") == -7, "the code that is kept");
  check(memspan_last_error() == std::string("binding: a sentence"), "the sentence that is kept");
  shmem_free(words);
  shmem_finalize();
  memspan_set_end_handler(nullptr);
  return 0;
}
