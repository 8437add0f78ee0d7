// SPDX-License-Identifier: Apache-2.0
// Litmus tests of the memory model through the public interface. Each is a stream: a writer and a
// reader run free, and what the reader saw must fit some order that the model allows.
//
// MEMSPAN_LITMUS_ROUNDS sets how many rounds each has (a million).
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "job.h"

namespace memspan::multi {
namespace {

constexpr int kWriter = 0;
constexpr int kReader = 1;

std::uint64_t rounds() {
  const char* text = std::getenv("MEMSPAN_LITMUS_ROUNDS");
  const std::uint64_t wanted = text == nullptr ? 1'000'000 : std::strtoull(text, nullptr, 10);
  // A way that is not direct takes microseconds a step.
  static std::uint64_t probe;
  return shmem_ptr(&probe, next()) != nullptr ? wanted : std::max<std::uint64_t>(wanted / 100, 1);
}

// Words a cache line apart, so that each arrives on its own.
struct alignas(128) Word {
  std::uint64_t value;
};

// Hears of the writer's rounds from `flag`, and finds on `home` data that are not older.
void read_behind(std::uint64_t* flag, const std::uint64_t* data, int home, std::uint64_t last) {
  for (std::uint64_t seen = 0; seen < last;) {
    shmem_uint64_wait_until(flag, SHMEM_CMP_GT, seen);
    seen = shmem_uint64_atomic_fetch(flag, me());
    ASSERT_GE(shmem_uint64_g(data, home), seen);
  }
}

class LitmusTest : public testing::Test {
 protected:
  void SetUp() override {
    if (peers() < 2) GTEST_SKIP() << "does not apply: one PE";
  }
};

// Message passing: data, fence, flag. Who sees the flag sees the data.
TEST_F(LitmusTest, MessagePassing) {
  static Word data;
  static Word flag;
  const std::uint64_t last = rounds();
  if (me() == kWriter) {
    for (std::uint64_t i = 1; i <= last; ++i) {
      shmem_uint64_p(&data.value, i, kReader);
      shmem_fence();
      shmem_uint64_atomic_set(&flag.value, i, kReader);
    }
  } else if (me() == kReader) {
    read_behind(&flag.value, &data.value, me(), last);
  }
  shmem_barrier_all();
  data.value = flag.value = 0;
}

// The same when the second is so large that it may go another way than through the caches.
TEST_F(LitmusTest, AFenceHoldsForLargePuts) {
  constexpr std::size_t kWords = std::size_t{3} << 20;
  constexpr std::uint64_t kTimes = 40;
  static Word data;
  Symmetric<std::uint64_t> large(kWords);
  if (me() == kWriter) {
    std::vector<std::uint64_t> sent(kWords);
    for (std::uint64_t i = 1; i <= kTimes; ++i) {
      std::fill(sent.begin(), sent.end(), i);
      shmem_uint64_p(&data.value, i, kReader);
      shmem_fence();
      shmem_uint64_put(large.get(), sent.data(), kWords, kReader);
    }
  } else if (me() == kReader) {
    // A word in the middle: the copy's last ones may be stored as small ones are.
    read_behind(&large[kWords / 2], &data.value, me(), kTimes);
  }
  shmem_barrier_all();
  data.value = 0;
}

// Put with signal needs no fence; the data are many words.
TEST_F(LitmusTest, PutWithSignal) {
  static std::uint64_t data[24];
  static Word signal;
  const std::uint64_t last = rounds() / 4;
  if (me() == kWriter) {
    std::uint64_t sent[24];
    for (std::uint64_t i = 1; i <= last; ++i) {
      std::fill(std::begin(sent), std::end(sent), i);
      shmem_uint64_put_signal(data, sent, 24, &signal.value, i, SHMEM_SIGNAL_SET, kReader);
    }
  } else if (me() == kReader) {
    for (std::uint64_t seen = 0; seen < last;) {
      seen = shmem_signal_wait_until(&signal.value, SHMEM_CMP_GT, seen);
      std::uint64_t least = ~std::uint64_t{0};
      for (const std::uint64_t& word : data)
        least = std::min(least, __atomic_load_n(&word, __ATOMIC_RELAXED));
      ASSERT_GE(least, seen);
    }
  }
  shmem_barrier_all();
  signal.value = 0;
  std::fill(std::begin(data), std::end(data), 0);
}

// Store buffering: each puts its own word, quiet, and gets the other's. One of two that overlap
// must see the other. A reading of v means that the other's v + 1 came later, so that what the
// other read after writing v + 1 has this one's round.
TEST_F(LitmusTest, StoreBuffering) {
  static Word words[2];
  constexpr int kHome = 0;
  const std::uint64_t last = rounds();
  Symmetric<std::uint64_t> seen(last + 2);
  if (me() < 2) {
    for (std::uint64_t i = 1; i <= last; ++i) {
      shmem_uint64_p(&words[me()].value, i, kHome);
      shmem_quiet();
      seen[i] = shmem_uint64_g(&words[1 - me()].value, kHome);
    }
  }
  shmem_barrier_all();
  if (me() == 0) {
    std::vector<std::uint64_t> other(last + 2);
    shmem_uint64_get(other.data(), seen.get(), last + 2, 1);
    for (std::uint64_t i = 1; i <= last; ++i)
      if (seen[i] < last) ASSERT_GE(other[seen[i] + 1], i);
  }
  shmem_barrier_all();
  words[0].value = words[1].value = 0;
}

// Quiet makes visible to all, not only to the PE that was written to: a third that hears of it from
// the writer's word on another PE finds the data where they were put.
TEST_F(LitmusTest, QuietIsForAll) {
  static Word data;
  static Word flag;
  const int third = peers() - 1;
  const std::uint64_t last = rounds() / 2;
  if (me() == kWriter) {
    for (std::uint64_t i = 1; i <= last; ++i) {
      shmem_uint64_p(&data.value, i, kReader);
      shmem_quiet();
      shmem_uint64_atomic_set(&flag.value, i, third);
    }
  } else if (me() == third) {
    read_behind(&flag.value, &data.value, kReader, last);
  }
  shmem_barrier_all();
  data.value = flag.value = 0;
}

}  // namespace
}  // namespace memspan::multi
