// SPDX-License-Identifier: Apache-2.0
#include "world/mpi_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace memspan {

void* mpi_library() {
  std::string path;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        const std::string_view name = info->dlpi_name;
        const bool is_mpi = name.substr(name.rfind('/') + 1).substr(0, 6) == "libmpi";
        if (is_mpi) *static_cast<std::string*>(found) = name;
        return is_mpi ? 1 : 0;
      },
      &path);
  // It is already loaded, and stays loaded because others use it.
  void* const loaded =
      path.empty() ? nullptr : dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  return loaded != nullptr ? loaded : RTLD_DEFAULT;
}

MpiState mpi_state() {
  // Equal in every MPI, because it uses no types of MPI.
  using Question = int (*)(int*);
  void* const library = mpi_library();
  const auto initialized = reinterpret_cast<Question>(dlsym(library, "MPI_Initialized"));
  const auto finalized = reinterpret_cast<Question>(dlsym(library, "MPI_Finalized"));
  if (initialized == nullptr || finalized == nullptr) return MpiState::kAbsent;
  int is_so = 0;
  finalized(&is_so);
  if (is_so != 0) return MpiState::kFinalized;
  initialized(&is_so);
  return is_so != 0 ? MpiState::kInitialized : MpiState::kNotInitialized;
}

}  // namespace memspan
