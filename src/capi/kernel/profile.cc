// SPDX-License-Identifier: Apache-2.0
// What kernels count by SHMEMI_PROF_START and _END, and what aclshmemx_get_prof() shows.
#include <fmt/format.h>
#include <memspan/kernel_calls.h>

#include <array>
#include <cstdio>

#include "capi/aclshmem/instances.h"
#include "core/environment.h"
#include "core/lifetime.h"
#include "device/host/grid.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace memspan::capi {
namespace {

constexpr const char* kChoice = "SHMEM_CYCLE_PROF_PE";

// Reads a counter with a constant rate.
std::int64_t now_in_cycles() {
#if defined(__x86_64__)
  return static_cast<std::int64_t>(__rdtsc());
#elif defined(__aarch64__)
  std::int64_t count = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(count));
  return count;
#else
  return std::chrono::steady_clock::now().time_since_epoch().count();
#endif
}

// The PE whose time is counted; -1: no PE.
int chosen_pe() {
  static const int chosen = [] {
    const auto text = environment(kChoice);
    if (!text) return -1;
    const auto pe = parse_integer(kChoice, *text, 0, kMostPes - 1);
    if (pe.is_ok()) return static_cast<int>(*pe);
    log_line(LogLevel::kWarn, fmt::format("{}; nothing is counted", pe.status().message()));
    return -1;
  }();
  return chosen;
}

// Never destroyed: a block may count while the process ends.
aclshmem_prof_pe_t& counts() {
  static auto* const made = new aclshmem_prof_pe_t{};
  return *made;
}

bool is_counted(int frame) {
  return frame >= 0 && frame < ACLSHMEM_CYCLE_PROF_FRAME_CNT &&
         current_block() < ACLSHMEM_CYCLE_PROF_MAX_BLOCK && chosen_pe() >= 0 &&
         chosen_pe() == aclshmem_my_pe();
}

// When this thread began each frame; made for threads that count.
std::int64_t& begun(int frame) {
  struct Times {
    std::array<std::int64_t, ACLSHMEM_CYCLE_PROF_FRAME_CNT> of_frame{};
  };
  return thread_object<Times>().of_frame[static_cast<std::size_t>(frame)];
}

void print_counts() {
  const aclshmem_prof_pe_t& all = counts();
  for (int block = 0; block < ACLSHMEM_CYCLE_PROF_MAX_BLOCK; ++block)
    for (int frame = 0; frame < ACLSHMEM_CYCLE_PROF_FRAME_CNT; ++frame)
      if (const auto count = all.block_prof[block].ccount[frame]; count != 0)
        std::printf("PE %d block %d frame %d: %lld times, %lld cycles\n", aclshmem_my_pe(), block,
                    frame, static_cast<long long>(count),
                    static_cast<long long>(all.block_prof[block].cycles[frame]));
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_EXPORT void memspan_kernel_begin_frame(int frame) try {
  if (is_counted(frame)) begun(frame) = now_in_cycles();
}
MEMSPAN_CATCH_AND_END(__func__)

MEMSPAN_EXPORT void memspan_kernel_end_frame(int frame) try {
  if (!is_counted(frame)) return;
  const std::int64_t taken = now_in_cycles() - begun(frame);
  aclshmem_prof_block_t& of_block = counts().block_prof[current_block()];
  __atomic_fetch_add(&of_block.ccount[frame], 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&of_block.cycles[frame], taken, __ATOMIC_RELAXED);
}
MEMSPAN_CATCH_AND_END(__func__)

MEMSPAN_EXPORT void aclshmemx_get_prof(aclshmem_prof_pe_t** out_profs, bool verbose) try {
  counts().pe_id = aclshmem_my_pe();
  if (out_profs != nullptr) *out_profs = &counts();
  if (verbose) print_counts();
}
MEMSPAN_CATCH()
MEMSPAN_EXPORT void aclshmemx_show_prof(void) try { print_counts(); }
MEMSPAN_CATCH()
