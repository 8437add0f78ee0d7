// SPDX-License-Identifier: Apache-2.0
// One-sided access by process_vm_readv and process_vm_writev: what a network with it does, among
// processes of one machine, and its failures to order. For tests of who uses it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "transport/message/carrier.h"

namespace memspan::contract {

// Of this process. Thread-safe.
struct AccessFaults {
  // Each call moves half of its bytes, and then the network has failed.
  std::atomic<bool> fails{false};
  // Each call waits until it is told to give up.
  std::atomic<bool> hangs{false};
};
AccessFaults& access_faults();

// The carrier with that access.
std::unique_ptr<Carrier> with_process_access(std::unique_ptr<Carrier> streams);

}  // namespace memspan::contract
