/* SPDX-License-Identifier: Apache-2.0
 * A program with MPI and OpenSHMEM in one process: with_mpi LIBRARY ORDER. The MPI library is
 * loaded by name, so that no MPI's headers are needed; ORDER is the order of the calls: inside
 * MPI_Init shmem_init shmem_finalize MPI_Finalize around   shmem_init MPI_Init MPI_Finalize
 * shmem_finalize after    MPI_Init MPI_Finalize shmem_init shmem_finalize unused   shmem_init
 * shmem_finalize
 */
#include <dlfcn.h>
#include <shmem.h>
#include <stdio.h>
#include <string.h>

static long variable = -1;

static int talk(void) {
  const int me = shmem_my_pe();
  const int size = shmem_n_pes();
  shmem_long_p(&variable, me, (me + 1) % size);
  shmem_barrier_all();
  if (variable == (me + size - 1) % size) return 0;
  fprintf(stderr, "PE %d has %ld\n", me, variable);
  return 1;
}

int main(int argc, char** argv) {
  const char* order = argc > 2 ? argv[2] : "";
  void* library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (library == NULL) {
    fprintf(stderr, "with_mpi: %s\n", argc > 1 ? dlerror() : "no library is named");
    return 2;
  }
  int (*mpi_init)(int*, char***) = (int (*)(int*, char***))dlsym(library, "MPI_Init");
  int (*mpi_finalize)(void) = (int (*)(void))dlsym(library, "MPI_Finalize");
  int failures = 0;
  if (strcmp(order, "inside") == 0) {
    mpi_init(NULL, NULL);
    shmem_init();
    failures = talk();
    shmem_finalize();
    mpi_finalize();
  } else if (strcmp(order, "around") == 0) {
    shmem_init();
    mpi_init(NULL, NULL);
    failures = talk();
    mpi_finalize();
    shmem_finalize();
  } else if (strcmp(order, "after") == 0) {
    mpi_init(NULL, NULL);
    mpi_finalize();
    shmem_init();
    failures = talk();
    shmem_finalize();
  } else {
    shmem_init();
    failures = talk();
    shmem_finalize();
  }
  return failures;
}
