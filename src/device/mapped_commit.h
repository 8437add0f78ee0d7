// SPDX-License-Identifier: Apache-2.0
// Takes the memory behind a mapping, in pieces and by several threads if there are cores for them:
//
// - Whole huge pages as huge pages, cleared and mapped, if the kernel has them.
// - The rest page by page: taken now, and cleared and mapped at the first touch.
//
// Either way a shortage is an error now and not a signal later.
#pragma once

#include <functional>

#include "core/pages.h"
#include "core/status.h"

namespace memspan::inline device {

// Transparent huge pages of shared memory: 2 MiB that the kernel takes, clears and maps in one
// step, and that need one entry of the processor's address cache (TLB) instead of 512.
//
// The kernel has two ways to make them. The files in /sys/kernel/mm/transparent_hugepage decide
// which one applies; the bracketed word counts:
//
// - shmem_enabled is advise, within_size, always or force: the first touch of an advised mapping
//   makes one.
// - shmem_enabled is never, the default: MADV_COLLAPSE makes one from a touched mapping.
// - shmem_enabled is deny, or enabled is also never: the administrator has disabled them.
//
// Missing memory is not made huge on its own, only as part of a range that is needed whole.
enum class HugePageWay { kNone, kAdvice, kCollapse };

// Decides by the texts of the two files; the text of a missing file is empty.
HugePageWay huge_page_way(std::string_view enabled, std::string_view shmem_enabled);
// Reads this system's files: about 20 microseconds.
HugePageWay huge_page_way();

// The whole huge pages in `bytes` at `place`: the number of bytes before them, and their size.
struct HugeRange {
  std::size_t at = 0;
  std::size_t bytes = 0;
};
HugeRange huge_range(const std::byte* place, std::size_t bytes);

// Takes the memory of [place, place + bytes) as huge pages if the kernel has them. The range is
// whole huge pages of a shared mapping whose file offset is a multiple of kHugePage. Existing bytes
// stay. Parts that the kernel does not make huge stay as they are: nothing fails. Thread-safe, also
// on neighbouring ranges.
void make_huge(std::byte* place, std::size_t bytes, HugePageWay way);

// Lets the kernel make huge pages at the first touch, if shmem_enabled allows it.
void advise_huge(std::byte* place, std::size_t bytes);

// [offset, offset + bytes) of `pages`, mapped at `place`, shared and writable. If `place` is null,
// the part is not mapped yet and only taken. Borrows.
struct MappedPart {
  const Pages& pages;
  std::size_t offset = 0;
  std::byte* place = nullptr;
  std::size_t bytes = 0;
};

// How huge pages of that part can be made: kNone if the mapping or the system forbids them, or its
// pages are huge already.
HugePageWay huge_page_way_of(const MappedPart& part);

// Takes all of it. Each thread asks `before` ahead of each piece whether its bytes may be taken; a
// failure ends the taking. `after` hears of each piece that was taken. Memory taken by then stays
// with the pages. The threads have ended when it returns.
using MayTake = std::function<Status(std::size_t bytes)>;
using Taken = std::function<void(std::size_t bytes)>;
Status commit_mapped(const MappedPart& part, const MayTake& before = {}, const Taken& after = {});

// The size of a piece, the size from which on several threads work, and their largest number. More
// would only wait for the kernel's locks of a mapping and a file.
inline constexpr std::size_t kCommitPiece = std::size_t{32} << 20;
inline constexpr std::size_t kThreadedCommitBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMostCommitThreads = 8;

}  // namespace memspan::inline device
