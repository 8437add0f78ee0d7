// SPDX-License-Identifier: Apache-2.0
#include "transport/cma/vector_copy.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstring>

namespace memspan::inline transport {
namespace {

MEMSPAN_REMEDY(kMemoryDenied, "memory-access-denied",
               "memspan did not allocate this memory, so the kernel requires the right to ptrace.",
               "Run all processes as one user with `sysctl kernel.yama.ptrace_scope=1` (docker run "
               "--cap-add SYS_PTRACE), or use memory from memspan, which needs no such right.");

void append(std::array<iovec, VectorCopy::kMost>& entries, std::size_t& count, std::byte* base,
            std::size_t bytes) {
  if (count > 0)
    if (iovec& last = entries[count - 1];
        static_cast<std::byte*>(last.iov_base) + last.iov_len == base) {
      last.iov_len += bytes;
      return;
    }
  entries[count++] = {base, bytes};
}

// Skips the moved bytes; `first` becomes the next entry.
void advance(std::array<iovec, VectorCopy::kMost>& entries, std::size_t& first, std::size_t count,
             std::size_t bytes) {
  while (first < count && bytes >= entries[first].iov_len) bytes -= entries[first++].iov_len;
  if (first == count) return;
  entries[first].iov_base = static_cast<std::byte*>(entries[first].iov_base) + bytes;
  entries[first].iov_len -= bytes;
}

bool is_readable(const iovec& here) {
  char byte = 0;
  const iovec to{&byte, 1};
  const iovec from{here.iov_base, 1};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1;
}

auto* call_of(MoveDirection direction) {
  return direction == MoveDirection::kPut ? process_vm_writev : process_vm_readv;
}

}  // namespace

void let_peers_copy() {
  // Without Yama it fails, and is not needed.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}

bool move_piece(pid_t process, MoveDirection direction, std::byte* local, std::uint64_t remote,
                std::size_t bytes) {
  while (bytes > 0) {
    const iovec here{local, bytes};
    const iovec there{reinterpret_cast<void*>(remote), bytes};
    const ssize_t moved = call_of(direction)(process, &here, 1, &there, 1, 0);
    if (moved <= 0) return false;
    local += moved;
    remote += static_cast<std::uint64_t>(moved);
    bytes -= static_cast<std::size_t>(moved);
  }
  return true;
}

void VectorCopy::add(std::byte* local, std::uint64_t remote, std::size_t bytes) {
  append(local_, local_count_, local, bytes);
  append(remote_, remote_count_, reinterpret_cast<std::byte*>(remote), bytes);
}

Status VectorCopy::flush() {
  std::size_t local = 0;
  std::size_t remote = 0;
  Status status;
  moved_ = 0;
  while (local < local_count_) {
    // A call moves fewer bytes at a missing page or after 2 GiB.
    const ssize_t moved = process_ <= 0
                              ? -1
                              : call_of(direction_)(process_, &local_[local], local_count_ - local,
                                                    &remote_[remote], remote_count_ - remote, 0);
    if (moved <= 0) {
      status = explain(moved == 0 ? EFAULT : errno, local_[local], remote_[remote]);
      break;
    }
    moved_ += static_cast<std::uint64_t>(moved);
    advance(local_, local, local_count_, static_cast<std::size_t>(moved));
    advance(remote_, remote, remote_count_, static_cast<std::size_t>(moved));
  }
  local_count_ = remote_count_ = 0;
  return status;
}

Status VectorCopy::explain(int error, const iovec& local, const iovec& remote) const {
  const char* const call =
      direction_ == MoveDirection::kPut ? "process_vm_writev" : "process_vm_readv";
  if (process_ <= 0)
    return {Code::kNotSupported,
            fmt::format("{}: the peer is in another pid namespace: {} (errno {})", call,
                        std::strerror(ESRCH), ESRCH)};
  switch (error) {
    case ESRCH:
      return {Code::kPeerLost, fmt::format("process {} is gone", process_)};
    case EPERM:
    case EACCES:
      return {Code::kAuth,
              fmt::format("{}: the kernel does not let this process reach the memory of process "
                          "{}: {} (errno {}){}",
                          call, process_, std::strerror(error), error, kMemoryDenied)};
    case ENOSYS:
      return {Code::kNotSupported,
              fmt::format("{}: {} (errno {}): the kernel lacks CONFIG_CROSS_MEMORY_ATTACH, or a "
                          "seccomp profile refuses it",
                          call, std::strerror(error), error)};
    case EFAULT:
      if (!is_readable(local))
        return {Code::kInvalidArgument,
                fmt::format("there is no memory at {} of this process", local.iov_base)};
      return {Code::kInvalidArgument,
              fmt::format("there is no memory at {} of process {}, or one of the ends is not "
                          "writable",
                          remote.iov_base, process_)};
    default:
      return Status::from_errno(fmt::format("moving to or from process {}", process_), error);
  }
}

}  // namespace memspan::inline transport
