// SPDX-License-Identifier: Apache-2.0
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
#pragma once

#include "core/pages.h"

namespace memspan {

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

}  // namespace memspan
