// SPDX-License-Identifier: Apache-2.0
// The global and static variables of the main program, moved into shared pages, in place: their
// addresses stay, but other processes can map what stands there.
//
// One program has one such range: the writable pages from the end of what the dynamic linker
// protects (RELRO) to the end of .bss.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.h"
#include "device/pages.h"

namespace memspan {

// A value. Empty when the program has none that can be moved.
struct StaticSegment {
  std::byte* base = nullptr;
  std::size_t bytes = 0;       // whole pages
  std::uint64_t identity = 0;  // equal in processes that run the same program; never 0 if not empty

  bool is_empty() const { return bytes == 0; }
};

// Of a main program that was linked with this library; empty for one that loaded it later (an
// interpreter) or that has no writable data. Thread-safe.
StaticSegment find_static_segment();

// Moves the data to bytes [offset, offset + data.bytes) of `pages`. What other threads write to
// them meanwhile may be lost. Does nothing when they are there already. From then on a child of
// fork() gets a copy of its own, as it has of all else. One thread at a time. After a failure they
// are where they were.
Status move_static_segment(const StaticSegment& data, const Pages& pages, std::size_t offset);

// Gives the data memory of their own again, so that the pages can go. Does nothing when they were
// not moved. As above for other threads.
void take_back_static_segment();

}  // namespace memspan
