// SPDX-License-Identifier: Apache-2.0
// How a function of the CANN SHMEM API is defined. The installed header is included here, so that
// a definition which differs from the declaration does not compile.
#pragma once

// Its name is one of ours.
#define MEMSPAN_NO_ACLSHMEM_RESULT
#include <shmem_api.h>

#include "capi/out_of_memory.h"
