// SPDX-License-Identifier: Apache-2.0
// What these programs share and what is not MemFabric's own: the command line, processes that a
// program starts of itself, numbers that every rank can make again. Header only, C++17.
#pragma once

#include <arpa/inet.h>
#include <signal.h>
#include <smem/host/smem.h>
#include <smem/host/smem_shm.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace example {

constexpr int kFailed = 1;    // exit codes: it ran, and something was wrong,
constexpr int kWrongUse = 2;  // or it did not run, for the command line is wrong

// The beginning of every line on stderr; main() sets it.
inline std::string program = "example";

[[noreturn]] inline void leave(int code, const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", program.c_str(), why.c_str());
  std::exit(code);
}

// ---- calls of the library ---------------------------------------------------------------------

// The library has said why on stderr; smem_get_last_err_msg() has the sentence for programs that
// have switched its log off.
[[noreturn]] inline void report(const char* call, int32_t code) {
  leave(kFailed, std::string(call) + " gave " + std::to_string(code) + " (" +
                     smem_get_error_string(code) + ")");
}

inline void must(const char* call, int32_t code) {
  if (code != SMEM_OK) report(call, code);
}

template <typename T>
T* must(const char* call, T* made) {
  if (made == nullptr) report(call, smem_get_last_err_code());
  return made;
}

inline void expect(bool is_right, const std::string& what) {
  if (!is_right) leave(kFailed, "wrong: " + what);
}

// ---- the command line -------------------------------------------------------------------------

inline std::uint64_t number(const std::string& name, const char* text, std::uint64_t least,
                            std::uint64_t most) {
  char* end = nullptr;
  errno = 0;
  const unsigned long long value = std::strtoull(text, &end, 10);
  const bool is_number = text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
  if (!is_number || value < least || value > most)
    leave(kWrongUse, name + " is \"" + text + "\", allowed are " + std::to_string(least) + " to " +
                         std::to_string(most));
  return value;
}

// A store's URL that is free now: for "auto", a port of this host, kept from others until the
// object goes. Nobody listens at it; the library may.
class StoreUrl {
 public:
  explicit StoreUrl(std::string text) : text_(std::move(text)) {
    if (text_ != "auto") return;
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    const int on = 1;
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ < 0 || ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        ::bind(socket_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length) != 0)
      leave(kFailed, std::string("a port of this host: ") + std::strerror(errno));
    text_ = "tcp://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~StoreUrl() {
    if (socket_ >= 0) ::close(socket_);
  }
  StoreUrl(const StoreUrl&) = delete;
  StoreUrl& operator=(const StoreUrl&) = delete;

  const char* c_str() const { return text_.c_str(); }

 private:
  std::string text_;
  int socket_ = -1;
};

// ---- processes --------------------------------------------------------------------------------

// Runs member(first) to member(first + count - 1), each in a process of its own, and returns 0 when
// all did; else, at once, the exit code of the first that did not, and the others are ended. Nobody
// lives longer than `seconds` or than this process. Call it before the library, whose connections
// and threads a child does not have. `may_die`: the number of one that may be killed, -1 for none.
inline int run_ranks(int first, int count, int seconds, const std::function<int(int)>& member,
                     int may_die = -1) {
  using Clock = std::chrono::steady_clock;
  sigset_t child_ended, before;
  sigemptyset(&child_ended);
  sigaddset(&child_ended, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child_ended, &before);
  std::fflush(nullptr);  // or each child would print it again
  const pid_t parent = ::getpid();
  std::vector<pid_t> children;
  for (int rank = first; rank < first + count; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(kFailed);
      sigprocmask(SIG_SETMASK, &before, nullptr);
      std::exit(member(rank));
    }
    if (child < 0) std::perror("fork");
    children.push_back(child);
  }

  const auto end = Clock::now() + std::chrono::seconds(seconds);
  int code = 0, running = 0;
  for (const pid_t child : children) child > 0 ? ++running : code = kFailed;
  while (running > 0 && code == 0) {
    for (std::size_t i = 0; i < children.size(); ++i) {
      int status = 0;
      if (children[i] <= 0 || ::waitpid(children[i], &status, WNOHANG) != children[i]) continue;
      children[i] = 0;
      --running;
      const bool was_killed = WIFSIGNALED(status);
      if (was_killed && first + static_cast<int>(i) == may_die) continue;
      if (was_killed)
        std::fprintf(stderr, "%s: rank %zu was ended by signal %d\n", program.c_str(), first + i,
                     WTERMSIG(status));
      if (code == 0) code = was_killed ? kFailed : WEXITSTATUS(status);
    }
    if (running == 0 || code != 0) break;
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(end - Clock::now());
    if (left.count() <= 0) {
      std::fprintf(stderr, "%s: no end within %d s\n", program.c_str(), seconds);
      code = kFailed;
      break;
    }
    timespec limit = {};
    limit.tv_sec = left.count() / 1'000'000'000;
    limit.tv_nsec = left.count() % 1'000'000'000;
    sigtimedwait(&child_ended, nullptr, &limit);
  }
  for (const pid_t child : children)
    if (child > 0 && (::kill(child, SIGKILL), true)) ::waitpid(child, nullptr, 0);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return code;
}

