// SPDX-License-Identifier: Apache-2.0
// What kernels on a device (CUDA) have of a job: the heaps of near PEs and the rings, mapped for
// the device; the threads that serve the rings; and the state that says where all is
// (<memspan/kernel_state.h>).
//
// The functions below it are called where jobs begin, end and change, and do nothing in a process
// without translation units that nvcc compiled.
#pragma once

#include <memspan/kernel_state.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "capi/kernel/ring_server.h"
#include "core/status.h"
#include "pgas/team.h"

namespace memspan::capi {

// For the job in process_state. One thread at a time.
class DeviceJob {
 public:
  // By the functions of `unit`, which must outlive it. kNotSupported: the device cannot be used, or
  // cannot reach host memory at the host's addresses.
  static Result<std::unique_ptr<DeviceJob>> start(const memspan_kernel_unit& unit);
  ~DeviceJob();
  DeviceJob(const DeviceJob&) = delete;
  DeviceJob& operator=(const DeviceJob&) = delete;

  const memspan_kernel_unit& unit() const { return unit_; }
  const memspan_kernel_state& state() const { return state_; }
  // Returns when all that kernels posted before is done.
  void finish() const { requests_->finish(); }
  // Stops kernels that still wait, and answers no more requests.
  void stop();
  // Adds the symmetric heap in device memory once it exists; the device reaches it directly.
  void add_device_heap();
  // Kernels find the members of an evenly spaced team themselves, unless an older team has its
  // entry. For other teams they ask.
  void add_team(int number, const Team& team);
  void remove_team(int number);

 private:
  static constexpr std::size_t kRequests = 64;
  static constexpr std::size_t kMeetings = 4;
  // Whole pages, so that nothing else is mapped with them.
  struct alignas(4096) Shared {
    std::uint32_t stop = 0;
    std::uint32_t waits = 0;
    std::array<memspan_kernel_team, MEMSPAN_KERNEL_TEAMS + 1> teams{};
    alignas(128) std::array<memspan_kernel_request, kRequests> requests{};
    alignas(128) std::array<memspan_kernel_request, kMeetings> meetings{};
  };

  DeviceJob(const memspan_kernel_unit& unit, WaitContext& waiting)
      : unit_(unit), waiting_(waiting) {}
  Status map(void* memory, std::size_t bytes, const std::string& what);
  Status map_heaps();
  Status make_rings();
  Status serve();
  void watch_peers();
  void watch_waits();
  void set_stop(std::uint32_t why);

  const memspan_kernel_unit& unit_;
  WaitContext& waiting_;  // of the job, which may not be the current one
  memspan_kernel_state state_{};
  std::unique_ptr<Shared> shared_ = std::make_unique<Shared>();
  std::vector<void*> mapped_;
  void* tickets_ = nullptr;
  std::optional<Clock::time_point> wait_seen_;  // since then kernels have waited for words
  Clock::time_point wait_last_seen_;
  std::unique_ptr<RingServer> requests_;
  std::unique_ptr<RingServer> meetings_;
};

// Thread-safe, but for process_state, which the caller may change.
void begin_device_job();
// Until all that kernels posted before is done. Not for the thread that does it.
void finish_device_requests();
void end_device_job();
// After another job has become current.
void show_device_job();
// After the current one has made its heap in memory of the device.
void show_device_heap();

}  // namespace memspan::capi
