// SPDX-License-Identifier: Apache-2.0
// Moving many pieces between this process and another one's memory by few system calls. Pieces that
// continue the one before, at either end, are one there.
//
// The kernel checks that there is memory, not that it is the right one: its owner has to stay what
// it was.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/status.h"
#include "transport/link.h"

namespace memspan {

// Collects pieces and moves them in their order. Lives on the stack (32 KiB); one thread.
class VectorCopy {
 public:
  static constexpr std::size_t kMost = 1024;  // the kernel's limit (IOV_MAX)

  VectorCopy(pid_t process, MoveDirection direction) : process_(process), direction_(direction) {}
  VectorCopy(const VectorCopy&) = delete;
  VectorCopy& operator=(const VectorCopy&) = delete;

  bool is_empty() const { return local_count_ == 0; }
  bool is_full() const { return local_count_ == kMost || remote_count_ == kMost; }
  // Not when full.
  void add(std::byte* local, std::uint64_t remote, std::size_t bytes);
  // Moves what was added, and is empty then. kPeerLost, kAuth (not allowed to), kInvalidArgument
  // (no memory at one of the ends), kNotSupported or kSystem say why not all of it was.
  Status flush();
  // Bytes, by the last flush().
  std::uint64_t moved() const { return moved_; }

 private:
  ssize_t call(std::size_t local, std::size_t remote) const;
  Status explain(int error, const iovec& local, const iovec& remote) const;

  const pid_t process_;
  const MoveDirection direction_;
  std::uint64_t moved_ = 0;
  std::size_t local_count_ = 0;
  std::size_t remote_count_ = 0;
  std::array<iovec, kMost> local_;
  std::array<iovec, kMost> remote_;
};

}  // namespace memspan