// main() of a program whose ranks meet at a store: [RANKS [storeUrl (auto)]].
inline int run_program(const char* name, int argc, char** argv, int usual_ranks,
                       int (*rank)(const char* store, std::uint32_t ranks, std::uint32_t rank)) {
  program = name;
  if (argc > 3)
    leave(kWrongUse,
          "usage: " + program + " [RANKS (" + std::to_string(usual_ranks) + ") [storeUrl (auto)]]");
  const int ranks = argc > 1 ? static_cast<int>(number("RANKS", argv[1], 1, 64)) : usual_ranks;
  const StoreUrl store(argc > 2 ? argv[2] : "auto");
  return run_ranks(0, ranks, 60, [&](int of) {
    return rank(store.c_str(), static_cast<std::uint32_t>(ranks), static_cast<std::uint32_t>(of));
  });
}

// All ranks' meeting place: a space of Share Memory without memory, over the same store. Its end is
// a meeting, too, the last thing that needs the store: who hosts it may be gone after that.
class Meeting {
 public:
  Meeting(const char* store_url, std::uint32_t world, std::uint32_t rank) {
    smem_shm_config_t config;
    must("smem_shm_config_init", smem_shm_config_init(&config));
    must("smem_shm_init", smem_shm_init(store_url, world, rank, 0, &config));
    void* unused = nullptr;
    space_ =
        must("smem_shm_create", smem_shm_create(63, world, rank, 0, SMEMS_DATA_OP_MTE, 0, &unused));
    world_ = world;
  }
  ~Meeting() {
    smem_set_log_level(4);  // the host may be gone before the others hear that all have come
    smem_shm_control_barrier(space_);
    smem_shm_destroy(space_, 0);
    smem_shm_uninit(0);
  }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  // Until all are here.
  void wait() { must("smem_shm_control_barrier", smem_shm_control_barrier(space_)); }

  // What each rank gave, in their order.
  template <typename T>
  std::vector<T> gather(const T& mine) {
    std::vector<T> all(world_);
    must("smem_shm_control_allgather",
         smem_shm_control_allgather(space_, reinterpret_cast<const char*>(&mine), sizeof mine,
                                    reinterpret_cast<char*>(all.data()),
                                    static_cast<std::uint32_t>(sizeof mine * all.size())));
    return all;
  }

 private:
  smem_shm_t space_;
  std::uint32_t world_;
};

// ---- time and data ----------------------------------------------------------------------------

inline double seconds_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

// The i-th of a fixed sequence of random numbers (SplitMix64).
inline std::uint64_t random_number(std::uint64_t i) {
  std::uint64_t z = (i + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

// Bytes that `seed` alone decides, and how many are not them.
inline void fill(void* where, std::size_t bytes, std::uint64_t seed) {
  auto* const to = static_cast<char*>(where);
  for (std::size_t at = 0; at < bytes; at += 8) {
    const std::uint64_t word = random_number(seed * 0x2545f4914f6cdd1dU + at);
    std::memcpy(to + at, &word, bytes - at < 8 ? bytes - at : 8);
  }
}

inline std::size_t wrong_bytes(const void* where, std::size_t bytes, std::uint64_t seed) {
  const auto* const from = static_cast<const char*>(where);
  std::size_t wrong = 0;
  for (std::size_t at = 0; at < bytes; at += 8) {
    const std::uint64_t word = random_number(seed * 0x2545f4914f6cdd1dU + at);
    char right[8];
    std::memcpy(right, &word, 8);
    for (std::size_t i = 0; i < 8 && at + i < bytes; ++i) wrong += from[at + i] != right[i];
  }
  return wrong;
}

}  // namespace example
