// SPDX-License-Identifier: Apache-2.0
// Takes the memory behind a mapping, in pieces and by several threads if there are cores for them:
//
// - Whole huge pages as huge pages, cleared and mapped, if the kernel has them (huge_pages.h).
// - The rest page by page: taken now, and cleared and mapped at the first touch.
//
// Either way a shortage is an error now and not a signal later.
#pragma once

#include <functional>

#include "core/pages.h"
#include "core/status.h"
#include "device/huge_pages.h"

namespace memspan {

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
// failure ends the taking. Memory taken by then stays with the pages. The threads have ended when
// it returns.
using MayTake = std::function<Status(std::size_t bytes)>;
Status commit_mapped(const MappedPart& part, const MayTake& before = {});

// The size of a piece, the size from which on several threads work, and their largest number. More
// would only wait for the kernel's locks of a mapping and a file.
inline constexpr std::size_t kCommitPiece = std::size_t{32} << 20;
inline constexpr std::size_t kThreadedCommitBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMostCommitThreads = 8;

}  // namespace memspan
