// SPDX-License-Identifier: Apache-2.0
// How a process copies large blocks here, by the measurements that each process makes.
#include <fmt/format.h>
#include <sys/mman.h>

#include "core/environment.h"
#include "device/host/copy.h"
#include "info/gather.h"

namespace memspan::info {
namespace {

constexpr std::size_t kMostBytes = std::size_t{16} << 20;

// Two blocks of touched memory, or null.
std::byte* map_blocks() {
  void* const place = ::mmap(nullptr, 2 * kMostBytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  return place == MAP_FAILED ? nullptr : static_cast<std::byte*>(place);
}

void measure(std::byte* blocks) {
  constexpr unsigned kTrial = CopyChoice::kTries * CopyChoice::kMostWays;
  constexpr unsigned kDisturbed = 8;
  for (std::size_t bytes = kMeasuredCopyBytes; bytes <= kMostBytes; bytes *= 4)
    for (unsigned i = 0; i < kTrial + kDisturbed; ++i)
      copy_large(blocks, blocks + kMostBytes, bytes);
}

}  // namespace

Finding gather_copies() {
  Finding finding{.group = "memory", .key = "copies"};
  if (const Status setting = check_copy_setting(); !setting.is_ok()) {
    finding.text = setting.message();
    return judged(std::move(finding), Judgement::kProblem, "one of these", "unset MEMSPAN_COPY");
  }
  if (copy_ways().size() == 1) {
    finding.text = fmt::format("by \"{}\", the only way here", copy_ways().front().name);
    finding.value = copy_ways().front().name;
    return finding;
  }
  if (std::byte* const blocks = map_blocks(); blocks != nullptr) {
    measure(blocks);
    ::munmap(blocks, 2 * kMostBytes);
  }
  json::Value::Array sizes;
  for (const CopyRate& rate : copy_rates()) {
    finding.text += fmt::format("{}{} by \"{}\" at {:.1f} GB/s", finding.text.empty() ? "" : ", ",
                                format_size(rate.bytes), rate.way, rate.bytes_per_second / 1e9);
    sizes.emplace_back(json::Value()
                           .set("bytes", rate.bytes)
                           .set("way", rate.way)
                           .set("bytes_per_second", rate.bytes_per_second));
  }
  if (finding.text.empty()) finding.text = "not measured: the processor was never free for a copy";
  finding.value = std::move(sizes);
  return finding;
}

}  // namespace memspan::info
