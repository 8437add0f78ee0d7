// SPDX-License-Identifier: Apache-2.0
// memspan._core: the C interfaces for the Python packages on top, which document what users call.
#include <nanobind/nanobind.h>

#include "addresses.h"
#include "callbacks.h"
#include "calls.h"
#include "interpreter.h"
#include "modules.h"

NB_MODULE(_core, module) {
  using namespace memspan::python;
  refuse_subinterpreters();
  prepare_interpreter();
  module.attr("__version__") = MEMSPAN_VERSION;
  bind_calls(module);
  bind_addresses(module);
  module.doc() =
      "The C interfaces: thin functions, for the packages beside it, which document what users "
      "call. Handles and addresses are ints, 0 is none.";
  auto shmem = module.def_submodule("shmem", "SHMEM's functions that are not for each type.");
  bind_shmem(shmem);
  bind_openshmem(shmem);
  auto typed = module.def_submodule("typed", "SHMEM's functions for each type and size.");
  bind_typed_moves(typed);
  bind_typed_waits(typed);
  bind_typed_words(typed);
  bind_sized_signals(typed);
  auto device = module.def_submodule(
      "device", "SHMEM's functions on memory and streams of a GPU (MEMSPAN_DEVICE=cuda).");
  bind_device(device);
  auto smem = module.def_submodule(
      "smem",
      "MemFabric's functions, and memspan's own transfers: the C functions of the same names "
      "(smem/host, memspan/transfer.h, memspan/kv_pool.h). Codes are 0, or below 0.");
  bind_smem(smem);
  bind_bm(smem);
  bind_shm(smem);
  bind_trans(smem);
  bind_kv(smem);
  module.def(
      "is_called_back", [] { return CalledBack::is_inside; },
      "Whether the library called the function that runs on this thread, so that calls may fail.");
  // For atexit, while there is an interpreter to call back.
  module.def(
      "end_interpreter",
      [] {
        drop_callbacks();
        drop_down_functions();
        end_calls_of_other_threads();
      },
      "From now on the library calls nothing of Python, and no other thread calls the library.");
}
