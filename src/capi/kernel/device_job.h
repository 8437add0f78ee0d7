// SPDX-License-Identifier: Apache-2.0
// What kernels on a device (CUDA) have of a job: the heaps of near PEs and the rings, mapped for
// the device; the threads that serve the rings; and the state that says where all is
// (<memspan/kernel_state.h>).
//
// These functions are called where jobs begin, end and change, and do nothing in a process without
// translation units that nvcc compiled.
#pragma once

#include <memspan/kernel_state.h>

#include "pgas/team.h"

namespace memspan::capi {

// Thread-safe, but for process_state, which the caller may change.
void begin_device_job();
// Until all that kernels posted before is done. Not for the thread that does it.
void finish_device_requests();
void end_device_job();
// After another job has become current.
void show_device_job();
// After the current one has made its heap in memory of the device.
void show_device_heap();
// Kernels find the members of an evenly spaced team themselves, unless an older team has its entry.
// For other teams they ask.
void show_team(int number, const Team& team);
void hide_team(int number);

// Does what a kernel on a device asks for, and returns the answer (calls.cc). Ends the process when
// the host's own call would, and for an unknown operation, which only a kernel of another version
// requests.
std::uint64_t answer_request(memspan_kernel_request& request);

}  // namespace memspan::capi
