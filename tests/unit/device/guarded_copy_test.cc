// SPDX-License-Identifier: Apache-2.0
#include "device/host/guarded_copy.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "device/host/copy.h"

namespace memspan {
namespace {

constexpr std::size_t kBytes = 16384;

// Pages that may be read and written, or not.
char* pages(int protection) {
  void* made = mmap(nullptr, kBytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(made, MAP_FAILED);
  return static_cast<char*>(made);
}

std::optional<CopyFault> copy_guarded(void* to, const void* from, std::size_t bytes) {
  catch_copy_faults();
  const auto copying = [&] { copy_bytes(to, from, bytes); };
  return run_guarded(copying);
}

TEST(GuardedCopyTest, CopiesWhatIsThere) {
  char* const from = pages(PROT_READ | PROT_WRITE);
  char* const to = pages(PROT_READ | PROT_WRITE);
  std::memset(from, 7, kBytes);
  EXPECT_FALSE(copy_guarded(to, from, kBytes));
  EXPECT_EQ(std::memcmp(to, from, kBytes), 0);
}

// The smallest words, the C library's copy and our own loops.
TEST(GuardedCopyTest, SaysWhereItFaulted) {
  char* const there = pages(PROT_READ | PROT_WRITE);
  char* const gone = pages(PROT_READ | PROT_WRITE);
  ASSERT_EQ(munmap(gone, kBytes), 0);
  for (const std::size_t bytes : {1, 8, 16, 100, 255, 256, 4096, 16384}) {
    const auto reading = copy_guarded(there, gone, bytes);
    ASSERT_TRUE(reading) << bytes;
    EXPECT_TRUE(reading->is_in(gone, bytes)) << bytes;
    EXPECT_FALSE(reading->is_forbidden);
    const auto writing = copy_guarded(gone, there, bytes);
    ASSERT_TRUE(writing) << bytes;
    EXPECT_TRUE(writing->is_in(gone, bytes)) << bytes;
  }
}

TEST(GuardedCopyTest, SaysThatMemoryMayNotBeWritten) {
  char* const there = pages(PROT_READ | PROT_WRITE);
  char* const constant = pages(PROT_READ);
  const auto fault = copy_guarded(constant, there, 100);
  ASSERT_TRUE(fault);
  EXPECT_TRUE(fault->is_forbidden);
}

TEST(FindFaultTest, MemoryThatMayOnlyBeReadIsNoneToWriteTo) {
  auto* const constant = reinterpret_cast<std::byte*>(pages(PROT_READ));
  EXPECT_FALSE(find_fault(constant, 100, MemoryAccess::kRead));
  const auto fault = find_fault(constant, 100, MemoryAccess::kWrite);
  ASSERT_TRUE(fault);
  EXPECT_TRUE(fault->is_forbidden);
}

// No address of anything; the processor does not say which it was.
TEST(GuardedCopyTest, EndsACopyToANumberThatIsNoAddress) {
  char byte = 0;
  EXPECT_TRUE(copy_guarded(reinterpret_cast<void*>(std::uintptr_t{0x1234567812345678}), &byte, 1));
  EXPECT_TRUE(copy_guarded(&byte, reinterpret_cast<void*>(std::uintptr_t{8}), 1));
}

TEST(GuardedCopyTest, EndsACopyOfSharedMemoryThatHasShrunk) {
  const int memory = memfd_create("shrinks", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(memory, kBytes), 0);
  void* const mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  char* const there = pages(PROT_READ | PROT_WRITE);
  ASSERT_FALSE(copy_guarded(there, mapped, kBytes));
  ASSERT_EQ(ftruncate(memory, 4096), 0);
  const auto fault = copy_guarded(there, mapped, kBytes);
  ASSERT_TRUE(fault);
  EXPECT_FALSE(fault->is_forbidden);
  EXPECT_TRUE(fault->is_in(static_cast<char*>(mapped) + 4096, kBytes - 4096));
  EXPECT_FALSE(copy_guarded(there, mapped, 4096));
  close(memory);
}

// On an alternate stack, in any thread, as often as it happens, and the signals stay open.
TEST(GuardedCopyTest, LeavesThreadsAsTheyWere) {
  const auto run = [] {
    std::vector<char> room(static_cast<std::size_t>(SIGSTKSZ) + 65536);
    stack_t mine = {};
    mine.ss_sp = room.data();
    mine.ss_size = room.size();
    stack_t before = {};
    ASSERT_EQ(sigaltstack(&mine, &before), 0);
    char byte = 0;
    char* const closed = pages(PROT_NONE);
    for (int i = 0; i < 300; ++i) ASSERT_TRUE(copy_guarded(closed, &byte, 1));
    sigset_t mask;
    ASSERT_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &mask), 0);
    EXPECT_FALSE(sigismember(&mask, SIGSEGV) != 0 || sigismember(&mask, SIGBUS) != 0);
    stack_t after = {};
    ASSERT_EQ(sigaltstack(&before, &after), 0);
    EXPECT_EQ(after.ss_sp, mine.ss_sp);
    EXPECT_EQ(after.ss_flags & SS_ONSTACK, 0);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(run);
  for (std::thread& thread : threads) thread.join();
}

// ---- faults that are not a copy's ---------------------------------------------------------------

constexpr int kNoticed = 42;

void touch(std::uintptr_t address) {
  *reinterpret_cast<volatile char*>(address) = 1;
}

void exit_with_address(int, siginfo_t* info, void*) {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  const bool has_mask = sigismember(&mask, SIGSEGV) != 0 && sigismember(&mask, SIGUSR1) != 0;
  _exit(has_mask && info->si_addr == reinterpret_cast<void*>(16) ? kNoticed : 1);
}

[[noreturn]] void fault_with_handler_of_the_program() {
  struct sigaction action = {};
  action.sa_sigaction = exit_with_address;
  action.sa_flags = SA_SIGINFO;
  sigaddset(&action.sa_mask, SIGUSR1);
  sigaction(SIGSEGV, &action, nullptr);
  char byte = 0;
  if (!copy_guarded(pages(PROT_NONE), &byte, 1)) _exit(2);
  touch(16);
  _exit(3);
}

[[noreturn]] void fault_without_handler(bool by_kill) {
  signal(SIGSEGV, SIG_DFL);
  char byte = 0;
  if (!copy_guarded(pages(PROT_NONE), &byte, 1)) _exit(2);
  if (by_kill)
    kill(getpid(), SIGSEGV);
  else
    touch(16);
  _exit(3);
}

// A signal that somebody sends during a copy is no fault of the copy.
[[noreturn]] void be_sent_a_signal_in_a_copy() {
  signal(SIGSEGV, [](int) { _exit(kNoticed); });
  catch_copy_faults();
  const auto copying = [] { raise(SIGSEGV); };
  static_cast<void>(run_guarded(copying));
  _exit(3);
}

[[noreturn]] void ignore_a_signal() {
  signal(SIGSEGV, SIG_IGN);
  catch_copy_faults();
  raise(SIGSEGV);
  _exit(kNoticed);
}

[[noreturn]] void have_a_handler_for_once() {
  struct sigaction action = {};
  action.sa_handler = [](int) {
    struct sigaction now = {};
    sigaction(SIGSEGV, nullptr, &now);
    _exit(now.sa_handler == SIG_DFL ? kNoticed : 1);
  };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGSEGV, &action, nullptr);
  catch_copy_faults();
  touch(16);
  _exit(3);
}

// Each in a child in which nothing is installed yet: death tests run before all others.
TEST(GuardedCopyDeathTest, GivesOtherFaultsToTheProgramsHandler) {
  EXPECT_EXIT(fault_with_handler_of_the_program(), testing::ExitedWithCode(kNoticed), "");
}

TEST(GuardedCopyDeathTest, LetsOtherFaultsEndTheProcess) {
  EXPECT_EXIT(fault_without_handler(false), testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(fault_without_handler(true), testing::KilledBySignal(SIGSEGV), "");
}

TEST(GuardedCopyDeathTest, GivesSentSignalsToTheProgramsHandler) {
  EXPECT_EXIT(be_sent_a_signal_in_a_copy(), testing::ExitedWithCode(kNoticed), "");
  EXPECT_EXIT(ignore_a_signal(), testing::ExitedWithCode(kNoticed), "");
  EXPECT_EXIT(have_a_handler_for_once(), testing::ExitedWithCode(kNoticed), "");
}

}  // namespace
}  // namespace memspan
