// SPDX-License-Identifier: Apache-2.0
#include "capi/failures.h"

#include <fmt/format.h>
#include <memspan/memspan.h>
#include <unistd.h>

#include <cstdio>

#include "capi/errors.h"
#include "capi/out_of_memory.h"
#include "capi/process_state.h"
#include "core/interrupt.h"
#include "core/lifetime.h"
#include "core/log.h"
#include "node/wait.h"
#include "observe/trace.h"

namespace memspan::capi {

MEMSPAN_REMEDY(
    kNotInAJob, "not-in-a-job",
    "This process has not started memspan, has ended it, or the start failed.",
    "Call shmem_init or aclshmemx_init_attr first, check its result, and free before the end.");

namespace {

MEMSPAN_REMEDY(kForkedChild, "forked-child",
               "A child of fork() has no job, no pool and no connection to the store.",
               "Start memspan in the child; in Python's multiprocessing use the method spawn.");
MEMSPAN_REMEDY(kPeOutOfRange, "pe-out-of-range",
               "PEs are 0 to shmem_n_pes() - 1, and 0 to shmem_team_n_pes() - 1 in a team.",
               "Check the number. If shmem_n_pes() returns 1, start the program by oshrun -n N.");
MEMSPAN_REMEDY(kNotSymmetric, "not-symmetric-memory",
               "It is local or freed memory, another PE's address, or longer than its block.",
               "Pass what shmem_malloc returned on this PE, or a global or static variable.");

constinit std::atomic<ErrorHandler> error_handler{nullptr};
constinit std::atomic<memspan_end_handler_t> end_handler{nullptr};
constinit thread_local memspan_end_handler_t thread_end_handler = nullptr;

// The thread's own comes first. The load pairs with the release of memspan_set_end_handler().
std::array<memspan_end_handler_t, 2> end_handlers() {
  return {thread_end_handler, end_handler.load(std::memory_order_acquire)};
}

template <Code code = Code::kInvalidArgument, typename... Values>
[[noreturn]] void end_with(const char* call, fmt::format_string<const Values&...> text,
                           const Values&... values) try {
  require_started(call);
  end_process(call, Status(code, fmt::format(text, values...)));
}
MEMSPAN_CATCH_AND_END(call)

// A link's failure names its peer.
bool names_a_noted_death(const WaitContext& waiting, const std::string& message) {
  for (int rank = 0; rank < waiting.segment->peers(); ++rank)
    if (waiting.segment->peer(rank).is_dead() &&
        message.find(waiting.name_of(rank)) != std::string::npos)
      return true;
  return false;
}

// Between hosts a connection breaks before the death is noted. Waits for the note: the job's result
// and the handler's argument come from the PE that died first.
Status with_cause(const char* call, const Status& status) {
  constexpr auto kPatience = std::chrono::seconds(1);
  if (status.code() != Code::kPeerLost || !is_started() || process_state.world->nodes().is_one())
    return status;
  WaitContext& waiting = process_state.world->waiting();
  const auto is_noted = [&] {
    return waiting.segment->header().alarms.load(std::memory_order_acquire) !=
           waiting.known_alarms.load(std::memory_order_relaxed);
  };
  if (is_noted() || names_a_noted_death(waiting, status.message())) return status;
  const Status noted = wait_for(waiting, WaitsFor::kSync, call, Deadline::after(kPatience),
                                is_noted, [] { return -1; });
  const int dead = first_dead_peer(*waiting.segment);
  if (!noted.is_ok() || dead < 0) return status;
  return {Code::kPeerLost,
          fmt::format("{}; {}", status.message(), lost_peer(waiting, dead).message())};
}

Status not_started() {
  if (process_state.is_forked)
    return {Code::kForked,
            std::string("called in a child of fork(), which is in no job") + kForkedChild};
  return {Code::kUnavailable,
          std::string("called before shmem_init or after shmem_finalize") + kNotInAJob};
}

[[noreturn]] void exit_at_once(int code) {
  try {
    write_trace();
  } catch (const std::bad_alloc&) {
    // The process ends without its trace.
  }
  if (!process_state.is_forked) flush_and_exit(code);
  std::fflush(nullptr);  // its only thread holds no stream
  _exit(code);
}

}  // namespace

void end_job(int code) {
  process_state.world->request_exit(code);
  exit_at_once(code);
}

void end_process_if_asked() {
  if (!is_started()) return;
  const NodeHeader& header = process_state.world->segment().header();
  // Pairs with the release of NodeSegment::request_exit().
  if (header.exit_requested.load(std::memory_order_acquire) != 2) return;
  exit_at_once(header.exit_code.load(std::memory_order_relaxed));
}

void end_process(const char* call, const Status& status) try {
  end_process_if_asked();
  for (const memspan_end_handler_t handler : end_handlers()) {
    if (handler == nullptr) continue;
    remember_error(call, status.message());
    handler(shown_name(call), end_reason(status), status.message().c_str());
  }
  log_line(LogLevel::kFatal, fmt::format("{}: {}", shown_name(call), status.message()));
  exit_at_once(1);
}
MEMSPAN_CATCH_AND_END(call)

void end_out_of_memory(const char* function) {
  const char* const call = name_of_failed(function);
  end_process_if_asked();
  keep_out_of_memory(call);
  for (const memspan_end_handler_t handler : end_handlers())
    if (handler != nullptr) handler(shown_name(call), MEMSPAN_END_OUT_OF_MEMORY, kNoMemoryMessage);
  log_out_of_memory(call, log_line, LogLevel::kFatal);
  exit_at_once(1);
}

void set_error_handler(ErrorHandler handler) {
  error_handler.store(handler, std::memory_order_release);
  if (is_started()) apply_error_handler(*process_state.world);
}

void apply_error_handler(World& world) {
  world.waiting().survives_deaths.store(error_handler.load(std::memory_order_relaxed) != nullptr,
                                        std::memory_order_relaxed);
}

void fail(const char* call, const Status& reason) try {
  const Status status = with_cause(call, reason);
  // Pairs with the release of set_error_handler().
  const ErrorHandler handler = error_handler.load(std::memory_order_acquire);
  if (status.code() != Code::kPeerLost || handler == nullptr || !is_started())
    end_process(call, status);
  remember_error(call, status.message());
  // First, so that the handler may use teams without the dead PE.
  acknowledge_deaths(process_state.world->waiting());
  handler(call, first_dead_peer(process_state.world->segment()), status.message().c_str());
}
MEMSPAN_CATCH_AND_END(call)

void require_started(const char* call) try {
  if (!is_started()) [[unlikely]]
    end_process(call, not_started());
}
MEMSPAN_CATCH_AND_END(call)

void end_for_bad_access(const char* call, const char* argument, const void* address,
                        std::size_t bytes, int pe) try {
  require_started(call);
  const RouteTable& routes = process_state.routes;
  if (static_cast<std::uint32_t>(pe) >= routes.peers)
    end_with(call, "pe is {}, allowed are 0 to {}{}", pe, routes.peers - 1, kPeOutOfRange);
  if (address == nullptr) end_for_null(call, argument, address);
  if (routes.data.contains(address, bytes))
    end_with(call,
             "{} is {}, a global or static variable, and PE {} runs another program than this one",
             argument, address, pe);
  const SymmetricRegion* const device = routes.device_region();
  end_with(call,
           "{} is {} ({} bytes), which is not entirely in the symmetric heap, {:#x} to {:#x}, nor "
           "in the program's global and static variables, {:#x} to {:#x}{}{}",
           argument, address, bytes, routes.heap.base, routes.heap.base + routes.heap.bytes,
           routes.data.base, routes.data.base + routes.data.bytes,
           device == nullptr ? std::string()
                             : fmt::format(", nor in the symmetric heap in memory of a device, "
                                           "{:#x} to {:#x}",
                                           device->base, device->base + device->bytes),
           kNotSymmetric);
}
MEMSPAN_CATCH_AND_END(call)

void end_for_null(const char* call, const char* argument, const void* address) {
  if (address == nullptr) end_with(call, "{} is NULL", argument);
  end_with(call, "{} is {}, which is not memory", argument, address);
}

void end_for_misaligned_word(const char* call, const char* argument, const void* address,
                             std::size_t bytes) {
  end_with(call, "{} is {}, not a multiple of the word's {} bytes", argument, address, bytes);
}

void end_for_device_memory(const char* call, const char* argument, const void* address) {
  end_with<Code::kNotSupported>(
      call,
      "{} is {}, memory of a device (DEVICE_SIDE), and the host cannot do "
      "this there; it needs memory of the host (HOST_SIDE)",
      argument, address);
}

void end_for_bad_number(const char* call, const char* argument, long value, long least, long most) {
  end_with(call, "{} is {}, allowed are {} to {}", argument, value, least, most);
}

void end_for_bad_handle(const char* call, const char* argument, const void* handle) {
  end_with(call, "{} is {}, which is not a valid handle", argument, handle);
}

}  // namespace memspan::capi

using namespace memspan::capi;

MEMSPAN_EXPORT void memspan_set_end_handler(memspan_end_handler_t handler) {
  end_handler.store(handler, std::memory_order_release);
}

MEMSPAN_EXPORT memspan_end_handler_t memspan_set_thread_end_handler(memspan_end_handler_t handler) {
  return std::exchange(thread_end_handler, handler);
}

MEMSPAN_EXPORT memspan_interrupt_handler_t
memspan_set_thread_interrupt_handler(memspan_interrupt_handler_t handler) {
  return memspan::set_thread_interrupt_handler(handler);
}
