// SPDX-License-Identifier: Apache-2.0
// The folder that sources of MemFabric include it from.
#pragma once

#include "../smem_shm_aicore_base_rdma.h"
