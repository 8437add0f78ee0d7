// SPDX-License-Identifier: Apache-2.0
// The global and static variables of the main program, moved into shared pages in place. Their
// addresses stay, and other processes can map them.
//
// One program has one such range: the writable pages from the end of what the dynamic linker
// protects (RELRO) to the end of .bss.
#pragma once

#include <cstdint>

#include "core/pages.h"
#include "core/status.h"

namespace memspan::inline memory {

// A value. Empty if the program has no data that can be moved.
struct StaticSegment {
  std::byte* base = nullptr;
  std::size_t bytes = 0;       // whole pages
  std::size_t file_bytes = 0;  // those at the beginning that are pages of the program's file
  std::uint64_t identity = 0;  // equal in processes that run the same program; never 0 if not empty

  bool is_empty() const { return bytes == 0; }
};

// The data of a main program that was linked with this library. Empty if the program loaded the
// library later (an interpreter) or has no writable data. Thread-safe.
StaticSegment find_static_segment();

// Before the data can move: puts anonymous pages with the same bytes in the place of the program's
// file's, since the kernel can make writers wait only there, and registers handlers of fork()
// before the program's own. Call it before main: a write of another thread may be lost. The pages
// stay if there is no memory, under TSan, or if writers cannot be held off.
void prepare_static_segment(StaticSegment& data);

// Moves the data to bytes [offset, offset + data.bytes) of `pages`. Other threads that write to it
// wait until then. A write may be lost if the system cannot make them wait (device/in_place.h), and
// in pages of the program's file. Does nothing if the data is already in these pages. A child of
// fork() then gets its own copy, as of all other memory. One thread at a time. After a failure the
// data is where it was.
Status move_static_segment(const StaticSegment& data, const Pages& pages, std::size_t offset);

// Gives the data private memory again, so that the pages can be released. Does nothing if the data
// was not moved. Other threads that write to it wait until then, if the system can make them wait.
void take_back_static_segment();

}  // namespace memspan::inline memory
