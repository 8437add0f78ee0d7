// SPDX-License-Identifier: Apache-2.0
#include "memory/static_segment.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "core/fd.h"
#include "core/thread.h"
#include "device/in_place.h"
#include "memory/address_plan.h"

namespace memspan::inline memory {
namespace {

// ---- what the program looks like ----------------------------------------------------------------

// FNV-1a.
void add_to_hash(std::uint64_t& hash, const void* bytes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    hash = (hash ^ static_cast<const std::uint8_t*>(bytes)[i]) * 1099511628211u;
}

struct MainProgram {
  std::uintptr_t at = 0;  // what is added to the file's addresses
  const ElfW(Phdr) * headers = nullptr;
  int count = 0;

  const ElfW(Phdr) * find(ElfW(Word) type) const {
    for (int i = 0; i < count; ++i)
      if (headers[i].p_type == type) return &headers[i];
    return nullptr;
  }
  // The end of what the dynamic linker protects, a page's begin; 0 if that is nothing.
  std::uintptr_t protected_end() const {
    const ElfW(Phdr)* relro = find(PT_GNU_RELRO);
    return relro == nullptr ? 0
                            : (at + relro->p_vaddr + relro->p_memsz) / page_size() * page_size();
  }
  // The one segment that is written to; null when there are several or none. LLVM's linker and mold
  // give what is protected a segment of its own.
  const ElfW(Phdr) * writable() const {
    const ElfW(Phdr)* found = nullptr;
    for (int i = 0; i < count; ++i) {
      if (headers[i].p_type != PT_LOAD || (headers[i].p_flags & PF_W) == 0) continue;
      if (at + headers[i].p_vaddr + headers[i].p_memsz <= protected_end()) continue;
      if (found != nullptr || (headers[i].p_flags & PF_X) != 0) return nullptr;
      found = &headers[i];
    }
    return found;
  }
};

MainProgram main_program() {
  MainProgram program;
  // The main program comes first.
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        *static_cast<MainProgram*>(to) = {info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum};
        return 1;
      },
      &program);
  return program;
}

bool is_ours(std::string_view library) {
  return library.starts_with("libmemspan.so") || library.starts_with("libshmem.so");
}

bool needs_us(const MainProgram& program) {
  const ElfW(Phdr)* dynamic = program.find(PT_DYNAMIC);
  if (dynamic == nullptr) return false;
  const auto* entries = reinterpret_cast<const ElfW(Dyn)*>(program.at + dynamic->p_vaddr);
  const char* names = nullptr;
  for (const auto* entry = entries; entry->d_tag != DT_NULL; ++entry)
    if (entry->d_tag == DT_STRTAB) {
      // Some dynamic linkers add the program's place to it, others do not.
      std::uintptr_t address = entry->d_un.d_ptr;
      names = reinterpret_cast<const char*>(address < program.at ? address + program.at : address);
    }
  if (names == nullptr) return false;
  for (const auto* entry = entries; entry->d_tag != DT_NULL; ++entry)
    if (entry->d_tag == DT_NEEDED && is_ours(names + entry->d_un.d_val)) return true;
  return false;
}

std::uint64_t identity_of(const MainProgram& program, const ElfW(Phdr) & data) {
  std::uint64_t hash = 14695981039346656037u;
  for (const std::uint64_t number : {data.p_vaddr, data.p_filesz, data.p_memsz})
    add_to_hash(hash, &number, sizeof number);
  // The notes have the build id.
  for (int i = 0; i < program.count; ++i) {
    const ElfW(Phdr)& header = program.headers[i];
    if (header.p_type == PT_NOTE)
      add_to_hash(hash, reinterpret_cast<const void*>(program.at + header.p_vaddr), header.p_memsz);
  }
  return hash | 1;
}

// ---- moving ------------------------------------------------------------------------------------

// The place of this process's data after the move.
struct Moved {
  StaticSegment data;
  int descriptor = -1;  // a copy of the pages', open as long as the process lives
  std::size_t offset = 0;
  void* snapshot = nullptr;  // between the two halves of a fork
};
constinit Moved moved;
constinit bool has_file_pages = true;

