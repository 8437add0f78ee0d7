// SPDX-License-Identifier: Apache-2.0
#include "device/in_place.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "core/environment.h"
#include "core/thread.h"

namespace memspan::inline device {
namespace {

// From <linux/userfaultfd.h>, which is older than the kernel on some systems.
constexpr std::uint64_t kShared = std::uint64_t{1} << 12;       // WP_HUGETLBFS_SHMEM, Linux 5.19
constexpr std::uint64_t kUnpopulated = std::uint64_t{1} << 13;  // WP_UNPOPULATED, Linux 6.4
constexpr int kUserModeOnly = 1;                                // UFFD_USER_MODE_ONLY, Linux 5.11

Fd open_faults() {
  Fd faults(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK)));
  if (!faults.is_valid() && errno == EPERM)
    faults = Fd(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | kUserModeOnly)));
  return faults;
}

Status not_supported(const char* why) {
  return {Code::kNotSupported,
          fmt::format("writers cannot be held off while pages are replaced: {}", why)};
}

// The features that the kernel supports. To enable them, another descriptor is needed.
Result<std::uint64_t> known_features() {
  const Fd faults = open_faults();
  uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
  if (faults.is_valid() && ioctl(faults.get(), UFFDIO_API, &api) == 0) return api.features;
  if (errno == ENOSYS) return not_supported("this kernel has no userfaultfd");
  if (errno == EPERM)
    return not_supported(
        "the system refuses userfaultfd (in a container, use a seccomp profile that allows it)");
  return not_supported(std::strerror(errno));
}

__attribute__((no_sanitize("address", "thread"))) void read_pages(const std::byte* base,
                                                                  std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += page_size())
    static_cast<void>(*static_cast<const volatile std::byte*>(base + at));
}

uffdio_range range_of(const std::byte* base, std::size_t bytes) {
  return {.start = reinterpret_cast<std::uintptr_t>(base), .len = bytes};
}

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

// Calls the kernel directly, because a sanitizer's own data may be in the held pages.
int control(const Fd& faults, unsigned long request, void* argument) {
  return static_cast<int>(syscall(SYS_ioctl, faults.get(), request, argument));
}

// The halves one by one if it is more than one mapping, which kernels before 6.3 refuse. Returns 0
// or an error number.
int protect(const Fd& faults, uffdio_range range) {
  uffdio_writeprotect protected_range{.range = range, .mode = UFFDIO_WRITEPROTECT_MODE_WP};
  if (control(faults, UFFDIO_WRITEPROTECT, &protected_range) == 0) return 0;
  if (errno != ENOENT || range.len <= page_size()) return errno;
  const std::uint64_t half = range.len / 2 / page_size() * page_size();
  const int error = protect(faults, {.start = range.start, .len = half});
  return error != 0 ? error
                    : protect(faults, {.start = range.start + half, .len = range.len - half});
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

Result<WriteHold> WriteHold::make() {
  MEMSPAN_PASS_ASSIGN(const auto known, known_features());
  if ((known & kShared) == 0)
    return not_supported("this kernel's userfaultfd does not protect shared memory (Linux 5.19)");
  Fd faults = open_faults();
  uffdio_api api{.api = UFFD_API, .features = known & (kShared | kUnpopulated), .ioctls = 0};
  if (!faults.is_valid() || ioctl(faults.get(), UFFDIO_API, &api) != 0)
    return not_supported(std::strerror(errno));
  return WriteHold(std::move(faults), (known & kUnpopulated) == 0);
}

int WriteHold::hold(std::byte* base, std::size_t bytes) const {
  if (needs_pages_) read_pages(base, bytes);
  uffdio_register registered{
      .range = range_of(base, bytes), .mode = UFFDIO_REGISTER_MODE_WP, .ioctls = 0};
  if (control(faults_, UFFDIO_REGISTER, &registered) != 0) return errno;
  const int error = protect(faults_, registered.range);
  if (error != 0) let_go(base, bytes);
  return error;
}

void WriteHold::let_go(std::byte* base, std::size_t bytes) const {
  uffdio_range range = range_of(base, bytes);
  // Also removes the protection. It finds nothing to do if the pages were replaced.
  static_cast<void>(control(faults_, UFFDIO_UNREGISTER, &range));
  static_cast<void>(control(faults_, UFFDIO_WAKE, &range));
}

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

}  // namespace memspan::inline device
