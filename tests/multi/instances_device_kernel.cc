// SPDX-License-Identifier: Apache-2.0
// The same as a kernel on a device: its state is that of the instance which the host has chosen.
#include <memspan/kernel.h>

#include "instances.h"

namespace k = memspan::kernel;

void instance_kernel(std::int64_t* words, std::uint64_t instance, std::int64_t value) {
  if (instance != memspan_kernel_instance()) return;  // the test would wait for ever
  std::int64_t* const word = words + 1 + k::block();
  k::p(word, value, (k::my_pe() + 1) % k::n_pes());
  k::wait_until(word, k::Compare::kEqual, value);
}
