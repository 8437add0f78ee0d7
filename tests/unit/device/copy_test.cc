// SPDX-License-Identifier: Apache-2.0
#include "device/host/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <thread>

#include "core/mutex.h"

namespace memspan {
namespace {

// No two places of a few hundred apart have the same neighbourhood.
std::string bytes_for(std::size_t count) {
  std::string bytes(count, '\0');
  std::uint32_t state = 1;
  for (char& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

// Copies `bytes` from and to places that lie so far from a multiple of 64.
void expect_copied(std::size_t bytes, std::size_t from_shift, std::size_t to_shift) {
  constexpr std::size_t kRoom = 192;
  const std::string source = bytes_for(bytes + kRoom);
  const std::string before(bytes + kRoom, '.');
  std::string target = before;
  const auto place = [](std::string& text, std::size_t shift) {
    const std::size_t to_line = 64 - reinterpret_cast<std::uintptr_t>(text.data()) % 64;
    return to_line + shift;
  };
  const std::size_t at = place(target, to_shift);
  copy_bytes(target.data() + at, source.data() + from_shift, bytes);
  EXPECT_TRUE(target.compare(at, bytes, source, from_shift, bytes) == 0)
      << bytes << " bytes from +" << from_shift << " to +" << to_shift;
  EXPECT_TRUE(target.compare(0, at, before, 0, at) == 0) << "before " << bytes;
  EXPECT_TRUE(target.compare(at + bytes, std::string::npos, before, at + bytes) == 0)
      << "after " << bytes;
}

TEST(CopyTest, CopiesEverySmallSizeAndNothingAround) {
  for (std::size_t bytes = 0; bytes <= kLargeCopyBytes + 300; ++bytes) expect_copied(bytes, 1, 3);
}

TEST(CopyTest, CopiesFromAnyPlaceToAnyPlace) {
  for (std::size_t from_shift : {0, 1, 31, 32, 63})
    for (std::size_t to_shift = 0; to_shift < 64; ++to_shift)
      for (std::size_t bytes : {kLargeCopyBytes, kLargeCopyBytes + 129, std::size_t{4096}})
        expect_copied(bytes, from_shift, to_shift);
}

TEST(CopyTest, CopiesLargeSizesByEachWayOfATrial) {
  constexpr std::size_t kMiB = 1 << 20;
  for (std::size_t bytes : {kMeasuredCopyBytes - 1, kMeasuredCopyBytes, kMiB + 63, 4 * kMiB + 255})
    for (unsigned round = 0; round < CopyChoice::kTries * CopyChoice::kMostWays; ++round)
      expect_copied(bytes, 5, round % 2 == 0 ? 0 : 17);
}

TEST(CopyTest, EveryWayCopiesTheBytesAndNothingAround) {
  for (const CopyWay& way : copy_ways())
    for (std::size_t bytes = kLargeCopyBytes; bytes <= 3 * 4096; bytes += 113) {
      const std::string source = bytes_for(bytes + 3);
      const std::string before(bytes + 10, '.');
      std::string target = before;
      order_copies_past_caches();
      way.copy(reinterpret_cast<std::byte*>(target.data()) + 5,
               reinterpret_cast<const std::byte*>(source.data()) + 3, bytes);
      order_copies_past_caches();
      EXPECT_TRUE(target.compare(5, bytes, source, 3, bytes) == 0) << way.name << ", " << bytes;
      EXPECT_EQ(target.substr(0, 5) + target.substr(bytes + 5), "..........") << way.name;
    }
}

TEST(CopyTest, PiecesOfOneMeasuredCopyArriveWhateverItsWay) {
  const std::string source = bytes_for(kMeasuredCopyBytes);
  for (unsigned round = 0; round < CopyChoice::kTries * CopyChoice::kMostWays; ++round) {
    std::string target(source.size(), '.');
    {
      MeasuredCopy copy(source.size(), MeasuredCopy::Shape::kPieces);
      for (std::size_t at = 0, bytes = 1; at < source.size(); at += bytes, bytes = 2 * bytes + 1) {
        bytes = std::min(bytes, source.size() - at);
        copy(target.data() + at, source.data() + at, bytes);
      }
    }
    ASSERT_EQ(target, source) << round;
  }
}

TEST(CopyTest, NothingFromNowhereIsFine) {
  copy_bytes(nullptr, nullptr, 0);
}

// A litmus test. The copy's stores come behind those before it, and before those behind it.
class Messages {
 public:
  explicit Messages(const CopyWay& way) : way_(way) {}
  void run() {
    std::thread reader([this] { read(); });
    for (std::uint64_t round = 1; round <= kRounds; ++round) write(round);
    reader.join();
  }

 private:
  static constexpr std::uint64_t kRounds = 2000;
  static constexpr std::size_t kWords = (std::size_t{16} << 10) / sizeof(std::uint64_t);

  void write(std::uint64_t round) {
    std::ranges::fill(source_, round);
    __atomic_store_n(&before_, round, __ATOMIC_RELAXED);
    order_copies_past_caches();
    way_.copy(reinterpret_cast<std::byte*>(target_.data()),
              reinterpret_cast<const std::byte*>(source_.data()), sizeof source_);
    order_copies_past_caches();
    __atomic_store_n(&behind_, round, __ATOMIC_RELEASE);
    while (__atomic_load_n(&read_, __ATOMIC_ACQUIRE) != round) std::this_thread::yield();
  }
  void read() {
    begin_access_for_peer();  // reads what is being written
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      // The last words may be stored as those of small copies are.
      while (__atomic_load_n(&target_[kWords / 2], __ATOMIC_ACQUIRE) != round)
        std::this_thread::yield();
      EXPECT_EQ(__atomic_load_n(&before_, __ATOMIC_RELAXED), round) << way_.name;
      while (__atomic_load_n(&behind_, __ATOMIC_ACQUIRE) != round) std::this_thread::yield();
      for (const std::uint64_t& word : target_)
        if (__atomic_load_n(&word, __ATOMIC_RELAXED) != round) {
          ADD_FAILURE() << way_.name << ": the flag came before word " << &word - target_.data();
          break;
        }
      __atomic_store_n(&read_, round, __ATOMIC_RELEASE);
    }
    end_access_for_peer();
  }

  const CopyWay& way_;
  alignas(64) std::array<std::uint64_t, kWords> source_{};
  alignas(64) std::array<std::uint64_t, kWords> target_{};
  alignas(64) std::uint64_t before_ = 0;
  alignas(64) std::uint64_t behind_ = 0;
  alignas(64) std::uint64_t read_ = 0;
};

TEST(CopyTest, EveryWayIsOrderedWithTheStoresAroundIt) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "does not apply: one core";
  for (const CopyWay& way : copy_ways()) std::make_unique<Messages>(way)->run();
}

}  // namespace
}  // namespace memspan
