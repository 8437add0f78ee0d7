// SPDX-License-Identifier: Apache-2.0
// The threads of this process that run blocks of kernels.
#pragma once

#include "device/host/grid.h"

namespace memspan::capi {

BlockThreads& block_threads();

}  // namespace memspan::capi
