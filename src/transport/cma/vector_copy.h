// SPDX-License-Identifier: Apache-2.0
// Moves many pieces between this process and another one's memory by few system calls. At each end
// it merges pieces that continue the previous one.
//
// The kernel checks that memory exists, not that it is the right memory: its owner must stay the
// same.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "transport/link.h"

namespace memspan::inline transport {

// Lets the other processes of this user move this process's memory where the Yama module restricts
// that to parents.
void let_peers_copy();

// Moves one piece. False: not all of it; VectorCopy reports why.
bool move_piece(pid_t process, MoveDirection direction, std::byte* local, std::uint64_t remote,
                std::size_t bytes);

// Collects pieces and moves them in order. Lives on the stack (32 KiB); one thread.
class VectorCopy : NotCopyable {
 public:
  static constexpr std::size_t kMost = 1024;  // the kernel's limit (IOV_MAX)

  VectorCopy(pid_t process, MoveDirection direction) : process_(process), direction_(direction) {}

  bool is_empty() const { return local_count_ == 0; }
  bool is_full() const { return local_count_ == kMost || remote_count_ == kMost; }
  // Must not be full.
  void add(std::byte* local, std::uint64_t remote, std::size_t bytes);
  // Moves and removes the added pieces. If not all are moved, returns kPeerLost, kInvalidArgument
  // (no memory at one of the ends) or kSystem; kAuth or kNotSupported: the kernel moves nothing
  // between these two processes.
  Status flush();
  // Bytes moved by the last flush().
  std::uint64_t moved() const { return moved_; }

 private:
  Status explain(int error, const iovec& local, const iovec& remote) const;

  const pid_t process_;
  const MoveDirection direction_;
  std::uint64_t moved_ = 0;
  std::size_t local_count_ = 0;
  std::size_t remote_count_ = 0;
  std::array<iovec, kMost> local_;
  std::array<iovec, kMost> remote_;
};

}  // namespace memspan::inline transport
