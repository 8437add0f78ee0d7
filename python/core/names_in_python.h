// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace memspan::python {

// For messages: what Python calls this function of C, as "shmem_putmem", "bm.create" or
// "BigMemory.join". The name itself if this thread does not call from Python.
const char* name_in_python(const char* call);

}  // namespace memspan::python
