// SPDX-License-Identifier: Apache-2.0
#include "device/huge_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <fstream>

// Linux 5.14 and 6.1; older kernels return EINVAL.
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

namespace memspan {
namespace {

std::string read_setting(const char* name) {
  std::string line;
  std::getline(std::ifstream(std::string("/sys/kernel/mm/transparent_hugepage/") + name), line);
  return line;
}

// "always inherit [never]" -> "never".
std::string_view chosen_word(std::string_view text) {
  const std::size_t begin = text.find('['), end = text.find(']');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return {};
  return text.substr(begin + 1, end - begin - 1);
}

}  // namespace

HugePageWay huge_page_way(std::string_view enabled, std::string_view shmem_enabled) {
  const std::string_view shared = chosen_word(shmem_enabled);
  for (const std::string_view word : {"advise", "within_size", "always", "force"})
    if (shared == word) return HugePageWay::kAdvice;
  const std::string_view all = chosen_word(enabled);
  if (shared == "never" && !all.empty() && all != "never") return HugePageWay::kCollapse;
  return HugePageWay::kNone;
}

HugePageWay huge_page_way() {
  return huge_page_way(read_setting("enabled"), read_setting("shmem_enabled"));
}

HugeRange huge_range(const std::byte* place, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(place);
  const std::size_t before = align_up(address, kHugePage) - address;
  if (before >= bytes) return {};
  return {before, (bytes - before) / kHugePage * kHugePage};
}

void make_huge(std::byte* place, std::size_t bytes, HugePageWay way) {
  if (way == HugePageWay::kNone || bytes < kHugePage) return;
  if (way == HugePageWay::kAdvice && madvise(place, bytes, MADV_HUGEPAGE) != 0) return;
  // Touches one page of each, in a way that cannot end the process. With advice, that makes the
  // huge page. To collapse, the kernel needs an existing page.
  for (std::size_t at = 0; at < bytes; at += kHugePage)
    if (madvise(place + at, page_size(), MADV_POPULATE_WRITE) != 0) return;
  // The kernel tries one after the other and returns the last failure.
  if (way == HugePageWay::kCollapse) static_cast<void>(madvise(place, bytes, MADV_COLLAPSE));
}

void advise_huge(std::byte* place, std::size_t bytes) {
  const HugeRange range = huge_range(place, bytes);
  if (range.bytes != 0) static_cast<void>(madvise(place + range.at, range.bytes, MADV_HUGEPAGE));
}

}  // namespace memspan
