// SPDX-License-Identifier: Apache-2.0
// SIGUSR2 makes a member of a job or pool print its state to stderr: the call, awaited peer and
// time of each waiting thread, and the stack of every thread that has made calls.
//
//   PE 0 (process 17): thread 17 waits in shmem_barrier_all for PE 1, for 12.3 s
//   PE 0 thread 4711:   #0 libmemspan.so(_ZN7memspan8SlowPath5sleepEv+0x4d)
#include "observe/counters.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#if defined(__GLIBC__)
#include <execinfo.h>
#endif

#include "core/fd.h"

namespace memspan::inline observe {
namespace {

// Names of functions that dladdr() does not know, from the symbol table of a program or library
// that is not stripped: static functions, and ours that are not exported.
struct FoundSymbol {
  char name[128] = {};       // as the compiler wrote it, cut to this size; empty: none
  std::uintptr_t begin = 0;  // the address of the function
};

// A file in memory; empty when it cannot be read.
class MappedFile : NotCopyable {
 public:
  explicit MappedFile(const char* path) {
    const Fd file(::open(path, O_RDONLY | O_CLOEXEC));
    struct stat info = {};
    if (!file.is_valid() || ::fstat(file.get(), &info) != 0 || info.st_size == 0) return;
    begin_ = ::mmap(nullptr, info.st_size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (begin_ != MAP_FAILED) bytes_ = info.st_size;
  }
  ~MappedFile() {
    if (bytes_ != 0) ::munmap(begin_, bytes_);
  }

  // `count` of them at an offset; null if the file ends before.
  template <typename T>
  const T* at(std::size_t offset, std::size_t count = 1) const {
    if (offset > bytes_ || count > (bytes_ - offset) / sizeof(T)) return nullptr;
    return reinterpret_cast<const T*>(static_cast<const char*>(begin_) + offset);
  }

 private:
  void* begin_ = nullptr;
  std::size_t bytes_ = 0;
};

using Header = ElfW(Ehdr);
using Section = ElfW(Shdr);
using Symbol = ElfW(Sym);

const Symbol* find(const MappedFile& file, const Section& table, std::uintptr_t value) {
  const std::size_t count = table.sh_size / sizeof(Symbol);
  const Symbol* const symbols = file.at<Symbol>(table.sh_offset, count);
  if (symbols == nullptr) return nullptr;
  const Symbol* const found = std::find_if(symbols, symbols + count, [&](const Symbol& one) {
    return ELF64_ST_TYPE(one.st_info) == STT_FUNC && one.st_value <= value &&
           value - one.st_value < one.st_size;
  });
  return found == symbols + count ? nullptr : found;
}

// The function at `address` in the file at `path`, which is mapped at `base`. For signal handlers:
// system calls only.
FoundSymbol find_symbol(const char* path, std::uintptr_t base, std::uintptr_t address) {
  FoundSymbol result;
  const MappedFile file(path);
  const Header* const header = file.at<Header>(0);
  if (header == nullptr || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return result;
  const std::uintptr_t bias = header->e_type == ET_EXEC ? 0 : base;
  const Section* const sections = file.at<Section>(header->e_shoff, header->e_shnum);
  if (sections == nullptr) return result;
  for (std::size_t i = 0; i < header->e_shnum; ++i) {
    const Section& table = sections[i];
    if (table.sh_type != SHT_SYMTAB || table.sh_link >= header->e_shnum) continue;
    const Symbol* const symbol = find(file, table, address - bias);
    const Section& names = sections[table.sh_link];
    if (symbol == nullptr || symbol->st_name >= names.sh_size) continue;
    const std::size_t room = std::min(names.sh_size - symbol->st_name, sizeof result.name - 1);
    const char* const name = file.at<char>(names.sh_offset + symbol->st_name, room);
    if (name == nullptr) continue;
    std::memcpy(result.name, name, strnlen(name, room));
    result.begin = symbol->st_value + bias;
    return result;
  }
  return result;
}

constexpr int kSignal = SIGUSR2;
// Marks a signal from another thread of this process: the receiver prints only its stack.
constexpr int kPassedOn = 0x6d656d73;
constexpr int kMostFrames = 64;
constexpr const char* kProgram = "/proc/self/exe";

std::atomic<MemberKind> owner_kind{MemberKind::kNone};
std::atomic<int> owner_rank{0};

// Writes a line of a few hundred bytes, which begins with the owner. Text that does not fit is cut
// off. Safe in a signal handler: fmt only writes to the buffer.
template <typename... Values>
void write_line(fmt::format_string<Values...> format, Values&&... values) {
  char text[512];
  char* const most = text + sizeof text - 1;
  const bool is_in_job = owner_kind.load(std::memory_order_relaxed) == MemberKind::kJob;
  char* end = fmt::format_to_n(text, most - text, "{} {}", is_in_job ? "PE" : "rank",
                               owner_rank.load(std::memory_order_relaxed))
                  .out;
  end = fmt::format_to_n(end, most - end, format, std::forward<Values>(values)...).out;
  *end++ = '\n';
  write_all(STDERR_FILENO, {text, static_cast<std::size_t>(end - text)});
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
  const std::int32_t thread = this_thread();
  void* frames[kMostFrames];
  // Without this function, the handler and the kernel's return from it.
  constexpr int kOwnFrames = 3;
  const int count = backtrace(frames, kMostFrames);
  for (int i = std::min(kOwnFrames, count - 1); i < count; ++i) {
    const int number = std::max(i - kOwnFrames, 0);
    const auto address = reinterpret_cast<std::uintptr_t>(frames[i]);
    Dl_info where{};
    if (dladdr(frames[i], &where) == 0 || where.dli_fname == nullptr) {
      write_line(" thread {}:   #{} {:#x}", thread, number, address);
      continue;
    }
    const std::string_view file = where.dli_fname;
    auto begin = reinterpret_cast<std::uintptr_t>(where.dli_saddr);
    const char* name = where.dli_sname;
    FoundSymbol found;
    if (name == nullptr) {
      found = find_function(where, address);
      name = found.name;
      begin = name[0] != '\0' ? found.begin : reinterpret_cast<std::uintptr_t>(where.dli_fbase);
    }
    write_line(" thread {}:   #{} {}({}+{:#x})", thread, number, file.substr(file.rfind('/') + 1),
               name, address - begin);
  }
#endif
}

void tell_no_wait(std::int32_t thread) {
  write_line(" (process {}): thread {} does not wait in a call of memspan", getpid(), thread);
}

void tell_wait(const ThreadCounters& thread, std::int32_t number, std::uint64_t now) {
  const std::uint64_t since = thread.waiting_since.load(std::memory_order_acquire);
  if (since == 0) return tell_no_wait(number);
  char call[sizeof thread.what];
  thread.copy_what(call);
  const std::int32_t awaited = thread.awaited.load(std::memory_order_relaxed);
  char peer[24] = {};
  if (awaited >= 0) fmt::format_to_n(peer, sizeof peer - 1, " for PE {}", awaited);
  const std::uint64_t tenths = now > since ? (now - since) / 100'000'000 : 0;
  write_line(" (process {}): thread {} waits in {}{}, for {}.{} s", getpid(), number,
             std::string_view(call, strnlen(call, sizeof call)), peer, tenths / 10, tenths % 10);
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
  CountersRegion* const region = own_counters();
  // Before lines, which may wait for their reader.
  if (region != nullptr) region->header.stack_requests.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t now = nanoseconds_of(Clock::now());
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
  if (!is_own_told) tell_no_wait(own);
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
  owner_kind.store(kind, std::memory_order_relaxed);
  owner_rank.store(rank, std::memory_order_relaxed);
  struct sigaction now {};
  if (sigaction(kSignal, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0 ||
      now.sa_handler != SIG_DFL)
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

}  // namespace memspan::inline observe
