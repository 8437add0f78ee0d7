// SPDX-License-Identifier: Apache-2.0
#include "device/host/guarded_copy.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>

#include "core/pages.h"

namespace memspan::inline device {
namespace {

// The compiler's own setjmp takes 1.5 ns and the C library's 5. Sanitizers know only the latter,
// and clang has the former only on x86.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    (defined(__clang__) && !defined(__x86_64__))
#define MEMSPAN_SET_JUMP(place) sigsetjmp(place, 0)
#define MEMSPAN_JUMP(place) siglongjmp(place, 1)
using JumpPlace = sigjmp_buf;
#else
#define MEMSPAN_SET_JUMP(place) __builtin_setjmp(place)
#define MEMSPAN_JUMP(place) __builtin_longjmp(place, 1)
using JumpPlace = void* [5];
#endif

struct Guard {
  JumpPlace resume;
  volatile std::uintptr_t address;
  volatile bool is_forbidden;
};

// The guarded copy of this thread. A handler reads it, so it must not be allocated at its first
// use.
__attribute__((tls_model("initial-exec"))) thread_local Guard* volatile current = nullptr;

// The handlers before ours; written before ours are installed.
struct sigaction before_segv;
struct sigaction before_bus;

[[noreturn]] void resume(Guard* guard) {
  MEMSPAN_JUMP(guard->resume);
}

// Makes the thread call resume(guard) when the handler returns. The kernel then restores the signal
// mask and the alternate stack as after any signal, which a jump out of the handler would not.
bool go_on_in_resume(ucontext_t& context, Guard* guard) {
#if defined(__x86_64__)
  constexpr std::uintptr_t kRedZone = 128;
  constexpr greg_t kDirection = 0x400;
  greg_t* const registers = context.uc_mcontext.gregs;
  const std::uintptr_t stack = static_cast<std::uintptr_t>(registers[REG_RSP]) - kRedZone;
  registers[REG_RSP] = static_cast<greg_t>((stack & ~std::uintptr_t{15}) - sizeof(void*));
  registers[REG_RDI] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(guard));
  registers[REG_RIP] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(&resume));
  registers[REG_EFL] &= ~kDirection;
  return true;
#elif defined(__aarch64__)
  context.uc_mcontext.sp &= ~std::uintptr_t{15};
  context.uc_mcontext.regs[0] = reinterpret_cast<std::uintptr_t>(guard);
  context.uc_mcontext.pc = reinterpret_cast<std::uintptr_t>(&resume);
  return true;
#else
  static_cast<void>(context);
  static_cast<void>(guard);
  return false;
#endif
}

void set_default_action(int signal) {
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  sigaction(signal, &standard, nullptr);
}

// Acts as if no handler existed: the instruction faults again, or the signal is sent again.
void end_by(int signal, siginfo_t* info) {
  set_default_action(signal);
  if (info->si_code <= 0)
    syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), signal, info);
}

// Calls the handler before ours, with the signal mask that it would have had.
void pass_on(int signal, siginfo_t* info, void* context) {
  const struct sigaction& before = signal == SIGSEGV ? before_segv : before_bus;
  const bool has_info = (before.sa_flags & SA_SIGINFO) != 0;
  if (!has_info && before.sa_handler == SIG_IGN && info->si_code <= 0) return;
  if (!has_info && (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN))
    return end_by(signal, info);
  if ((before.sa_flags & SA_RESETHAND) != 0) set_default_action(signal);
  if ((before.sa_flags & SA_NODEFER) != 0) {
    sigset_t open;
    sigemptyset(&open);
    sigaddset(&open, signal);
    pthread_sigmask(SIG_UNBLOCK, &open, nullptr);
  }
  pthread_sigmask(SIG_BLOCK, &before.sa_mask, nullptr);
  if (has_info)
    before.sa_sigaction(signal, info, context);
  else
    before.sa_handler(signal);
}

void on_fault(int signal, siginfo_t* info, void* context) {
  Guard* const guard = current;
  // Codes up to 0: a process sent the signal, and no fault did.
  if (guard == nullptr || info->si_code <= 0 ||
      !go_on_in_resume(*static_cast<ucontext_t*>(context), guard))
    return pass_on(signal, info, context);
  current = nullptr;
  guard->address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  guard->is_forbidden = signal == SIGSEGV && info->si_code == SEGV_ACCERR;
}

void install(int signal, struct sigaction& before) {
  if (sigaction(signal, nullptr, &before) != 0) return;
  struct sigaction ours = {};
  ours.sa_sigaction = on_fault;
  const bool has_handler = (before.sa_flags & SA_SIGINFO) != 0 ||
                           (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN);
  // Runs on the stack on which the handler before ours would run.
  ours.sa_flags =
      SA_SIGINFO | (has_handler ? before.sa_flags & (SA_ONSTACK | SA_RESTART) : SA_ONSTACK);
  sigemptyset(&ours.sa_mask);
  sigaction(signal, &ours, nullptr);
}

}  // namespace

void catch_copy_faults() {
  [[maybe_unused]] static const bool are_installed = [] {
    install(SIGSEGV, before_segv);
    install(SIGBUS, before_bus);
    return true;
  }();
}

std::optional<CopyFault> run_guarded(void (*copy)(void* state), void* state) {
  Guard guard;
  if (MEMSPAN_SET_JUMP(guard.resume) != 0) return CopyFault{guard.address, guard.is_forbidden};
  current = &guard;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  copy(state);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  current = nullptr;
  return std::nullopt;
}

std::optional<CopyFault> find_fault(std::byte* begin, std::uint64_t bytes, MemoryAccess access) {
  const auto touch = [access](std::byte* at) {
    auto* const byte = reinterpret_cast<unsigned char*>(at);
    if (access == MemoryAccess::kWrite) {
      unsigned char nothing = 0;
      asm volatile("" : "+r"(nothing));  // a compiler that knows the value would load only
      __atomic_fetch_or(byte, nothing, __ATOMIC_RELAXED);  // others may write there
    } else {
      static_cast<void>(__atomic_load_n(byte, __ATOMIC_RELAXED));
    }
  };
  const auto touch_all = [&] {
    const std::uint64_t page = page_size();
    touch(begin);
    std::byte* const aligned = begin + (page - reinterpret_cast<std::uint64_t>(begin) % page);
    for (std::byte* at = aligned; at < begin + bytes; at += page) touch(at);
  };
  return run_guarded(touch_all);
}

}  // namespace memspan::inline device
