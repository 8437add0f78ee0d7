// SPDX-License-Identifier: Apache-2.0
#include "device/in_place.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "core/environment.h"
#include "core/thread.h"

namespace memspan {
namespace {

// Calls the kernel directly, because a sanitizer would check the bytes.
int move_bytes(long call, int descriptor, std::uintptr_t at, std::size_t bytes,
               std::size_t offset) {
  while (bytes > 0) {
    const long done = syscall(call, descriptor, at, bytes, offset);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return done < 0 ? errno : EIO;
    at += static_cast<std::uintptr_t>(done);
    offset += static_cast<std::size_t>(done);
    bytes -= static_cast<std::size_t>(done);
  }
  return 0;
}

// Best effort, so that later accesses do not wait for pages one by one.
void populate_in_place(std::byte* place, std::size_t bytes) {
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, Linux 5.14
  static_cast<void>(madvise(place, bytes, kPopulateWrite));
}

// `replace` returns 0 or an error number.
template <typename Replace>
Status replace_while_held(const WriteHold& hold, std::byte* place, std::size_t bytes,
                          Replace replace) {
  int error = 0;
  {
    const SignalsBlocked quiet;
    error = hold.hold(place, bytes);
    if (error == 0) {
      error = replace();
      hold.let_go(place, bytes);
    }
  }
  if (error == 0) return Status::ok();
  return Status::from_errno(fmt::format("replacing the pages of {} at {}", format_size(bytes),
                                        static_cast<const void*>(place)),
                            error);
}

}  // namespace

int write_to_memory(int descriptor, const std::byte* from, std::size_t bytes, std::size_t offset) {
  return move_bytes(SYS_pwrite64, descriptor, reinterpret_cast<std::uintptr_t>(from), bytes,
                    offset);
}

int read_from_memory(int descriptor, std::byte* to, std::size_t bytes, std::size_t offset) {
  return move_bytes(SYS_pread64, descriptor, reinterpret_cast<std::uintptr_t>(to), bytes, offset);
}

int map_over(std::byte* place, std::size_t bytes, int descriptor, std::size_t offset) {
  return syscall(SYS_mmap, place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor,
                 offset) == -1
             ? errno
             : 0;
}

int move_over(std::byte* place, std::size_t bytes, std::byte* from) {
  return syscall(SYS_mremap, from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place) == -1 ? errno
                                                                                             : 0;
}

Status share_in_place(const WriteHold& hold, std::byte* place, std::size_t bytes,
                      const Pages& pages, std::size_t offset) {
  const int descriptor = pages.descriptor();
  Status status = replace_while_held(hold, place, bytes, [=] {
    const int error = write_to_memory(descriptor, place, bytes, offset);
    return error != 0 ? error : map_over(place, bytes, descriptor, offset);
  });
  if (status.is_ok()) populate_in_place(place, bytes);
  return status;
}

Status unshare_in_place(const WriteHold& hold, std::byte* place, std::size_t bytes,
                        const Pages& pages, std::size_t offset, std::byte* spare) {
  const int descriptor = pages.descriptor();
  populate_in_place(spare, bytes);
  return replace_while_held(hold, place, bytes, [=] {
    const int error = read_from_memory(descriptor, spare, bytes, offset);
    return error != 0 ? error : move_over(place, bytes, spare);
  });
}

}  // namespace memspan
