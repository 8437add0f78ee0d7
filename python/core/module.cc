// SPDX-License-Identifier: Apache-2.0
// memspan._core: the C interfaces for the Python packages on top, which document what users call.
#include <nanobind/nanobind.h>

#include "addresses.h"
#include "callbacks.h"
#include "calls.h"
#include "modules.h"

NB_MODULE(_core, module) {
  using namespace memspan::python;
  module.attr("__version__") = MEMSPAN_VERSION;
  bind_calls(module);
  bind_addresses(module);
  auto shmem = module.def_submodule("shmem");
  bind_shmem(shmem);
  bind_openshmem(shmem);
  auto smem = module.def_submodule("smem");
  bind_smem(smem);
  bind_bm(smem);
  bind_shm(smem);
  bind_trans(smem);
  auto group = module.def_submodule("group");
  bind_group(group);
  // For atexit, while there is an interpreter to call back.
  module.def("drop_callbacks", [] {
    drop_callbacks();
    drop_down_functions();
  });
}
