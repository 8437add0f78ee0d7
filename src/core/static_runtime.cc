// SPDX-License-Identifier: Apache-2.0
// Functions of new glibc versions that the static libstdc++ calls. The linker finds these
// definitions first, so the binaries also run with older versions.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/random.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

#define MEMSPAN_OWN extern "C" __attribute__((visibility("hidden")))

// glibc 2.36. std::random_device calls it; std::string links that in, used or not.
MEMSPAN_OWN std::uint32_t arc4random() noexcept {
  std::uint32_t number = 0;
  while (getrandom(&number, sizeof number, 0) != sizeof number)
    if (errno != EINTR) std::abort();
  return number;
}

// glibc 2.32. Zero: reference counts always need atomic operations.
MEMSPAN_OWN char __libc_single_threaded;
char __libc_single_threaded = 0;

// glibc 2.30. Older versions wait by the wall clock only. The wait is then cut into pieces, so that
// a clock that is set back prolongs it by one piece at most.
MEMSPAN_OWN int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                       clockid_t clock, const timespec* until) {
  static const auto of_glibc =
      reinterpret_cast<decltype(&pthread_cond_clockwait)>(dlsym(RTLD_DEFAULT, __func__));
  if (of_glibc != nullptr) return of_glibc(condition, mutex, clock, until);
  constexpr std::int64_t kSecond = 1'000'000'000, kPiece = kSecond / 10;
  for (;;) {
    timespec now = {}, wall = {};
    clock_gettime(clock, &now);
    const std::int64_t left =
        (until->tv_sec - now.tv_sec) * kSecond + (until->tv_nsec - now.tv_nsec);
    if (left <= 0) return ETIMEDOUT;
    clock_gettime(CLOCK_REALTIME, &wall);
    const std::int64_t end = wall.tv_nsec + std::min(left, kPiece);
    wall.tv_sec += end / kSecond;
    wall.tv_nsec = end % kSecond;
    if (const int code = pthread_cond_timedwait(condition, mutex, &wall); code != ETIMEDOUT)
      return code;
  }
}
