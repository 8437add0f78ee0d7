// SPDX-License-Identifier: Apache-2.0
// The collectives of rates.c by MPI, for a rival: two_hosts.py compiles and runs it.
//
//   mpi_rates [quick]     2 ranks
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "rounds.h"

enum { kSmallCalls = 2000 };

int main(int argc, char** argv) {
  const int is_quick = argc > 1;
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  float* source = calloc(1 << 20, 1);
  float* dest = malloc(1 << 20);
  for (size_t bytes = 0; bytes <= 1 << 20; bytes = bytes == 0 ? 8 : bytes << 17) {
    const int calls = is_quick ? 20 : bytes > 8 ? 100 : kSmallCalls;
    double start = 0;
    for (int i = -calls; i < calls; ++i) { /* as many before, which are not timed */
      if (i == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        start = now_us();
      }
      if (bytes == 0)
        MPI_Barrier(MPI_COMM_WORLD);
      else
        MPI_Allreduce(source, dest, (int)(bytes / sizeof *dest), MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
    }
    if (rank == 0)
      printf("%s %zu %.4f us\n", bytes == 0 ? "barrier" : "allreduce", bytes,
             (now_us() - start) / calls);
  }
  MPI_Finalize();
  return 0;
}
