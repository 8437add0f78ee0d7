// SPDX-License-Identifier: Apache-2.0
// Transparent huge pages of shared memory: 2 MiB that the kernel takes, clears and maps in one
// step, and that need one entry of the processor's address cache (TLB) instead of 512.
//
// The kernel has two ways to them, and what the system allows decides which (the files are in
// /sys/kernel/mm/transparent_hugepage; the bracketed word counts):
//
// - shmem_enabled is advise, within_size, always or force: a first touch of an advised mapping
//   gives one.
// - shmem_enabled is never, as it is unless somebody changed it: MADV_COLLAPSE makes one of a
//   touched mapping.
// - shmem_enabled is deny, or enabled is never: the administrator wants none.
//
// Memory that is not there yet is never made huge here by itself: only a range that is wanted
// whole.
#pragma once

#include <cstddef>
#include <string_view>

#include "device/pages.h"

namespace memspan {

enum class HugePageWay { kNone, kAdvice, kCollapse };

// By the texts of the two files; one that is missing is empty.
HugePageWay huge_page_way(std::string_view enabled, std::string_view shmem_enabled);
// Of this system, read now: about 20 microseconds.
HugePageWay huge_page_way();

// The whole huge pages in `bytes` at `place`: how many bytes lie before them, and how many they
// have.
struct HugeRange {
  std::size_t at = 0;
  std::size_t bytes = 0;
};
HugeRange huge_range(const std::byte* place, std::size_t bytes);

// Takes the memory of [place, place + bytes), whole huge pages of a shared mapping whose offset in
// its file is a multiple of kHugePage, as huge pages where the kernel has them to give; bytes that
// are there stay. What it did not give is as before: nothing fails. Thread-safe, also on
// neighbouring ranges.
void make_huge(std::byte* place, std::size_t bytes, HugePageWay way);

// Lets the kernel give huge pages at the first touch, where shmem_enabled says so.
void advise_huge(std::byte* place, std::size_t bytes);

}  // namespace memspan
