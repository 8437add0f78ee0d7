// SPDX-License-Identifier: Apache-2.0
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <numeric>
#include <vector>

#include "job.h"

namespace memspan::multi {
namespace {

TEST(RmaTest, TypedPutAndGetOfEveryLength) {
  Symmetric<double> place(70'000);
  for (std::size_t count :
       {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{9}, std::size_t{70'000}}) {
    std::vector<double> sent(count);
    std::iota(sent.begin(), sent.end(), me() * 1e6);
    shmem_double_put(place.get(), sent.data(), count, next());
    shmem_barrier_all();
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_EQ(place[i], previous() * 1e6 + static_cast<double>(i));
    std::vector<double> got(count);
    shmem_double_get(got.data(), place.get(), count, next());
    EXPECT_EQ(got, sent);
    shmem_barrier_all();
  }
}

TEST(RmaTest, EverySingleElementType) {
  Symmetric<long double> place(4);
#define CHECK_TYPE(TYPE, NAME)                                                       \
  do {                                                                               \
    auto* word = reinterpret_cast<TYPE*>(place.get());                               \
    shmem_##NAME##_p(word, static_cast<TYPE>(me() + 3), next());                     \
    shmem_barrier_all();                                                             \
    EXPECT_EQ(*word, static_cast<TYPE>(previous() + 3)) << #NAME;                    \
    EXPECT_EQ(shmem_##NAME##_g(word, next()), static_cast<TYPE>(me() + 3)) << #NAME; \
    shmem_barrier_all();                                                             \
  } while (false)
  CHECK_TYPE(float, float);
  CHECK_TYPE(double, double);
  CHECK_TYPE(long double, longdouble);
  CHECK_TYPE(char, char);
  CHECK_TYPE(signed char, schar);
  CHECK_TYPE(short, short);
  CHECK_TYPE(int, int);
  CHECK_TYPE(long, long);
  CHECK_TYPE(long long, longlong);
  CHECK_TYPE(unsigned char, uchar);
  CHECK_TYPE(unsigned short, ushort);
  CHECK_TYPE(unsigned int, uint);
  CHECK_TYPE(unsigned long, ulong);
  CHECK_TYPE(unsigned long long, ulonglong);
  CHECK_TYPE(std::int8_t, int8);
  CHECK_TYPE(std::uint64_t, uint64);
  CHECK_TYPE(std::size_t, size);
  CHECK_TYPE(std::ptrdiff_t, ptrdiff);
#undef CHECK_TYPE
}

TEST(RmaTest, SizedAndUntypedForms) {
  Symmetric<char> place(4096);
  std::vector<char> sent(4096);
  for (std::size_t i = 0; i < sent.size(); ++i)
    sent[i] = static_cast<char>(i * 13 + static_cast<std::size_t>(me()));
  auto check = [&](std::size_t bytes) {
    shmem_barrier_all();
    for (std::size_t i = 0; i < bytes; ++i)
      ASSERT_EQ(place[i], static_cast<char>(i * 13 + static_cast<std::size_t>(previous()))) << i;
    shmem_barrier_all();
    std::memset(place.get(), 0, 4096);
    shmem_barrier_all();
  };
  shmem_put8(place.get(), sent.data(), 33, next());
  check(33);
  shmem_put16(place.get(), sent.data(), 33, next());
  check(66);
  shmem_put32(place.get(), sent.data(), 33, next());
  check(132);
  shmem_put64(place.get(), sent.data(), 33, next());
  check(264);
  shmem_put128(place.get(), sent.data(), 33, next());
  check(528);
  shmem_putmem(place.get(), sent.data(), 4095, next());
  check(4095);
  shmem_putmem_nbi(place.get(), sent.data(), 1001, next());
  shmem_quiet();
  check(1001);
  shmem_putmem(place.get(), sent.data(), 4096, next());
  shmem_barrier_all();
  std::vector<char> got(4096);
  shmem_getmem_nbi(got.data(), place.get(), 4096, next());
  shmem_quiet();
  EXPECT_EQ(got, sent);
}

TEST(RmaTest, StridedFormsTouchOnlyTheirElements) {
  Symmetric<int> place(100);
  std::fill_n(place.get(), 100, -1);
  shmem_barrier_all();
  int source[50];
  std::iota(source, source + 50, me() * 100);
  shmem_int_iput(place.get(), source, 4, 2, 20, next());
  shmem_barrier_all();
  for (int i = 0; i < 80; ++i)
    EXPECT_EQ(place[static_cast<std::size_t>(i)], i % 4 == 0 ? previous() * 100 + i / 4 * 2 : -1)
        << i;
  int got[20];
  shmem_int_iget(got, place.get(), 1, 4, 20, next());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(got[i], me() * 100 + 2 * i);
  shmem_barrier_all();
  shmem_int_ibput(place.get(), source, 5, 3, 3, 4, next());
  shmem_barrier_all();
  for (int block = 0; block < 4; ++block)
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(place[static_cast<std::size_t>(5 * block + i)], previous() * 100 + 3 * block + i);
}

TEST(RmaTest, ToItselfToo) {
  Symmetric<long> word(2);
  shmem_long_p(word.get(), 7, me());
  EXPECT_EQ(shmem_long_g(word.get(), me()), 7);
  shmem_long_put(word.get() + 1, word.get(), 1, me());
  shmem_quiet();
  EXPECT_EQ(word[1], 7);
}

TEST(RmaTest, ContextsReachTheSameMemory) {
  Symmetric<long> word(2);
  shmem_ctx_t context = SHMEM_CTX_INVALID;
  ASSERT_EQ(shmem_ctx_create(SHMEM_CTX_PRIVATE, &context), 0);
  shmem_ctx_long_p(context, word.get(), me() + 1, next());
  shmem_ctx_long_p(SHMEM_CTX_DEFAULT, word.get() + 1, me() + 2, next());
  shmem_ctx_fence(context);
  shmem_ctx_quiet(context);
  shmem_barrier_all();
  EXPECT_EQ(word[0], previous() + 1);
  EXPECT_EQ(word[1], previous() + 2);
  EXPECT_EQ(shmem_ctx_long_g(context, word.get(), next()), me() + 1);
  shmem_ctx_destroy(context);
  shmem_barrier_all();
}

// Wherever the peer is: what a context put is there after its own quiet, and after no other's.
TEST(RmaTest, TheQuietOfAContextCompletesItsPuts) {
  constexpr std::size_t kCount = 5000;
  Symmetric<long> data(kCount);
  shmem_ctx_t contexts[2];
  for (shmem_ctx_t& context : contexts) ASSERT_EQ(shmem_ctx_create(0, &context), 0);
  std::vector<long> sent(kCount);
  std::vector<long> got(kCount);
  for (long round = 0; round < 20; ++round) {
    shmem_ctx_t context = contexts[round % 2];
    std::fill(sent.begin(), sent.end(), 1000 * round + me());
    shmem_ctx_long_put_nbi(context, data.get(), sent.data(), kCount, next());
    shmem_ctx_quiet(context);
    shmem_ctx_long_get(contexts[1 - round % 2], got.data(), data.get(), kCount, next());
    ASSERT_EQ(got, sent);
    EXPECT_EQ(shmem_ctx_long_atomic_fetch_add(context, data.get(), 1, next()), sent[0]);
  }
  for (shmem_ctx_t context : contexts) shmem_ctx_destroy(context);
  shmem_barrier_all();
}

#ifndef MEMSPAN_TEST_IS_SANITIZED
// Counts the calling thread's system calls while it exists, by the kernel's dispatch of them to a
// signal.
class SystemCallCounter {
 public:
  SystemCallCounter() {
    struct sigaction action = {};
    action.sa_handler = [](int) {
      selector_ = kAllow;
      count_ = count_ + 1;
    };
    sigaction(SIGSYS, &action, &before_);
    is_supported_ = prctl(kSetDispatch, kOn, 0, 0, &selector_) == 0;
    count_ = 0;
    selector_ = is_supported_ ? kBlock : kAllow;
  }
  ~SystemCallCounter() {
    selector_ = kAllow;
    if (is_supported_) prctl(kSetDispatch, 0, 0, 0, 0);
    sigaction(SIGSYS, &before_, nullptr);
  }
  bool is_supported() const { return is_supported_; }
  static int count() { return count_; }

 private:
  enum { kSetDispatch = 59, kOn = 1 };  // PR_SET_SYSCALL_USER_DISPATCH, of Linux 5.11
  static constexpr char kAllow = 0, kBlock = 1;
  static inline volatile char selector_ = kAllow;
  static inline volatile int count_ = 0;
  struct sigaction before_ = {};
  bool is_supported_ = false;
};

// As the README says of a host.
TEST(RmaTest, PutsGetsAndAtomicsMakeNoSystemCall) {
  Symmetric<long> place(1000);
  std::vector<long> mine(1000, me());
  const int peer = next();
  const bool is_near = shmem_ptr(place.get(), peer) != nullptr;
  auto moves = [&] {
    shmem_long_put(place.get(), mine.data(), mine.size(), peer);
    shmem_long_p(place.get(), 1, peer);
    shmem_quiet();
    shmem_long_get(mine.data(), place.get(), mine.size(), peer);
    shmem_long_atomic_add(place.get(), 1, peer);
  };
  moves();
  int count = 0;
  bool is_supported = false;
  if (is_near) {  // what is counted is not made: connections would break
    const SystemCallCounter counter;
    is_supported = counter.is_supported();
    moves();
    count = SystemCallCounter::count();
  }
  shmem_barrier_all();
  if (!is_near) GTEST_SKIP() << "does not apply: the next PE is on another host";
  if (!is_supported) GTEST_SKIP() << "does not apply: this kernel does not report system calls";
  EXPECT_EQ(count, 0);
  {
    const SystemCallCounter counter;
    static_cast<void>(syscall(SYS_getppid));
    EXPECT_EQ(SystemCallCounter::count(), 1) << "it counts";
  }
}
#endif

}  // namespace
}  // namespace memspan::multi
