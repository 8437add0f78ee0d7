// SPDX-License-Identifier: Apache-2.0
#include "perf/worker.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sched.h>
#include <shmem.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <utility>

#include "core/cpu.h"
#include "perf/baselines.h"
#include "perf/events.h"
#include "perf/meter.h"
#include "perf/test_table.h"

namespace memspan::perf {
namespace {

// The file that shmem_init() came from: which of two libraries this is.
std::string library() {
  Dl_info about = {};
  // Not &shmem_init, which may be a place in this program.
  if (::dladdr(::dlsym(RTLD_DEFAULT, "shmem_init"), &about) == 0) return "unknown";
  char* const resolved = ::realpath(about.dli_fname, nullptr);
  std::string path = resolved == nullptr ? about.dli_fname : resolved;
  std::free(resolved);  // NOLINT(cppcoreguidelines-no-malloc): because realpath(3) allocates
  return path;
}

// By plain loads and stores to a word of PE 0's; 0 where the last PE has none of its memory mapped,
// or is on the same core.
Result<double> cache_line(Meter& meter) {
  MEMSPAN_TRY_ASSIGN(std::byte* const memory, meter.symmetric(2 * kFalseSharingRange),
                     "a cache line");
  auto* const words = reinterpret_cast<long*>(memory);
  auto* const core = words + kFalseSharingRange / sizeof(long);
  *core = ::sched_getcpu();
  shmem_barrier_all();
  const bool is_apart = shmem_long_g(core, 0) != shmem_long_g(core, meter.far());
  void* const line = shmem_ptr(words, 0);
  double ns = 0;
  const bool takes_part = meter.rank() == 0 || meter.rank() == meter.far();
  shmem_barrier_all();
  // Both come to the same answer: the memory of one host is mapped both ways.
  if (takes_part && is_apart && line != nullptr && shmem_ptr(words, meter.far()) != nullptr)
    ns = measure_cache_line(*static_cast<std::atomic<std::uint64_t>*>(line),
                            meter.rank() == 0 ? Turn::kFirst : Turn::kSecond);
  shmem_barrier_all();
  return ns;
}

// No other PE of the job computes during this.
Status tell_start(Meter& meter, const Tell& tell) {
  MEMSPAN_TRY_ASSIGN(std::byte* const word, meter.symmetric(sizeof(long)), "the machine");
  const bool is_near = shmem_ptr(word, meter.far()) != nullptr;
  MEMSPAN_TRY_ASSIGN(const double line, cache_line(meter), "the machine");
  const std::vector<std::size_t>& sizes = meter.plan().sizes;
  MEMSPAN_TRY_ASSIGN(std::byte* const memory, meter.symmetric(sizes.back()), "the machine");
  if (meter.rank() == 0) {
    Baselines baselines = measure_baselines(sizes, memory);
    baselines.cache_line = line;
    MEMSPAN_PASS(tell(to_event("start", Start{.library = library(),
                                              .pes = meter.size(),
                                              .one_host = is_near,
                                              .baselines = std::move(baselines)})));
  }
  meter.free_symmetric();
  return Status::ok();
}

Status measure_all(Meter& meter, const Tell& tell) {
  MEMSPAN_PASS(tell_start(meter, tell));
  for (const std::string& name : meter.plan().tests) {
    const Test& test = *find_test(name);
    MEMSPAN_TRY(test.run(meter, test), name);
    meter.free_symmetric();
  }
  return meter.rank() == 0 ? tell(json::Value().set("event", "end")) : Status::ok();
}

}  // namespace

Status work(const Plan& plan, const Tell& tell) {
  shmem_init();
  if (shmem_n_pes() < 2)
    return {Code::kInvalidArgument,
            fmt::format("there is {} PE, and a measurement needs 2 at least", shmem_n_pes())};
  {
    auto meter =
        Meter::make(plan, [&](const Row& row) { static_cast<void>(tell(to_event("row", row))); });
    const Status status = meter.is_ok() ? measure_all(**meter, tell) : meter.status();
    if (!status.is_ok()) {
      // The other PEs may wait for this one.
      fmt::print(stderr, "memspan-perf: PE {}: {}\n", shmem_my_pe(), status.message());
      shmem_global_exit(1);
    }
  }
  shmem_finalize();
  return Status::ok();
}

}  // namespace memspan::perf
