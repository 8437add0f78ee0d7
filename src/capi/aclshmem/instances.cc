// SPDX-License-Identifier: Apache-2.0
// Several jobs of one process, as CANN SHMEM numbers them.
#include "capi/aclshmem/instances.h"

#include <fmt/format.h>

#include <cstring>

#include "capi/errors.h"
#include "capi/process_state.h"
#include "capi/smem/stream_table.h"
#include "core/environment.h"

namespace memspan::capi {
namespace {

constexpr const char* kRange = "SHMEM_INSTANCE_PORT_RANGE";

// Failures of a stream's work stay with it.
Status finish_streams() {
  const Duration limit =
      is_started() ? process_state.world->waiting().limit.load() : Duration::zero();
  const Deadline deadline = limit == Duration::zero() ? Deadline::never() : Deadline::after(limit);
  finish_default_stream();
  for (const void* handle : streams().handles())
    if (auto used = streams().use(handle)) {
      if (used->is_own_work()) return invalid("work of a stream cannot choose an instance");
      Event behind_all;
      MEMSPAN_PASS(behind_all.record(*used));
      MEMSPAN_PASS(behind_all.synchronize(deadline));
    }
  return Status::ok();
}

// The first port and the last one.
Result<std::pair<std::int64_t, std::int64_t>> parse_range(std::string_view text) {
  constexpr std::int64_t kMostPort = 65535;
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos)
    return invalid("{} is \"{}\", allowed are two ports, FIRST:LAST", kRange, text);
  MEMSPAN_TRY_ASSIGN(const std::int64_t first,
                     parse_integer(kRange, text.substr(0, colon), 1, kMostPort),
                     "reading the first port");
  MEMSPAN_TRY_ASSIGN(const std::int64_t last,
                     parse_integer(kRange, text.substr(colon + 1), first, kMostPort),
                     "reading the last port");
  return std::pair(first, last);
}

int no_instance(const char* call, std::uint64_t number) {
  return shmem_failure(call, SHMEM_INVALID_VALUE, "instance_id is {}, and there is no such job",
                       number);
}

}  // namespace

int switch_instance(const char* call, std::uint64_t number) {
  if (number == process_state.instance) return 0;
  if (const Status finished = finish_streams(); !finished.is_ok())
    return shmem_result(call, finished);
  choose_instance(number);
  return 0;
}

int complete_place(const char* call, std::uint64_t number, shmem_init_attr_t& attributes) {
  const std::string_view place(attributes.ip_port,
                               strnlen(attributes.ip_port, sizeof attributes.ip_port));
  if (!place.ends_with(":0")) return 0;
  const auto text = environment(kRange);
  if (!text) {
    if (number == 0) return 0;
    return shmem_failure(call, SHMEM_INVALID_VALUE,
                         "ip_port is \"{}\", and {}=FIRST:LAST says no ports for instances", place,
                         kRange);
  }
  const auto range = parse_range(*text);
  if (!range.is_ok()) return shmem_result(call, range.status());
  const auto [first, last] = *range;
  const std::int64_t port = first + static_cast<std::int64_t>(number);
  if (port > last)
    return shmem_failure(call, SHMEM_INVALID_VALUE,
                         "instance_id is {}, and {}={} has ports for 0 to {}", number, kRange,
                         *text, last - first);
  const std::string full = fmt::format("{}{}", place.substr(0, place.size() - 1), port);
  if (full.size() >= sizeof attributes.ip_port)
    return shmem_failure(call, SHMEM_INVALID_VALUE,
                         "\"{}\" has {} characters, allowed are up to 63", full, full.size());
  std::memcpy(attributes.ip_port, full.c_str(), full.size() + 1);
  return 0;
}

}  // namespace memspan::capi

using namespace memspan::capi;

MEMSPAN_EXPORT aclshmem_instance_ctx* aclshmemx_instance_ctx_get(void) {
  static aclshmem_instance_ctx instance{};
  if (!is_started()) return nullptr;
  instance.id = process_state.instance;
  instance.instance = process_state.world;
  return &instance;
}

MEMSPAN_EXPORT int aclshmemx_instance_ctx_set(uint64_t instance_id) try {
  if (!has_instance(instance_id)) return no_instance(__func__, instance_id);
  return switch_instance(__func__, instance_id);
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int aclshmemx_finalize(uint64_t instance_id) try {
  if (!has_instance(instance_id)) return no_instance(__func__, instance_id);
  if (const int failure = switch_instance(__func__, instance_id); failure != 0) return failure;
  return aclshmem_finalize();
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int aclshmem_finalize(void) try {
  if (!is_started()) return 0;
  finish_default_stream();
  const int result = shmem_result("shmem_finalize", stop("shmem_finalize"));
  if (result != 0) abandon();
  choose_instance(0);
  return result;
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)
