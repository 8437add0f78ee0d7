// SPDX-License-Identifier: Apache-2.0
#include "device/pages.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "core/environment.h"

namespace memspan {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr std::size_t kCommitStep = std::size_t{64} << 20;

}  // namespace

std::size_t page_size() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

namespace {

// The kernel would end the process (SIGXFSZ) instead of failing the call.
Status check_file_size_limit(std::size_t bytes) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
      bytes <= limit.rlim_cur)
    return Status::ok();
  return {
      Code::kOutOfMemory,
      fmt::format("shared memory of {} ({} bytes) is more than the {} ({} bytes) that a file may "
                  "have here (RLIMIT_FSIZE; \"ulimit -f unlimited\" lifts it)",
                  format_size(bytes), bytes, format_size(limit.rlim_cur), limit.rlim_cur)};
}

}  // namespace

Result<Pages> Pages::create(std::size_t bytes, const char* label) {
  bytes = align_up(bytes, page_size());
  if (Status status = check_file_size_limit(bytes); !status.is_ok()) return status;
  Fd descriptor(memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!descriptor.is_valid()) return Status::from_errno("memfd_create");
  if (ftruncate(descriptor.get(), static_cast<off_t>(bytes)) != 0)
    return Status::from_errno(fmt::format("reserving {} of shared memory", format_size(bytes)));
  if (fcntl(descriptor.get(), F_ADD_SEALS, kSeals) != 0)
    return Status::from_errno("sealing a memfd");
  return Pages(std::move(descriptor), bytes);
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

}  // namespace memspan
