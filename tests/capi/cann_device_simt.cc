// SPDX-License-Identifier: Apache-2.0
// Every function that SIMT code of CANN SHMEM 1.5 may call is there with its type: a line of
// cann_device_simt.inc for each signature (481; one for every size in the place of one for all).
#include <shmem.h>

#include <cstdint>

#include "have.h"

namespace {

const bool all[] = {
#include "cann_device_simt.inc"
};

}  // namespace

int main() {
  return memspan::capi::count(all) == 497 ? 0 : 1;
}
