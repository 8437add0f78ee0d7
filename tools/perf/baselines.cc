// SPDX-License-Identifier: Apache-2.0
#include "perf/baselines.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

#include "core/cpu.h"
#include "core/fd.h"
#include "perf/clock.h"
#include "perf/samples.h"

namespace memspan::perf {
namespace {

constexpr int kSamples = 101;

// The calling thread stays on its core, and threads that it makes begin there, until the end.
class OneCore : NotCopyable {
 public:
  OneCore() {
    ::pthread_getaffinity_np(::pthread_self(), sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(std::max(::sched_getcpu(), 0)), &one);
    ::pthread_setaffinity_np(::pthread_self(), sizeof one, &one);
  }
  ~OneCore() { ::pthread_setaffinity_np(::pthread_self(), sizeof before_, &before_); }

 private:
  cpu_set_t before_ = {};
};

// The median of samples, each of which is what `sample` says.
double settled(const std::function<double()>& sample) {
  std::vector<double> samples;
  samples.reserve(kSamples);
  for (int i = 0; i < kSamples; ++i) samples.push_back(sample());
  return median(std::move(samples));
}

// Two threads of one core, each of which yields until the other has written.
double yield_time() {
  constexpr int kTurns = 20;
  const OneCore here;
  std::atomic<int> turn{0};
  std::thread second([&] {
    for (int i = 1; i < 2 * kTurns * kSamples; i += 2) {
      // Pairs with the other thread's store below.
      while (turn.load(std::memory_order_acquire) != i) ::sched_yield();
      turn.store(i + 1, std::memory_order_release);
    }
  });
  int next = 0;
  const double ns = settled([&] {
    const double since = now_ns();
    for (int i = 0; i < kTurns; ++i, next += 2) {
      turn.store(next + 1, std::memory_order_release);
      while (turn.load(std::memory_order_acquire) != next + 2) ::sched_yield();
    }
    return (now_ns() - since) / (2.0 * kTurns);
  });
  second.join();
  return ns;
}

double copy_time(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr double kEnoughNs = 3000;
  constexpr double kMostNs = 50e6;
  std::size_t count = 1;
  const auto sample = [&] {
    const double since = now_ns();
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(to, from, bytes);
      asm volatile("" : : "r"(to) : "memory");  // the copy is made
    }
    return now_ns() - since;
  };
  static_cast<void>(sample());  // the first touches the memory
  double ns = sample();
  while (ns < kEnoughNs) {
    count *= 2;
    ns = sample();
  }
  if (ns * kSamples > kMostNs)
    return median({sample(), sample(), sample(), sample(), sample()}) / static_cast<double>(count);
  return settled(sample) / static_cast<double>(count);
}

// Two connected sockets of the loopback.
bool connect_pair(Fd& one, Fd& other) {
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const place = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener.get(), place, size) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), place, &size) != 0)
    return false;
  one = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(one.get(), place, size) != 0) return false;
  other = Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const int yes = 1;
  for (const Fd* end : {&one, &other})
    ::setsockopt(end->get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return other.is_valid();
}

double loopback_time() {
  constexpr int kTurns = 10;
  Fd one;
  Fd other;
  if (!connect_pair(one, other)) return 0;
  std::thread echo([&] {
    char bytes[8];
    while (::recv(other.get(), bytes, sizeof bytes, MSG_WAITALL) == sizeof bytes &&
           ::send(other.get(), bytes, sizeof bytes, MSG_NOSIGNAL) == sizeof bytes) {
    }
    other = Fd();
  });
  char bytes[8] = {};
  const double ns = settled([&] {
    const double since = now_ns();
    for (int i = 0; i < kTurns; ++i)
      if (::send(one.get(), bytes, sizeof bytes, MSG_NOSIGNAL) != sizeof bytes ||
          ::recv(one.get(), bytes, sizeof bytes, MSG_WAITALL) != sizeof bytes)
        break;
    return (now_ns() - since) / (2.0 * kTurns);
  });
  one = Fd();
  echo.join();
  return ns;
}

}  // namespace

double measure_cache_line(std::atomic<std::uint64_t>& line, Turn turn) {
  constexpr std::uint64_t kTurns = 100;
  // If both share a core after all, the other thread has to run.
  const auto await = [&](std::uint64_t value) {
    constexpr int kSpins = 5000;
    for (int i = 0; line.load(std::memory_order_acquire) != value; ++i)
      i < kSpins ? cpu_pause() : static_cast<void>(::sched_yield());
  };
  if (turn == Turn::kSecond) {
    for (std::uint64_t i = 1; i < 2 * kTurns * kSamples; i += 2) {
      await(i);
      line.store(i + 1, std::memory_order_release);  // pairs with await() of the other
    }
    return 0;
  }
  std::uint64_t next = 0;
  return settled([&] {
    const double since = now_ns();
    for (std::uint64_t i = 0; i < kTurns; ++i, next += 2) {
      line.store(next + 1, std::memory_order_release);
      await(next + 2);
    }
    return (now_ns() - since) / (2.0 * kTurns);
  });
}

Baselines measure_baselines(const std::vector<std::size_t>& sizes, std::byte* symmetric) {
  Baselines baselines;
  baselines.clock = settled([] {
    constexpr int kReads = 100;
    const double since = now_ns();
    for (int i = 1; i < kReads; ++i) static_cast<void>(now_ns());
    return (now_ns() - since) / kReads;
  });
  baselines.yield = yield_time();
  baselines.loopback = loopback_time();
  if (sizes.empty()) return baselines;
  const std::vector<std::byte> from(sizes.back(), std::byte{1});
  for (const std::size_t bytes : sizes)
    baselines.copies.push_back({bytes, copy_time(symmetric, from.data(), bytes)});
  return baselines;
}

}  // namespace memspan::perf
