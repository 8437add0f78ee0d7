// SPDX-License-Identifier: Apache-2.0
// Share Memory in kernels: everything. A source with these functions is compiled as C++17 by an
// ordinary compiler, is linked with memspan, and runs as a kernel of the host device
// (<memspan/launch.h>). Names and meanings are MemFabric's. Thread-safe.
#ifndef MEMSPAN_SMEM_SHM_AICORE_BASE_API_H
#define MEMSPAN_SMEM_SHM_AICORE_BASE_API_H

#include "smem_shm_aicore_base_copy.h"
#include "smem_shm_aicore_base_define.h"
#include "smem_shm_aicore_base_meta.h"
#include "smem_shm_aicore_base_rdma.h"

#endif  // MEMSPAN_SMEM_SHM_AICORE_BASE_API_H
