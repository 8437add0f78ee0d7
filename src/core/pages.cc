// SPDX-License-Identifier: Apache-2.0
#include "core/pages.h"

#include <fmt/format.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cstdlib>

#include "core/environment.h"

namespace memspan::inline core {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// The kernel would end the process (SIGXFSZ) instead of failing the call.
Status check_file_size_limit(std::size_t bytes) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
      bytes <= limit.rlim_cur)
    return Status::ok();
  return {
      Code::kOutOfMemory,
      fmt::format("shared memory of {} ({} bytes) is more than the {} ({} bytes) that a file may "
                  "have (RLIMIT_FSIZE; \"ulimit -f unlimited\" lifts it)",
                  format_size(bytes), bytes, format_size(limit.rlim_cur), limit.rlim_cur)};
}

Result<Fd> make_sealed(std::size_t bytes, const char* label, unsigned kind) {
  if (Status status = check_file_size_limit(bytes); !status.is_ok()) return status;
  Fd descriptor(memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING | kind));
  if (!descriptor.is_valid())
    return Status::from_errno(errno == EPERM || errno == ENOSYS
                                  ? "the system refuses memfd_create, of which all shared memory "
                                    "is made (use a seccomp profile that allows it)"
                                  : "memfd_create");
  if (ftruncate(descriptor.get(), static_cast<off_t>(bytes)) != 0)
    return Status::from_errno(fmt::format("reserving {} of shared memory", format_size(bytes)));
  if (fcntl(descriptor.get(), F_ADD_SEALS, kSeals) != 0)
    return Status::from_errno("sealing a memfd");
  return descriptor;
}

std::size_t free_huge_pages() {
  const std::string pages =
      first_line_of("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
  return std::strtoull(pages.c_str(), nullptr, 10);
}

}  // namespace

std::size_t page_size() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

Result<Pages> Pages::create(std::size_t bytes, const char* label) {
  bytes = align_up(bytes, page_size());
  MEMSPAN_PASS_ASSIGN(Fd descriptor, make_sealed(bytes, label, 0));
  return Pages(std::move(descriptor), bytes);
}

// The pages are taken at once: later there could be too few, and an access would end the process.
Result<Pages> Pages::create_huge(std::size_t bytes, const char* label) {
  bytes = align_up(bytes, kHugePage);
  if (free_huge_pages() < bytes / kHugePage)
    return Status(Code::kUnavailable, "too few huge pages are free");
  auto descriptor = make_sealed(bytes, label, MFD_HUGETLB | MFD_HUGE_2MB);
  if (!descriptor.is_ok()) return Status(Code::kUnavailable, descriptor.status().message());
  Pages pages(std::move(*descriptor), bytes);
  if (Status status = pages.commit(0, bytes); !status.is_ok())
    return Status(Code::kUnavailable, status.message());
  return pages;
}

Result<Pages> Pages::adopt_unsealed(Fd descriptor, std::size_t bytes) {
  struct stat info {};
  if (fstat(descriptor.get(), &info) != 0)
    return Status::from_errno("fstat of a memory descriptor");
  if (!S_ISREG(info.st_mode))
    return Status(Code::kInvalidArgument, "the memory descriptor is not of memory or of a file");
  if (static_cast<std::size_t>(info.st_size) >= bytes)
    return Pages(std::move(descriptor), static_cast<std::size_t>(info.st_size));
  bytes = align_up(bytes, static_cast<std::size_t>(info.st_blksize));
  if (ftruncate(descriptor.get(), static_cast<off_t>(bytes)) != 0)
    return Status::from_errno(
        fmt::format("growing a memory descriptor from {} to {} bytes", info.st_size, bytes));
  return Pages(std::move(descriptor), bytes);
}

// The block size does not show it: it is also 2 MiB if transparent huge pages are always tried.
bool Pages::is_huge() const {
  constexpr auto kHugeFiles = 0x958458f6;  // HUGETLBFS_MAGIC
  struct statfs info {};
  return fstatfs(descriptor_.get(), &info) == 0 && info.f_type == kHugeFiles;
}

Result<Fd> Pages::duplicate() const {
  return memspan::duplicate(descriptor_.get(), "duplicating a memory descriptor");
}

Result<Pages> Pages::adopt(Fd descriptor) {
  int seals = fcntl(descriptor.get(), F_GET_SEALS);
  if (seals < 0) return Status::from_errno("reading the seals of a memory descriptor");
  if ((seals & kSeals) != kSeals)
    return Status(Code::kInvalidArgument,
                  "the memory descriptor could still be resized by its sender");
  struct stat info {};
  if (fstat(descriptor.get(), &info) != 0)
    return Status::from_errno("fstat of a memory descriptor");
  return Pages(std::move(descriptor), static_cast<std::size_t>(info.st_size));
}

Status Pages::commit(std::size_t offset, std::size_t bytes) const {
  if (offset > bytes_ || bytes > bytes_ - offset)
    return {Code::kInvalidArgument,
            fmt::format("committing [{}, {}) of {} bytes", offset, offset + bytes, bytes_)};
  for (std::size_t done = 0; done < bytes;) {
    std::size_t step = std::min(kCommitStep, bytes - done);
    if (fallocate(descriptor_.get(), 0, static_cast<off_t>(offset + done),
                  static_cast<off_t>(step)) == 0)
      done += step;
    else if (errno != EINTR)
      return Status::from_errno(fmt::format("taking {} of shared memory", format_size(step)));
  }
  return Status::ok();
}

}  // namespace memspan::inline core