Status failed(const char* step, int error) {
  return {Code::kOutOfMemory,
          fmt::format("{} the program's variables: {}", step, std::strerror(error))};
}

// The address sanitizer leaves gaps between variables.
__attribute__((no_sanitize("address", "thread"))) bool is_zero(const std::byte* page,
                                                               std::size_t bytes) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(page);
  std::uint64_t any = 0;
  for (std::size_t i = 0; i < bytes / sizeof(std::uint64_t); ++i) any |= words[i];
  return any == 0;
}

__attribute__((no_sanitize("address", "thread"))) void copy_page(std::byte* to,
                                                                 const std::byte* from) {
  // memcpy() of a sanitizer would check the gaps.
  auto* const into = reinterpret_cast<volatile std::uint64_t*>(to);
  const auto* const words = reinterpret_cast<const std::uint64_t*>(from);
  const std::size_t count = page_size() / sizeof(std::uint64_t);
  for (std::size_t i = 0; i < count; ++i) into[i] = words[i];
}

// Calls `replace`, which writes only to this thread's stack and errno, while writers wait. Not
// under TSan, which writes to its own data there at each call.
template <typename Replace>
int while_writers_wait(StaticSegment data, Replace replace) {
  std::optional<WriteHold> hold;
  if (!__libc_single_threaded && &__tsan_init == nullptr)
    if (Result<WriteHold> made = WriteHold::make(); made.is_ok()) hold = std::move(*made);
  const SignalsBlocked quiet;
  std::byte* const base = data.base + data.file_bytes;
  const bool is_held = hold && hold->hold(base, data.bytes - data.file_bytes) == 0;
  const int error = replace();
  if (is_held) hold->let_go(base, data.bytes - data.file_bytes);
  return error;
}

// Pages of zeros stay holes. Returns 0 or an error number, like those below.
int copy_out(const StaticSegment& data, int descriptor, std::size_t offset) {
  const std::size_t page = page_size();
  for (std::size_t at = 0; at < data.bytes;) {
    std::size_t end = at;
    while (end < data.bytes && !is_zero(data.base + end, page)) end += page;
    if (end > at) {
      const int error = write_to_memory(descriptor, data.base + at, end - at, offset + at);
      if (error != 0) return error;
    }
    at = end > at ? end : at + page;
  }
  return 0;
}

// ---- fork

void drop_snapshot() {
  if (moved.snapshot != nullptr) munmap(moved.snapshot, moved.data.bytes);
  moved.snapshot = nullptr;
}

int fill_snapshot() {
  const auto start = static_cast<off_t>(moved.offset);
  const auto end = start + static_cast<off_t>(moved.data.bytes);
  auto* const to = static_cast<std::byte*>(moved.snapshot);
  off_t at = start;
  // ENXIO means that no data follows.
  while ((at = lseek(moved.descriptor, at, SEEK_DATA)) >= 0 && at < end) {
    off_t stop = lseek(moved.descriptor, at, SEEK_HOLE);
    if (stop < 0 || stop > end) stop = end;
    const int error =
        read_from_memory(moved.descriptor, to + (at - start), static_cast<std::size_t>(stop - at),
                         static_cast<std::size_t>(at));
    if (error != 0) return error;
    at = stop;
  }
  return at >= end || errno == ENXIO ? 0 : errno;
}

