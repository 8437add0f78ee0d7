// SPDX-License-Identifier: Apache-2.0
// Reaches unmapped memory of a process on the same node: the kernel copies it by process_vm_readv
// and process_vm_writev (cross-memory attach). No atomics and no messages.
#pragma once

#include <memory>

#include "transport/transport.h"

namespace memspan {

std::unique_ptr<Transport> make_cma_transport();

}  // namespace memspan
