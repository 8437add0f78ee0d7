// SPDX-License-Identifier: Apache-2.0
#include "memory/claim.h"

#include <fcntl.h>

#include <limits>
#include <vector>

#include "core/mutex.h"
#include "core/random.h"
#include "memory/budget.h"

namespace memspan::inline memory {
namespace {

// Each process has such a part of the places in a file.
constexpr off_t kPart = off_t{1} << 42;
constexpr off_t kParts = std::numeric_limits<off_t>::max() / kPart;
// A program that makes locks without end stops no other one.
constexpr int kMostLocks = 1 << 14;

// The lock in [begin, end) that the kernel finds first; nullopt without one, or if it has no
// end.
std::optional<flock> lock_in(int descriptor, off_t begin, off_t end) {
  flock found{};
  found.l_type = F_WRLCK;  // conflicts with every lock
  found.l_whence = SEEK_SET;
  found.l_start = begin;
  found.l_len = end - begin;
  if (fcntl(descriptor, F_OFD_GETLK, &found) != 0 || found.l_type == F_UNLCK || found.l_len <= 0)
    return std::nullopt;
  return found;
}

// All claims of this process.
struct Shared {
  Mutex mutex;
  std::uint64_t bytes MEMSPAN_GUARDED_BY(mutex) = 0;
  std::vector<ClaimFile> files MEMSPAN_GUARDED_BY(mutex);  // while there are bytes

  // A claim of `before` bytes is one of `after` now. One that was made before fork() is not in the
  // sum of the child.
  void change(std::uint64_t before, std::uint64_t after) MEMSPAN_REQUIRES(mutex) {
    const std::uint64_t sum = bytes - std::min(bytes, before) + after;
    if (sum == bytes) return;
    if (files.empty()) {  // before anything changes: it may throw
      const std::vector<std::string> paths = memory_limit_files();
      files = std::vector<ClaimFile>(paths.begin(), paths.end());
    }
    bytes = sum;
    for (ClaimFile& file : files) file.resize(bytes);
    if (bytes == 0) files.clear();
  }

  // A child of fork() has no claims: its descriptors would keep those of a parent that has died.
  void forget_in_child() MEMSPAN_REQUIRES(mutex) {
    bytes = 0;
    files.clear();
  }
};

constexpr auto& shared = held_at_fork<Shared>;

}  // namespace

ClaimFile::ClaimFile(const std::string& limit_file)
    : file_(::open(limit_file.c_str(), O_RDONLY | O_CLOEXEC)) {
  constexpr int kTries = 16;  // another program may have locked all places
  for (int i = 0; i < kTries; ++i) {
    place_ = static_cast<off_t>(random_number() % kParts) * kPart;
    if (!lock_in(file_.get(), place_, place_ + kPart)) return;
  }
}

void ClaimFile::resize(std::uint64_t bytes) {
  const auto size = static_cast<off_t>(std::min(bytes, static_cast<std::uint64_t>(kPart)));
  if (size > size_) change(F_RDLCK, size_, size);
  if (size < size_) change(F_UNLCK, size, size_);
  size_ = size;
}

void ClaimFile::change(short type, off_t begin, off_t end) {
  flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = place_ + begin;
  lock.l_len = end - begin;
  static_cast<void>(fcntl(file_.get(), F_OFD_SETLK, &lock));
}

void Claim::set(std::uint64_t bytes) {
  Shared& all = shared();
  MutexLock lock(all.mutex);
  all.change(bytes_, bytes);
  bytes_ = bytes;
}

void Claim::subtract(std::uint64_t bytes) {
  Shared& all = shared();
  MutexLock lock(all.mutex);
  const std::uint64_t before = bytes_.fetch_sub(bytes);
  all.change(before, before - bytes);
}

std::uint64_t claimed_on(const std::string& limit_file) {
  const Fd file(::open(limit_file.c_str(), O_RDONLY | O_CLOEXEC));
  std::uint64_t sum = 0;
  std::vector<std::pair<off_t, off_t>> rest = {{0, std::numeric_limits<off_t>::max()}};
  for (int asked = 0; asked < kMostLocks && !rest.empty(); ++asked) {
    const auto [begin, end] = rest.back();
    rest.pop_back();
    const auto found = lock_in(file.get(), begin, end);
    if (!found) continue;
    const off_t first = std::max(begin, found->l_start);
    const off_t last = std::min(end, found->l_start + found->l_len);
    sum += static_cast<std::uint64_t>(last - first);
    if (begin < first) rest.emplace_back(begin, first);
    if (last < end) rest.emplace_back(last, end);
  }
  return sum;
}

}  // namespace memspan::inline memory
