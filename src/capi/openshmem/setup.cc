// SPDX-License-Identifier: Apache-2.0
// Start, end, and queries of the job.

#include <cstdio>
#include <cstring>

#include "capi/access.h"
#include "capi/openshmem/profiling_alias.h"
#include "capi/store_security.h"
#include "core/environment.h"

namespace memspan::capi {
namespace {

// How long the slowest process may take to come.
constexpr std::int64_t kDefaultStartSeconds = 120;
constexpr const char* kStartVariable = "MEMSPAN_INIT_TIMEOUT";

Result<Membership> join_by_environment() {
  MEMSPAN_TRY_ASSIGN(auto seconds, environment_integer(kStartVariable, 1, 1'000'000),
                     "reading the time limit");
  MEMSPAN_TRY_ASSIGN(const StoreSecurity security, chosen_security(), "protecting the store");
  const Rendezvous* const again = process_state.again;
  return join_from_environment(std::chrono::seconds(seconds.value_or(kDefaultStartSeconds)),
                               security, again == nullptr ? std::nullopt : std::optional(*again));
}

// SHMEM_DEBUG, SHMEM_VERSION and SHMEM_INFO, or the deprecated SMA_ names.
bool is_asked_for(const char* name, const char* old_name) {
  return environment(name).has_value() || environment(old_name).has_value();
}

void say_what_was_asked() {
  if (process_state.world->rank() != 0) return;
  if (is_asked_for("SHMEM_VERSION", "SMA_VERSION"))
    std::fprintf(stderr, "memspan %s, OpenSHMEM %d.%d\n", MEMSPAN_VERSION, SHMEM_MAJOR_VERSION,
                 SHMEM_MINOR_VERSION);
  if (is_asked_for("SHMEM_INFO", "SMA_INFO"))
    std::fputs(
        "SHMEM_SYMMETRIC_SIZE  bytes of the symmetric heap; k, m, g, t may follow (default 1g)\n"
        "SHMEM_VERSION         print the version at start\n"
        "SHMEM_INFO            print this at start\n"
        "SHMEM_DEBUG           log more (as MEMSPAN_LOG_LEVEL=DEBUG); compare what the members of "
        "a\n"
        "                      collective give (slower); set it for all PEs or none\n"
        "MEMSPAN_INIT_TIMEOUT  seconds that the start may take (default 120)\n"
        "MEMSPAN_JOB_SECRET_FILE  file of a secret that all members share; protects the store\n"
        "MEMSPAN_LOG_LEVEL     DEBUG, INFO, WARN (default), ERROR or FATAL\n"
        "MEMSPAN_COMMIT        promise (default), allocation or touch: when memory is taken\n",
        stderr);
}

Status start_by_environment(const char* call, int threads) {
  const bool is_debugging = is_asked_for("SHMEM_DEBUG", "SMA_DEBUG");
  if (is_debugging) set_log_level(LogLevel::kDebug);
  bool was_started = is_started();
  Status status =
      start(Start{call, join_by_environment, heap_size_from_environment}, Sharing::kCounted);
  if (!status.is_ok()) return status;
  // While one thread of such a program waits, no other one makes a call, unless kernels ask for it.
  std::atomic<bool>& has_threads = process_state.world->waiting().has_threads;
  if (!was_started || threads == SHMEM_THREAD_MULTIPLE)
    has_threads = threads == SHMEM_THREAD_MULTIPLE || process_state.device_job != nullptr;
  if (was_started) return status;
  process_state.compares_collectives = is_debugging;
  say_what_was_asked();
  return status;
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_PROFILED(void, init, (void)) try {
  require("shmem_init", start_by_environment("shmem_init", SHMEM_THREAD_SINGLE));
}
MEMSPAN_CATCH_AND_END(__func__)

MEMSPAN_PROFILED(int, init_thread, (int requested, int* provided)) try {
  const bool is_valid = requested >= SHMEM_THREAD_SINGLE && requested <= SHMEM_THREAD_MULTIPLE;
  const Status status =
      is_valid ? start_by_environment("shmem_init_thread", requested)
               : Status(Code::kInvalidArgument,
                        "requested is " + std::to_string(requested) + ", allowed are 0 to 3");
  if (!status.is_ok()) {
    log_line(LogLevel::kError, "shmem_init_thread: " + status.message());
    return 1;
  }
  if (provided != nullptr) *provided = SHMEM_THREAD_MULTIPLE;
  return 0;
}
MEMSPAN_CATCH(1)

MEMSPAN_PROFILED(void, query_thread, (int* provided)) {
  require_started("shmem_query_thread");
  *provided = SHMEM_THREAD_MULTIPLE;
}

MEMSPAN_PROFILED(void, query_initialized, (int* initialized)) {
  *initialized = is_started() ? 1 : 0;
}

MEMSPAN_PROFILED(void, finalize, (void)) try {
  // The rank stays known after the end; a child of fork() has none.
  if (!is_started() && process_state.rank >= 0) {
    log_line(LogLevel::kWarn, "shmem_finalize: called again; the first call has left the job");
    return;
  }
  require_started("shmem_finalize");
  if (!require("shmem_finalize", stop("shmem_finalize"))) abandon();
}
MEMSPAN_CATCH_AND_END(__func__)

MEMSPAN_PROFILED(void, global_exit, (int status)) try {
  require_started("shmem_global_exit");
  end_job(status);
}
MEMSPAN_CATCH_AND_END(__func__)

MEMSPAN_PROFILED(int, my_pe, (void)) {
  if (process_state.routes.peers == 0) [[unlikely]]
    require_started("shmem_my_pe");
  return process_state.rank;
}

MEMSPAN_PROFILED(int, n_pes, (void)) {
  if (process_state.routes.peers == 0) [[unlikely]]
    require_started("shmem_n_pes");
  return static_cast<int>(process_state.routes.peers);
}

MEMSPAN_PROFILED(int, pe_accessible, (int pe)) {
  require_started("shmem_pe_accessible");
  return static_cast<std::uint32_t>(pe) < process_state.routes.peers ? 1 : 0;
}

MEMSPAN_PROFILED(int, addr_accessible, (const void* addr, int pe)) {
  require_started("shmem_addr_accessible");
  return process_state.routes.find(addr, 1, pe) != nullptr ? 1 : 0;
}

MEMSPAN_PROFILED(void*, ptr, (const void* dest, int pe)) {
  return host_address(const_cast<void*>(dest), pe);
}

MEMSPAN_PROFILED(void, info_get_version, (int* major, int* minor)) {
  if (major != nullptr) *major = SHMEM_MAJOR_VERSION;
  if (minor != nullptr) *minor = SHMEM_MINOR_VERSION;
}

MEMSPAN_PROFILED(void, info_get_name, (char* name)) {
  static_assert(sizeof(SHMEM_VENDOR_STRING) <= SHMEM_MAX_NAME_LEN);
  if (name == nullptr) return;
  std::memcpy(name, SHMEM_VENDOR_STRING, sizeof(SHMEM_VENDOR_STRING));
}

// For profiling tools to put something in front; the library itself has nothing to switch.
MEMSPAN_PROFILED(void, pcontrol, ([[maybe_unused]] int level, ...)) {}

// ---- names of earlier versions of OpenSHMEM and of SGI's SHMEM, for what has another name today

#define MEMSPAN_DEPRECATED(result, name, parameters) \
  MEMSPAN_PROFILED_AS(, result, name, p##name, parameters)

// It cannot fail but by ending the process, and the number has never meant anything.
MEMSPAN_DEPRECATED(void, start_pes, ([[maybe_unused]] int npes)) {
  if (!is_started()) pshmem_init();
}
// One that calls the function of today's name with the arguments that follow.
#define MEMSPAN_RENAMED(result, name, today, parameters, ...) \
  MEMSPAN_PROFILED_AS(, result, name, p##name, parameters) {  \
    return today(__VA_ARGS__);                                \
  }
MEMSPAN_RENAMED(int, _my_pe, pshmem_my_pe, (void))
MEMSPAN_RENAMED(int, _num_pes, pshmem_n_pes, (void))
MEMSPAN_RENAMED(void*, shmalloc, pshmem_malloc, (size_t size), size)
MEMSPAN_RENAMED(void*, shmemalign, pshmem_align, (size_t alignment, size_t size), alignment, size)
MEMSPAN_RENAMED(void*, shrealloc, pshmem_realloc, (void* ptr, size_t size), ptr, size)
MEMSPAN_RENAMED(void, shfree, pshmem_free, (void* ptr), ptr)

MEMSPAN_PROFILED(long, swap, (long* dest, long value, int pe)) {
  return pshmem_long_atomic_swap(dest, value, pe);
}

// Memory has been coherent for long: there is no cache to clear.
MEMSPAN_PROFILED(void, clear_cache_inv, (void)) {}
MEMSPAN_PROFILED(void, set_cache_inv, (void)) {}
MEMSPAN_PROFILED(void, clear_cache_line_inv, ([[maybe_unused]] void* dest)) {}
MEMSPAN_PROFILED(void, set_cache_line_inv, ([[maybe_unused]] void* dest)) {}
MEMSPAN_PROFILED(void, udcflush, (void)) {}
MEMSPAN_PROFILED(void, udcflush_line, ([[maybe_unused]] void* dest)) {}
