// SPDX-License-Identifier: Apache-2.0
#include "capi/kernel/device_requests.h"

#include <memspan/kernel_calls.h>

#include <atomic>

#include "capi/aclshmem/teams.h"
#include "capi/collective_calls.h"
#include "capi/failures.h"
#include "pgas/rma.h"

namespace memspan::capi {
namespace {

void* address_of(const memspan_kernel_question& question) {
  return reinterpret_cast<void*>(question.address);  // NOLINT(performance-no-int-to-ptr)
}

void put(memspan_kernel_request& request) {
  const memspan_kernel_question& what = request.question;
  if (what.rows == 1)
    return memspan_kernel_put(address_of(what), request.payload, what.row_bytes, what.pe);
  memspan_kernel_put_rows(address_of(what), request.payload, what.pitch,
                          static_cast<std::ptrdiff_t>(what.row_bytes), what.row_bytes, what.rows,
                          what.pe);
}
void get(memspan_kernel_request& request) {
  const memspan_kernel_question& what = request.question;
  if (what.rows == 1)
    return memspan_kernel_get(request.payload, address_of(what), what.row_bytes, what.pe);
  memspan_kernel_get_rows(request.payload, address_of(what),
                          static_cast<std::ptrdiff_t>(what.row_bytes), what.pitch, what.row_bytes,
                          what.rows, what.pe);
}

// Not memspan_kernel_quiet(), which waits for what is asked here.
void quiet() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  require("a kernel's quiet", pgas::quiet_links(process_state.routes));
}

// Not memspan_kernel_sync(), whose grid is one of the host.
void meet_team(const char* call, int team, Status (*collective)(const char* call, Team& team)) {
  require(call, collective(call, need_team(call, team)));
}

std::uint64_t as_answer(int number) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(number));
}

}  // namespace

std::uint64_t answer_request(memspan_kernel_request& request) {
  const memspan_kernel_question& what = request.question;
  const auto kind = static_cast<int>(what.atomic_kind);
  const auto width = static_cast<int>(what.atomic_width);
  switch (what.operation) {
    case MEMSPAN_KERNEL_ASK_PUT:
      put(request);
      return 0;
    case MEMSPAN_KERNEL_ASK_GET:
      get(request);
      return 0;
    case MEMSPAN_KERNEL_ASK_CHANGE:
      memspan_kernel_change_atomic(kind, width, address_of(what), what.operand, what.pe);
      return 0;
    case MEMSPAN_KERNEL_ASK_FETCH:
      return memspan_kernel_fetch_atomic(kind, width, address_of(what), what.operand, what.compare,
                                         what.pe);
    case MEMSPAN_KERNEL_ASK_FENCE:
      memspan_kernel_fence();
      return 0;
    case MEMSPAN_KERNEL_ASK_QUIET:
      quiet();
      return 0;
    case MEMSPAN_KERNEL_ASK_TEAM_MY_PE:
      return as_answer(memspan_kernel_team_my_pe(what.team));
    case MEMSPAN_KERNEL_ASK_TEAM_N_PES:
      return as_answer(memspan_kernel_team_n_pes(what.team));
    case MEMSPAN_KERNEL_ASK_TRANSLATE:
      return as_answer(memspan_kernel_team_translate_pe(what.team, what.pe, what.other_team));
    case MEMSPAN_KERNEL_ASK_SYNC:
      meet_team("a kernel's sync", what.team, capi::sync);
      return 0;
    case MEMSPAN_KERNEL_ASK_BARRIER:
      meet_team("a kernel's barrier", what.team, capi::barrier);
      return 0;
    default:
      break;
  }
  end_for_bad_number("a kernel's request", "operation", static_cast<long>(what.operation),
                     MEMSPAN_KERNEL_ASK_PUT, MEMSPAN_KERNEL_ASK_BARRIER);
}

}  // namespace memspan::capi
