// SPDX-License-Identifier: Apache-2.0
// Pages with the same bytes put in the place of others, at the same address: shared ones for
// private ones, so that other processes can map what stands there, and the reverse.
//
//   hold writers ─► copy ─► mmap(MAP_FIXED) or mremap(MREMAP_FIXED) ─► let writers go
//
// The kernel replaces a mapping in one step: no thread ever finds nothing there. A process that is
// killed in the middle leaves nothing, for the pages have no name.
#pragma once

#include <cstddef>

#include "core/status.h"
#include "device/host/write_hold.h"
#include "device/pages.h"

namespace memspan {

// ---- steps. They make system calls and touch nothing but the stack, errno and what they are
// given; no sanitizer looks at the bytes. 0 or the error's number.

// All of [from, from + bytes) to the descriptor's memory at `offset`, and back.
int write_to_memory(int descriptor, const std::byte* from, std::size_t bytes, std::size_t offset);
int read_from_memory(int descriptor, std::byte* to, std::size_t bytes, std::size_t offset);
// Whole pages of the descriptor's memory, shared, in the place of what is mapped there.
int map_over(std::byte* place, std::size_t bytes, int descriptor, std::size_t offset);
// The mapping at `from` in the place of what is mapped there.
int move_over(std::byte* place, std::size_t bytes, std::byte* from);

// ---- the whole, with writers held off: no write of another thread is lost. A few milliseconds for
// a piece of kPieceInPlace, which callers keep to. Whole pages, which hold neither this thread's
// stack nor its errno. kOutOfMemory, kSystem: everything is as before.

inline constexpr std::size_t kPieceInPlace = std::size_t{4} << 20;

// [offset, offset + bytes) of `pages` for the private pages there.
Status share_in_place(const WriteHold& hold, std::byte* place, std::size_t bytes,
                      const Pages& pages, std::size_t offset);
// Private pages for those of [offset, offset + bytes) of `pages`; `spare` are as many, private, to
// be written, and gone afterwards. What another process writes to `pages` meanwhile may be lost.
Status unshare_in_place(const WriteHold& hold, std::byte* place, std::size_t bytes,
                        const Pages& pages, std::size_t offset, std::byte* spare);

}  // namespace memspan
