// SPDX-License-Identifier: Apache-2.0
#include "operations.h"

#include <memspan/memspan.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace bench {

void give_up(const std::string& why) {
  std::fprintf(stderr, "groups_bench: %s\n", why.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

void must(const char* call, int code) {
  if (code == 0) return;
  give_up(std::string(call) + ": " + std::to_string(code) + ", " + memspan_last_error());
}

std::unique_ptr<char[]> ordinary_memory(std::size_t bytes) {
  return std::make_unique<char[]>(bytes);  // zeros, so that it is written
}

void fill_with_floats(void* memory, std::size_t bytes, int rank) {
  auto* const values = static_cast<float*>(memory);
  for (std::size_t i = 0; i < bytes / sizeof(float); ++i)
    values[i] = static_cast<float>((i + static_cast<std::size_t>(rank) * 7) % 1000 + 1);
}

bool leave_the_same(const Call& ours, const Call& rival, void* result, std::size_t bytes) {
  const auto left_by = [&](const Call& call, int before) {
    std::memset(result, before, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    call();
    MPI_Barrier(MPI_COMM_WORLD);
    const char* const first = static_cast<const char*>(result);
    return std::string(first, first + bytes);
  };
  const std::string one = left_by(ours, 0x55);
  return one == left_by(rival, 0x2a);  // what neither writes differs
}

}  // namespace bench
