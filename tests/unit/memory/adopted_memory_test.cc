// SPDX-License-Identifier: Apache-2.0
#include "memory/adopted_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/thread.h"
#include "device/in_place.h"
#include "device/process_maps.h"
#include "device/reservation.h"
#include "support/needs.h"

namespace memspan {
namespace {

constexpr std::byte kFill{7};

class AdoptedMemoryTest : public testing::Test {
 protected:
  void SetUp() override { MEMSPAN_NEEDS("userfaultfd"); }
};

// Private pages of their own between two that nobody may touch.
class PrivatePages {
 public:
  explicit PrivatePages(std::size_t bytes, int protection = PROT_READ | PROT_WRITE)
      : whole_(bytes + 2 * page_size()) {
    at_ = static_cast<std::byte*>(
        mmap(nullptr, whole_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(at_ + page_size(), bytes, PROT_READ | PROT_WRITE);
    std::memset(at_ + page_size(), static_cast<int>(kFill), bytes);
    mprotect(at_ + page_size(), bytes, protection);
  }
  ~PrivatePages() { munmap(at_, whole_); }
  PrivatePages(const PrivatePages&) = delete;
  PrivatePages& operator=(const PrivatePages&) = delete;
  std::byte* at() const { return at_ + page_size(); }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(at()); }

 private:
  std::size_t whole_;
  std::byte* at_;
};

bool all_are(const std::byte* bytes, std::size_t count, std::byte value) {
  for (std::size_t i = 0; i < count; ++i)
    if (bytes[i] != value) return false;
  return true;
}

std::vector<ProcessMapping> mappings_of(std::uint64_t begin, std::uint64_t end) {
  std::vector<ProcessMapping> found;
  EXPECT_TRUE(look_at_mappings(begin, end, [&](const ProcessMapping& mapping) {
                found.push_back(mapping);
                return true;
              }).is_ok());
  return found;
}

bool is_private(const std::byte* at, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uint64_t>(at);
  for (const ProcessMapping& mapping : mappings_of(begin, begin + bytes))
    if (mapping.is_shared() || mapping.inode != 0) return false;
  return true;
}

// What another process would have.
Reservation map_elsewhere(const AdoptedMemory& memory) {
  Pages pages = Pages::adopt(memory.duplicate().value()).value();
  Reservation place = Reservation::make(pages.bytes(), nullptr).value();
  EXPECT_TRUE(place.map(0, pages, 0, pages.bytes()).is_ok());
  return place;
}

void expect_refused(std::byte* at, std::size_t bytes, const char* words) {
  const auto refused = AdoptedMemory::adopt(at, bytes);
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_NE(refused.status().message().find(words), std::string::npos)
      << refused.status().message() << " has not: " << words;
}

TEST_F(AdoptedMemoryTest, KeepsTheBytesAndShowsThemElsewhere) {
  const std::size_t bytes = 9 * kPieceInPlace;
  const PrivatePages pages(bytes);
  for (std::size_t i = 0; i < bytes; i += 1000) pages.at()[i] = std::byte(i / 1000);
  std::byte* const base = pages.at() + 100;
  AdoptedMemory memory = AdoptedMemory::adopt(base, bytes - 200).value();
  EXPECT_EQ(memory.begin(), pages.address()) << "the first page is adopted whole";
  EXPECT_EQ(memory.end(), pages.address() + bytes) << "and so is the last one";
  const Reservation elsewhere = map_elsewhere(memory);
  std::byte* const there = elsewhere.base() + AdoptedMemory::lead_of(pages.address());
  EXPECT_EQ(there + 100, elsewhere.base() + AdoptedMemory::lead_of(pages.address() + 100));
  EXPECT_EQ(std::memcmp(there, pages.at(), bytes), 0);
  for (std::size_t i = 0; i < bytes; i += 1000) ASSERT_EQ(pages.at()[i], std::byte(i / 1000));
  there[5 * kPieceInPlace] = std::byte{99};
  EXPECT_EQ(pages.at()[5 * kPieceInPlace], std::byte{99}) << "it is the same memory";
  base[12345] = std::byte{98};
  EXPECT_EQ(there[100 + 12345], std::byte{98});
}

TEST_F(AdoptedMemoryTest, NeighboursAreNotTouched) {
  const std::size_t page = page_size();
  const PrivatePages pages(5 * page);
  const AdoptedMemory memory = AdoptedMemory::adopt(pages.at() + 2 * page - 1, 2).value();
  EXPECT_EQ(memory.begin(), pages.address() + page);
  EXPECT_EQ(memory.end(), pages.address() + 3 * page);
  EXPECT_TRUE(is_private(pages.at(), page));
  EXPECT_TRUE(is_private(pages.at() + 3 * page, 2 * page));
  EXPECT_TRUE(all_are(pages.at(), 5 * page, kFill));
}

TEST_F(AdoptedMemoryTest, GivesBackPrivatePagesWithWhatWasWritten) {
  const std::size_t bytes = 3 * kPieceInPlace + page_size();
  const PrivatePages pages(bytes);
  AdoptedMemory memory = AdoptedMemory::adopt(pages.at(), bytes).value();
  const Reservation elsewhere = map_elsewhere(memory);
  std::byte* const there = elsewhere.base() + AdoptedMemory::lead_of(pages.address());
  there[kPieceInPlace] = std::byte{1};
  ASSERT_TRUE(memory.give_back().is_ok());
  EXPECT_TRUE(is_private(pages.at(), bytes));
  EXPECT_EQ(pages.at()[kPieceInPlace], std::byte{1});
  EXPECT_TRUE(all_are(pages.at(), kPieceInPlace, kFill));
  EXPECT_TRUE(all_are(there, bytes, std::byte{0})) << "the memory is gone where it is mapped, too";
  there[0] = std::byte{3};
  EXPECT_EQ(pages.at()[0], kFill);
  ASSERT_TRUE(memory.give_back().is_ok()) << "the second time does nothing";
}

TEST_F(AdoptedMemoryTest, ItsEndGivesBackAndItCanBeAdoptedAgain) {
  const std::size_t bytes = 2 * kPieceInPlace;
  const PrivatePages pages(bytes);
  for (int i = 0; i < 10; ++i) {
    { const AdoptedMemory memory = AdoptedMemory::adopt(pages.at(), bytes).value(); }
    ASSERT_TRUE(is_private(pages.at(), bytes));
    ASSERT_TRUE(all_are(pages.at(), bytes, kFill));
  }
}

TEST_F(AdoptedMemoryTest, HoldsFewMappings) {
  const std::size_t bytes = 16 * kPieceInPlace;
  const PrivatePages pages(bytes);
  AdoptedMemory memory = AdoptedMemory::adopt(pages.at(), bytes).value();
  EXPECT_LE(mappings_of(pages.address(), pages.address() + bytes).size(), 2u);
  ASSERT_TRUE(memory.give_back().is_ok());
  EXPECT_LE(mappings_of(pages.address(), pages.address() + bytes).size(), 2u)
      << "its pieces are one mapping again";
}

// Each thread counts up in its own words, and finds each word as it left it.
TEST_F(AdoptedMemoryTest, NoWriteOfAnotherThreadIsLost) {
  constexpr std::size_t kThreads = 3;
  constexpr std::size_t kStride = 512;  // some words on each page
  const std::size_t bytes = 2 * kPieceInPlace + 3 * page_size();
  const PrivatePages pages(bytes);
  std::memset(pages.at(), 0, bytes);
  std::atomic<bool> is_over{false};
  std::atomic<std::uint64_t> lost{0};
  std::atomic<std::uint64_t> rounds{0};
  std::vector<std::thread> writers;
  for (std::size_t thread = 0; thread < kThreads; ++thread)
    writers.push_back(start_thread("a test", [&, thread] {
                        std::byte* const mine = pages.at() + thread * sizeof(std::uint64_t);
                        for (std::uint64_t round = 0; !is_over.load(); ++round, ++rounds)
                          for (std::size_t at = 0; at < bytes; at += kStride) {
                            auto* word = reinterpret_cast<volatile std::uint64_t*>(mine + at);
                            if (*word != round) ++lost;
                            *word = round + 1;
                          }
                      }).value());
  for (int i = 0; i < 60; ++i) {
    AdoptedMemory memory = AdoptedMemory::adopt(pages.at(), bytes).value();
    const std::uint64_t before = rounds.load();
    while (rounds.load() < before + kThreads) std::this_thread::yield();  // they go on in it
    ASSERT_TRUE(memory.give_back().is_ok());
  }
  is_over = true;
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(lost.load(), 0u);
}

// The kernel protects such pages in another way.
TEST_F(AdoptedMemoryTest, NoWriteToPagesThatWereNotThereIsLost) {
  const std::size_t bytes = 2 * kPieceInPlace;
  for (int round = 0; round < 20; ++round) {
    const Reservation place = Reservation::make(bytes, nullptr).value();
    ASSERT_EQ(mprotect(place.base(), bytes, PROT_READ | PROT_WRITE), 0);
    std::atomic<bool> has_begun{false};
    std::thread writer = start_thread("a test", [&] {
                           for (std::size_t at = 0; at < bytes; at += page_size()) {
                             *const_cast<volatile std::byte*>(place.base() + at) = kFill;
                             has_begun = true;
                           }
                         }).value();
    while (!has_begun.load()) std::this_thread::yield();
    const AdoptedMemory memory = AdoptedMemory::adopt(place.base(), bytes).value();
    writer.join();
    for (std::size_t at = 0; at < bytes; at += page_size()) ASSERT_EQ(place.base()[at], kFill);
  }
}

TEST_F(AdoptedMemoryTest, OtherMemoryIsRefused) {
  const std::size_t page = page_size();
  const PrivatePages good(4 * page);
  expect_refused(good.at(), 0, "capacity, which is 0");
  expect_refused(good.at(), SIZE_MAX - 5, "more than an address can be");
  expect_refused(good.at(), SIZE_MAX - good.address(), "more than an address can be");
  expect_refused(good.at(), 4 * page + 1, "not just readable and writable");
  expect_refused(nullptr, 10, "nothing is mapped at 0x0");
  munmap(good.at() + page, page);
  expect_refused(good.at(), 4 * page, "nothing is mapped at");
  const PrivatePages constant(page, PROT_READ);
  expect_refused(constant.at(), 1, "r--p");
  const PrivatePages code(page, PROT_READ | PROT_WRITE | PROT_EXEC);
  expect_refused(code.at(), 1, "not just readable and writable");
  Pages shared = Pages::create(page, "test").value();
  Reservation place = Reservation::make(page, nullptr).value();
  ASSERT_TRUE(place.map(0, shared, 0, page).is_ok());
  expect_refused(place.base(), 1, "is shared memory");
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  void* const of_file = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  close(file);
  expect_refused(static_cast<std::byte*>(of_file), 1, "is of a file");
  munmap(of_file, page);
  std::byte on_stack{};
  expect_refused(&on_stack, 1, "stack");
  start_thread("a test",
               [] {
                 std::byte on_this_stack{};
                 expect_refused(static_cast<std::byte*>(__builtin_frame_address(0)),
                                sizeof on_this_stack, "the stack of this thread");
                 expect_refused(reinterpret_cast<std::byte*>(&errno), 1, "this thread");
               })
      .value()
      .join();
  EXPECT_TRUE(all_are(good.at(), page, kFill));
}

TEST_F(AdoptedMemoryTest, LockedMemoryIsRefused) {
  const PrivatePages pages(4 * page_size());
  // Not by mlock(), which sanitizers leave out.
  MEMSPAN_NEEDS("mlock");
  ASSERT_EQ(syscall(SYS_mlock, pages.at() + page_size(), page_size()), 0);
  expect_refused(pages.at(), 4 * page_size(), "locked");
  syscall(SYS_munlock, pages.at() + page_size(), page_size());
  EXPECT_TRUE(AdoptedMemory::adopt(pages.at(), 4 * page_size()).is_ok());
}

TEST_F(AdoptedMemoryTest, PagesThatAreAdoptedAreRefused) {
  const std::size_t page = page_size();
  const PrivatePages pages(4 * page);
  const AdoptedMemory memory = AdoptedMemory::adopt(pages.at(), page + 1).value();
  expect_refused(pages.at() + page + 100, page, "adopted already");
  EXPECT_TRUE(AdoptedMemory::adopt(pages.at() + 2 * page, page).is_ok());
}

TEST_F(AdoptedMemoryTest, TooLittleMemoryChangesNothing) {
  const std::size_t bytes = 2 * kPieceInPlace;
  const PrivatePages pages(bytes);
  setenv("MEMSPAN_MEMORY_LIMIT", "1M", 1);
  const auto refused = AdoptedMemory::adopt(pages.at(), bytes);
  unsetenv("MEMSPAN_MEMORY_LIMIT");
  EXPECT_EQ(refused.code(), Code::kOutOfMemory) << refused.status().message();
  EXPECT_TRUE(is_private(pages.at(), bytes));
  EXPECT_TRUE(all_are(pages.at(), bytes, kFill));
}

// Another userfaultfd has a page in the last piece.
TEST_F(AdoptedMemoryTest, AFailureInTheMiddleIsUndone) {
  const std::size_t bytes = 4 * kPieceInPlace;
  const PrivatePages pages(bytes);
  const Fd other(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | 1)));
  uffdio_api api = {};
  api.api = UFFD_API;
  ASSERT_EQ(ioctl(other.get(), UFFDIO_API, &api), 0);
  uffdio_register taken = {};
  taken.range.start = pages.address() + bytes - page_size();
  taken.range.len = page_size();
  taken.mode = UFFDIO_REGISTER_MODE_MISSING;
  ASSERT_EQ(ioctl(other.get(), UFFDIO_REGISTER, &taken), 0) << strerror(errno);
  const auto refused = AdoptedMemory::adopt(pages.at(), bytes);
  EXPECT_EQ(refused.code(), Code::kSystem);
  EXPECT_NE(refused.status().message().find("replacing the pages"), std::string::npos)
      << refused.status().message();
  EXPECT_TRUE(is_private(pages.at(), bytes));
  EXPECT_TRUE(all_are(pages.at(), bytes, kFill));
  pages.at()[0] = std::byte{1};  // nobody is held off any more
  pages.at()[bytes - 1] = std::byte{1};
}

TEST_F(AdoptedMemoryTest, WhatWasUnmappedStaysUnmapped) {
  const std::size_t page = page_size();
  const PrivatePages pages(6 * page);
  AdoptedMemory memory = AdoptedMemory::adopt(pages.at(), 6 * page).value();
  EXPECT_TRUE(memory.is_in_place().value());
  munmap(pages.at() + page, page);
  EXPECT_FALSE(memory.is_in_place().value());
  // Something else has come to a freed place.
  void* const reused = mmap(pages.at() + 3 * page, page, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  ASSERT_EQ(reused, pages.at() + 3 * page);
  pages.at()[3 * page] = std::byte{55};
  ASSERT_TRUE(memory.give_back().is_ok());
  EXPECT_TRUE(mappings_of(pages.address() + page, pages.address() + 2 * page).empty());
  EXPECT_EQ(pages.at()[3 * page], std::byte{55});
  EXPECT_EQ(pages.at()[3 * page + 1], std::byte{0});
  EXPECT_TRUE(all_are(pages.at(), page, kFill));
  EXPECT_TRUE(all_are(pages.at() + 4 * page, 2 * page, kFill));
  EXPECT_TRUE(is_private(pages.at(), 6 * page));
}

TEST_F(AdoptedMemoryTest, WhatWasMovedKeepsItsBytes) {
  const std::size_t bytes = 8 * page_size();
  PrivatePages pages(bytes);
  const PrivatePages target(bytes);
  AdoptedMemory memory = AdoptedMemory::adopt(pages.at(), bytes).value();
  const std::size_t half = bytes / 2;
  ASSERT_EQ(mremap(pages.at(), half, half, MREMAP_MAYMOVE | MREMAP_FIXED,
                   static_cast<void*>(target.at())),
            static_cast<void*>(target.at()));
  EXPECT_FALSE(memory.is_in_place().value());
  ASSERT_TRUE(memory.give_back().is_ok());
  EXPECT_TRUE(all_are(target.at(), bytes, kFill));
  EXPECT_TRUE(all_are(pages.at() + half, half, kFill));
}

// It would get a tail without memory if the C library could move it to where there is more room.
TEST_F(AdoptedMemoryTest, ReallocCopies) {
  const std::size_t bytes = std::size_t{8} << 20;
  auto* allocated = static_cast<std::byte*>(std::malloc(bytes));
  std::memset(allocated, static_cast<int>(kFill), bytes);
  AdoptedMemory memory = AdoptedMemory::adopt(allocated, bytes).value();
  const std::unique_ptr<std::byte, decltype(&std::free)> block(
      static_cast<std::byte*>(std::realloc(allocated, 4 * bytes)), &std::free);
  std::byte* const grown = block.get();
  ASSERT_NE(grown, nullptr);
  std::memset(grown + bytes, static_cast<int>(kFill), 3 * bytes);
  EXPECT_TRUE(all_are(grown, 4 * bytes, kFill));
  ASSERT_TRUE(memory.give_back().is_ok());
  EXPECT_TRUE(all_are(grown, 4 * bytes, kFill));
}

}  // namespace
}  // namespace memspan
