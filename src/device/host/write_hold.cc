// SPDX-License-Identifier: Apache-2.0
#include "device/host/write_hold.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/pages.h"

namespace memspan {
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
  uffdio_api api = {};
  api.api = UFFD_API;
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
  uffdio_range range = {};
  range.start = reinterpret_cast<std::uintptr_t>(base);
  range.len = bytes;
  return range;
}

}  // namespace

Result<WriteHold> WriteHold::make() {
  const auto known = known_features();
  if (!known.is_ok()) return known.status();
  if ((*known & kShared) == 0)
    return not_supported("this kernel's userfaultfd does not protect shared memory (Linux 5.19)");
  Fd faults = open_faults();
  uffdio_api api = {};
  api.api = UFFD_API;
  api.features = *known & (kShared | kUnpopulated);
  if (!faults.is_valid() || ioctl(faults.get(), UFFDIO_API, &api) != 0)
    return not_supported(std::strerror(errno));
  return WriteHold(std::move(faults), (*known & kUnpopulated) == 0);
}

int WriteHold::hold(std::byte* base, std::size_t bytes) const {
  if (needs_pages_) read_pages(base, bytes);
  uffdio_register registered = {};
  registered.range = range_of(base, bytes);
  registered.mode = UFFDIO_REGISTER_MODE_WP;
  if (ioctl(faults_.get(), UFFDIO_REGISTER, &registered) != 0) return errno;
  uffdio_writeprotect protect = {};
  protect.range = registered.range;
  protect.mode = UFFDIO_WRITEPROTECT_MODE_WP;
  if (ioctl(faults_.get(), UFFDIO_WRITEPROTECT, &protect) == 0) return 0;
  const int error = errno;
  let_go(base, bytes);
  return error;
}

void WriteHold::let_go(std::byte* base, std::size_t bytes) const {
  uffdio_range range = range_of(base, bytes);
  // Also removes the protection. It finds nothing to do if the pages were replaced.
  static_cast<void>(ioctl(faults_.get(), UFFDIO_UNREGISTER, &range));
  static_cast<void>(ioctl(faults_.get(), UFFDIO_WAKE, &range));
}

}  // namespace memspan
