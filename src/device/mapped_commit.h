// SPDX-License-Identifier: Apache-2.0
// Taking the memory behind a mapping, in pieces and by several threads where there are cores for
// them:
//
// - Whole huge pages as huge pages, cleared and mapped, where the kernel gives them (huge_pages.h).
// - The rest page by page: taken, and cleared and mapped at the first touch, or with
//   MEMSPAN_POPULATE=all at once.
//
// Either way a shortage is an error here and not a signal later.
#pragma once

#include <cstddef>
#include <functional>

#include "core/status.h"
#include "device/pages.h"

namespace memspan {

// How, as the environment says. A value.
struct CommitSettings {
  bool may_be_huge = true;    // MEMSPAN_THP: auto or never
  bool is_populated = false;  // MEMSPAN_POPULATE: none or all

  // kInvalidArgument names the variable, its value and what is allowed.
  static Result<CommitSettings> from_environment();
};

// [offset, offset + bytes) of `pages`, which is mapped at `place`, shared and writable; null: not
// yet, so that it is only taken. Borrows.
struct MappedPart {
  const Pages& pages;
  std::size_t offset = 0;
  std::byte* place = nullptr;
  std::size_t bytes = 0;
};

// Takes all of it. `before` is asked before each piece, by any of the threads, whether its bytes
// may be taken; its failure ends the taking. What was taken by then stays with the pages. The
// threads have ended when it returns.
using MayTake = std::function<Status(std::size_t bytes)>;
Status commit_mapped(const MappedPart& part, const CommitSettings& settings,
                     const MayTake& before = {});

// A piece, and from how many bytes on there are several threads; how many there are at most: the
// kernel's locks for a mapping and a file give no more.
inline constexpr std::size_t kCommitPiece = std::size_t{32} << 20;
inline constexpr std::size_t kThreadedCommitBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMostCommitThreads = 8;

}  // namespace memspan
