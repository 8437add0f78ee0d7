// SPDX-License-Identifier: Apache-2.0
// Several jobs of one process, as CANN SHMEM numbers them.
#pragma once

#include "capi/aclshmem/export.h"

namespace memspan::capi {

inline constexpr int kMostPes = 16384;

// Makes a number current once all work that was given to streams is done, which acts on what is
// current. 0, or a code: work of a stream may not do it, and a stream may take longer than calls
// of the job may wait.
int switch_instance(const char* call, std::uint64_t number);

// If the address has port 0 and SHMEM_INSTANCE_PORT_RANGE=FIRST:LAST is set, the port becomes FIRST
// plus the number. 0, or a code.
int complete_place(const char* call, std::uint64_t number, shmem_init_attr_t& attributes);

}  // namespace memspan::capi
