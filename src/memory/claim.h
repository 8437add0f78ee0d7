// SPDX-License-Identifier: Apache-2.0
// Memory that processes of this host may still take: what they were promised and what they are
// taking. Each sees the claims of all others, so that two of them do not count on the same memory.
//
// A claim is a read lock of the kernel on the file that limits the memory: /proc/meminfo, and the
// limit of each control group. The number of its bytes is the size of the claim, and each process
// locks from a place of its own on. So a claim ends with its process, however it ends, and needs
// neither permissions nor a folder. Processes that see different mounts of /proc share only the
// files of their control groups. Any process can claim: claims protect from mistakes, not from
// attacks.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "core/fd.h"
#include "core/status.h"

namespace memspan::inline memory {

// Claims nothing at first. Thread-safe.
class Claim : NotCopyable {
 public:
  Claim() = default;
  explicit Claim(std::uint64_t bytes) { set(bytes); }
  ~Claim() { set(0); }
  // Nothing fails: where the kernel has no such locks, the others do not see the claim.
  void set(std::uint64_t bytes);
  void subtract(std::uint64_t bytes);
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::atomic<std::uint64_t> bytes_{0};
};

// The lock of a process on one of the files, released with this object. One thread at a time.
class ClaimFile {
 public:
  explicit ClaimFile(const std::string& limit_file);
  void resize(std::uint64_t bytes);

 private:
  void change(short type, off_t begin, off_t end);

  Fd file_;
  off_t place_ = 0;
  off_t size_ = 0;
};

// The sum of all claims on that file, those of this process included.
std::uint64_t claimed_on(const std::string& limit_file);

}  // namespace memspan::inline memory
