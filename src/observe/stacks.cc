// SPDX-License-Identifier: Apache-2.0
#include "observe/stacks.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#if defined(__GLIBC__)
#include <execinfo.h>
#endif

#include "core/clock.h"
#include "core/environment.h"
#include "observe/symbol_table.h"

namespace memspan {
namespace {

constexpr int kSignal = SIGUSR2;
// Marks a signal from another thread of this process: the receiver prints only its stack.
constexpr int kPassedOn = 0x6d656d73;
constexpr int kMostFrames = 64;
constexpr const char* kProgram = "/proc/self/exe";

std::atomic<MemberKind> owner_kind{MemberKind::kNone};
std::atomic<int> owner_rank{0};

// A line of a few hundred bytes, built and written only with calls that are safe in a signal
// handler. Text that does not fit is cut off.
class SignalSafeLine {
 public:
  SignalSafeLine& add(std::string_view text) {
    const std::size_t room = sizeof text_ - 1 - length_;
    const std::size_t bytes = std::min(room, text.size());
    std::memcpy(text_ + length_, text.data(), bytes);
    length_ += bytes;
    return *this;
  }
  SignalSafeLine& add(std::uint64_t number, unsigned base = 10) {
    char digits[20];
    std::size_t at = sizeof digits;
    do {
      digits[--at] = "0123456789abcdef"[number % base];
      number /= base;
    } while (number != 0);
    return add({digits + at, sizeof digits - at});
  }
  void write() {
    text_[length_++] = '\n';
    std::string_view rest(text_, length_);
    while (!rest.empty()) {
      const ssize_t written = ::write(STDERR_FILENO, rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return;
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
  }

 private:
  char text_[512];
  std::size_t length_ = 0;
};

SignalSafeLine& begin(SignalSafeLine& line) {
  return line.add(owner_kind.load(std::memory_order_relaxed) == MemberKind::kJob ? "PE " : "rank ")
      .add(static_cast<std::uint64_t>(owner_rank.load(std::memory_order_relaxed)));
}

std::int32_t this_thread() {
  return static_cast<std::int32_t>(syscall(SYS_gettid));
}

// The program is known by its first argument, which need not be a path.
[[maybe_unused]] FoundSymbol find_function(const Dl_info& where, std::uintptr_t address) {
  const auto base = reinterpret_cast<std::uintptr_t>(where.dli_fbase);
  const char* const file =
      std::strchr(where.dli_fname, '/') != nullptr ? where.dli_fname : kProgram;
  const FoundSymbol found = find_symbol(file, base, address - 1);  // a call may end its function
  return found.name[0] == '\0' && file[0] != '/' ? find_symbol(kProgram, base, address - 1) : found;
}

// Not inline, because it skips a fixed number of frames. Each line names the thread, since several
// write at the same time.
[[gnu::noinline]] void tell_stack() {
#if defined(__GLIBC__)
  const auto thread = static_cast<std::uint64_t>(this_thread());
  void* frames[kMostFrames];
  // Without this function, the handler and the kernel's return from it.
  constexpr int kOwnFrames = 3;
  const int count = backtrace(frames, kMostFrames);
  for (int i = std::min(kOwnFrames, count - 1); i < count; ++i) {
    SignalSafeLine line;
    begin(line).add(" thread ").add(thread).add(":   #");
    line.add(static_cast<std::uint64_t>(std::max(i - kOwnFrames, 0))).add(" ");
    Dl_info where{};
    if (dladdr(frames[i], &where) == 0 || where.dli_fname == nullptr) {
      line.add("0x").add(reinterpret_cast<std::uintptr_t>(frames[i]), 16).write();
      continue;
    }
    const std::string_view file = where.dli_fname;
    line.add(file.substr(file.rfind('/') + 1)).add("(");
    const auto address = reinterpret_cast<std::uintptr_t>(frames[i]);
    auto begin = reinterpret_cast<std::uintptr_t>(where.dli_saddr);
    if (where.dli_sname != nullptr) {
      line.add(where.dli_sname);
    } else {
      const FoundSymbol found = find_function(where, address);
      line.add(found.name);
      begin =
          found.name[0] != '\0' ? found.begin : reinterpret_cast<std::uintptr_t>(where.dli_fbase);
    }
    line.add("+0x").add(address - begin, 16).add(")").write();
  }
#endif
}

SignalSafeLine& begin_thread(SignalSafeLine& line, std::int32_t thread) {
  return begin(line)
      .add(" (process ")
      .add(static_cast<std::uint64_t>(getpid()))
      .add("): thread ")
      .add(static_cast<std::uint64_t>(thread));
}

void tell_wait(const ThreadCounters& thread, std::int32_t number, std::uint64_t now) {
  const std::uint64_t since = thread.waiting_since.load(std::memory_order_acquire);
  SignalSafeLine line;
  begin_thread(line, number);
  if (since == 0) {
    line.add(" does not wait in a call of memspan").write();
    return;
  }
  char call[sizeof thread.what];
  for (std::size_t i = 0; i < std::size(thread.what); ++i) {
    const std::uint64_t word = thread.what[i].load(std::memory_order_relaxed);
    std::memcpy(call + i * sizeof word, &word, sizeof word);
  }
  line.add(" waits in ").add({call, strnlen(call, sizeof call)});
  const std::int32_t awaited = thread.awaited.load(std::memory_order_relaxed);
  if (awaited >= 0) line.add(" for PE ").add(static_cast<std::uint64_t>(awaited));
  const std::uint64_t tenths = now > since ? (now - since) / 100'000'000 : 0;
  line.add(", for ").add(tenths / 10).add(".").add(tenths % 10).add(" s").write();
}

// Only a thread itself can look at its stack.
void ask_for_stack(std::int32_t thread) {
  siginfo_t info{};
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_int = kPassedOn;
  syscall(SYS_rt_tgsigqueueinfo, getpid(), thread, kSignal, &info);
}

void tell_all() {
  count_stack_request();  // before lines, which may wait for their reader
  const CountersRegion* const region = own_counters();
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  const std::uint64_t now = static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
                            static_cast<std::uint64_t>(time.tv_nsec);
  const std::int32_t own = this_thread();
  bool is_own_told = false;
  const std::uint32_t threads =
      region == nullptr ? 0 : region->header.threads.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(threads, kMostCountedThreads); ++i) {
    const std::int32_t thread = region->threads[i].thread.load(std::memory_order_relaxed);
    if (thread == 0) continue;
    tell_wait(region->threads[i], thread, now);
    is_own_told = is_own_told || thread == own;
    if (thread != own) ask_for_stack(thread);
  }
  if (!is_own_told) {
    SignalSafeLine line;
    begin_thread(line, own).add(" does not wait in a call of memspan").write();
  }
}

void handle(int, siginfo_t* info, void*) {
  const int kept = errno;
  const bool is_passed_on = info != nullptr && info->si_code == SI_QUEUE &&
                            info->si_pid == getpid() && info->si_value.sival_int == kPassedOn;
  if (!is_passed_on) tell_all();
  tell_stack();
  errno = kept;
}

}  // namespace

Status answer_stack_requests(MemberKind kind, int rank) {
  const auto wanted = environment_integer("MEMSPAN_STACKS", 0, 1);
  if (!wanted.is_ok()) return wanted.status();
  owner_kind.store(kind, std::memory_order_relaxed);
  owner_rank.store(rank, std::memory_order_relaxed);
  struct sigaction now {};
  if (wanted->value_or(1) == 0 || sigaction(kSignal, nullptr, &now) != 0 ||
      (now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL)
    return Status::ok();
#if defined(__GLIBC__)
  void* frame = nullptr;
  backtrace(&frame, 1);  // loads what it needs now, not in the handler
#endif
  struct sigaction ours {};
  ours.sa_sigaction = handle;
  ours.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&ours.sa_mask);
  if (sigaction(kSignal, &ours, nullptr) != 0) return Status::from_errno("sigaction");
  return Status::ok();
}

}  // namespace memspan
