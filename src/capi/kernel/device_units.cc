// SPDX-License-Identifier: Apache-2.0
// The translation units with kernels for a device, and which state they have.
#include <fmt/format.h>
#include <memspan/kernel_state.h>

#include <utility>

#include "capi/kernel/device_job.h"
#include "capi/out_of_memory.h"
#include "capi/process_state.h"
#include "core/log.h"
#include "core/mutex.h"

#define MEMSPAN_EXPORT extern "C" __attribute__((visibility("default")))

namespace memspan::capi {
namespace {

struct Units {
  Mutex mutex;
  memspan_kernel_unit* first MEMSPAN_GUARDED_BY(mutex) = nullptr;
};
constinit Units units;

void warn(const char* what, std::string_view why) {
  log_line(LogLevel::kWarn, fmt::format("kernels on devices: {}: {}", what, why));
}

void show_to(const memspan_kernel_unit& unit) {
  static constexpr memspan_kernel_state kNone{};
  const DeviceJob* const job = process_state.device_job;
  if (const char* const why = unit.set_state(job == nullptr ? &kNone : &job->state());
      why != nullptr)
    warn("setting their state", why);
}
void show_to_all() MEMSPAN_REQUIRES(units.mutex) {
  for (const memspan_kernel_unit* unit = units.first; unit != nullptr; unit = unit->next)
    show_to(*unit);
}

void begin() MEMSPAN_REQUIRES(units.mutex) {
  if (units.first == nullptr || !is_started()) return;
  auto made = DeviceJob::start(*units.first);
  if (!made.is_ok()) return warn("they cannot run in this job", made.status().message());
  process_state.device_job = std::move(made).value().release();
  show_to_all();
}

void end() MEMSPAN_REQUIRES(units.mutex) {
  if (process_state.device_job == nullptr) return;
  process_state.device_job->stop();  // kernels that wait would hold up the next line
  const std::unique_ptr<DeviceJob> ended(std::exchange(process_state.device_job, nullptr));
  show_to_all();
}

// Removes any unit, also one whose functions a job uses.
void remove(memspan_kernel_unit* unit) MEMSPAN_REQUIRES(units.mutex) {
  memspan_kernel_unit** link = &units.first;
  while (*link != nullptr && *link != unit) link = &(*link)->next;
  if (*link == nullptr) return;
  *link = unit->next;
  if (process_state.device_job == nullptr || &process_state.device_job->unit() != unit) return;
  end();
  begin();
}

}  // namespace

void begin_device_job() {
  MutexLock lock(units.mutex);
  begin();
}
void finish_device_requests() {
  if (process_state.device_job != nullptr) process_state.device_job->finish();
}
void end_device_job() {
  MutexLock lock(units.mutex);
  end();
}
void show_device_job() {
  MutexLock lock(units.mutex);
  show_to_all();
}
void show_device_heap() {
  MutexLock lock(units.mutex);
  if (process_state.device_job == nullptr) return;
  process_state.device_job->add_device_heap();
  show_to_all();
}

}  // namespace memspan::capi

using namespace memspan::capi;

MEMSPAN_EXPORT void memspan_kernel_register_unit(memspan_kernel_unit* unit) try {
  if (unit->version != MEMSPAN_KERNEL_STATE_VERSION)
    return warn("a translation unit cannot be used",
                fmt::format("it was compiled with version {} of <memspan/kernel_state.h>, and the "
                            "library has {}",
                            unit->version, MEMSPAN_KERNEL_STATE_VERSION));
  memspan::MutexLock lock(units.mutex);
  // At the end, so that the first unit stays the one that maps.
  memspan_kernel_unit** link = &units.first;
  while (*link != nullptr) link = &(*link)->next;
  unit->next = nullptr;
  *link = unit;
  if (process_state.device_job != nullptr)
    show_to(*unit);
  else
    begin();
}
MEMSPAN_CATCH()

MEMSPAN_EXPORT void memspan_kernel_unregister_unit(memspan_kernel_unit* unit) try {
  memspan::MutexLock lock(units.mutex);
  remove(unit);
}
MEMSPAN_CATCH()
