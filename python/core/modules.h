// SPDX-License-Identifier: Apache-2.0
// The parts of memspan._core.
#pragma once

#include <nanobind/nanobind.h>

namespace memspan::python {

void bind_shmem(nanobind::module_& module);          // CANN SHMEM
void bind_openshmem(nanobind::module_& module);      // what only OpenSHMEM has
void bind_typed_moves(nanobind::module_& module);    // for each type: elements
void bind_typed_waits(nanobind::module_& module);    // waits and tests
void bind_typed_words(nanobind::module_& module);    // atomics, reductions
void bind_sized_signals(nanobind::module_& module);  // elements of each size with a signal
void bind_device(nanobind::module_& module);         // memory and streams of a GPU
void bind_smem(nanobind::module_& module);           // MemFabric: common
void bind_bm(nanobind::module_& module);
void bind_shm(nanobind::module_& module);
void bind_trans(nanobind::module_& module);
void bind_kv(nanobind::module_& module);
// At the interpreter's end: no function is called for a peer's end any more. With the GIL.
void drop_down_functions();

}  // namespace memspan::python