bool has_place_for_snapshot() {
  void* const made = mmap(nullptr, moved.data.bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  moved.snapshot = made == MAP_FAILED ? nullptr : made;
  return moved.snapshot != nullptr;
}

// Leaves no snapshot if it fails; keep_child_apart() checks that.
void take_snapshot() {
  if (moved.descriptor >= 0 && has_place_for_snapshot() && fill_snapshot() != 0) drop_snapshot();
}

int put_snapshot_in_place() {
  const int error =
      move_over(moved.data.base, moved.data.bytes, static_cast<std::byte*>(moved.snapshot));
  if (error != 0) return error;
  close(moved.descriptor);
  moved = Moved{};
  return 0;
}

void keep_child_apart() {
  if (moved.descriptor < 0 || (moved.snapshot != nullptr && put_snapshot_in_place() == 0)) return;
  // Without its own copy the child would write into its parent. Only plain calls are allowed here.
  constexpr std::string_view kLine =
      "memspan: fork: no memory to copy the program's variables for the child, which ends\n";
  static_cast<void>(write(STDERR_FILENO, kLine.data(), kLine.size()) == 0);
  _exit(1);
}

void handle_forks() {
  static const bool has_handlers = [] {
    pthread_atfork(take_snapshot, drop_snapshot, keep_child_apart);
    return true;
  }();
  static_cast<void>(has_handlers);
}

bool is_there(const Pages& pages, std::size_t offset) {
  struct stat ours {};
  struct stat wanted {};
  return moved.descriptor >= 0 && moved.offset == offset && fstat(moved.descriptor, &ours) == 0 &&
         fstat(pages.descriptor(), &wanted) == 0 && ours.st_ino == wanted.st_ino &&
         ours.st_dev == wanted.st_dev;
}

}  // namespace

StaticSegment find_static_segment() {
  const MainProgram program = main_program();
  const ElfW(Phdr)* data = program.writable();
  if (data == nullptr || !needs_us(program)) return {};
  const std::uintptr_t page = page_size();
  const std::uintptr_t first =
      std::max((program.at + data->p_vaddr) / page * page, program.protected_end());
  const std::uintptr_t end = align_up(program.at + data->p_vaddr + data->p_memsz, page);
  if (end <= first) return {};
  const std::uintptr_t of_file =
      std::max(first, align_up(program.at + data->p_vaddr + data->p_filesz, page));
  return {reinterpret_cast<std::byte*>(first), end - first, has_file_pages ? of_file - first : 0,
          identity_of(program, *data)};
}

void prepare_static_segment(StaticSegment& data) {
  if (data.is_empty()) return;
  handle_forks();
  const std::size_t bytes = data.file_bytes;
  if (bytes == 0 || &__tsan_init != nullptr || !WriteHold::make().is_ok()) return;
  void* const made =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return;
  auto* const spare = static_cast<std::byte*>(made);
  const SignalsBlocked quiet;
  const std::size_t page = page_size();
  for (std::size_t at = 0; at < bytes; at += page)
    if (!is_zero(data.base + at, page)) copy_page(spare + at, data.base + at);
  if (move_over(data.base, bytes, spare) != 0) {
    munmap(spare, bytes);
    return;
  }
  has_file_pages = false;
  data.file_bytes = 0;
}

Status move_static_segment(const StaticSegment& data, const Pages& pages, std::size_t offset) {
  if (data.is_empty() || is_there(pages, offset)) return Status::ok();
  Fd kept(fcntl(pages.descriptor(), F_DUPFD_CLOEXEC, 3));
  if (!kept.is_valid()) return failed("keeping the pages of", errno);
  const int descriptor = kept.get();
  // Another program may have had the place before.
  if (fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                static_cast<off_t>(data.bytes)) != 0)
    return failed("copying", errno);
  const char* step = "copying";
  const int error = while_writers_wait(data, [&] {
    if (const int copied = copy_out(data, descriptor, offset); copied != 0) return copied;
    step = "mapping";
    return map_over(data.base, data.bytes, descriptor, offset);
  });
  if (error != 0) return failed(step, error);
  handle_forks();
  if (moved.descriptor >= 0) close(moved.descriptor);
  moved = Moved{data, kept.release(), offset, nullptr};
  moved.data.file_bytes = 0;
  has_file_pages = false;
  return Status::ok();
}

void take_back_static_segment() {
  if (moved.descriptor < 0 || !has_place_for_snapshot()) return;
  const int error = while_writers_wait(moved.data, [] {
    const int filled = fill_snapshot();
    return filled != 0 ? filled : put_snapshot_in_place();
  });
  // Then the data stays in the shared pages, which costs memory but no correctness.
  if (error != 0) drop_snapshot();
}

}  // namespace memspan::inline memory
