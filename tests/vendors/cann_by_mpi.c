/* SPDX-License-Identifier: Apache-2.0
 * A program of CANN SHMEM that starts by MPI: cann_by_mpi (alone | LIBRARY) [wrong]. With a LIBRARY
 * it initializes MPI itself, and gives the communicator of all where that is an address. With
 * OPEN_MPI it is linked with Open MPI, as mpicc links, uses MPI_COMM_WORLD, and gives no
 * communicator.
 */
#include <aclshmem.h>
#include <dlfcn.h>
#include <memspan/memspan.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef OPEN_MPI
/* The linker puts MPI_COMM_WORLD into the program, and the library uses that one. */
struct communicator;
extern struct communicator ompi_mpi_comm_world;
int MPI_Init(int* argc, char*** argv);
int MPI_Barrier(struct communicator* of);
int MPI_Finalize(void);
#endif

static int number_of(const char* first, const char* second) {
  const char* text = getenv(first);
  if (text == NULL) text = getenv(second);
  return text == NULL ? -1 : atoi(text);
}

int main(int argc, char** argv) {
  const char* name = argc > 1 ? argv[1] : "alone";
  int (*finalize)(void) = NULL;
  void* world = NULL;
#ifdef OPEN_MPI
  if (MPI_Init(&argc, &argv) != 0 || MPI_Barrier(&ompi_mpi_comm_world) != 0) return 5;
  finalize = MPI_Finalize;
#endif
  if (strcmp(name, "alone") != 0) {
    void* library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL) {
      fprintf(stderr, "cann_by_mpi: %s\n", dlerror());
      return 2;
    }
    int (*init)(int*, char***) = (int (*)(int*, char***))dlsym(library, "MPI_Init");
    finalize = (int (*)(void))dlsym(library, "MPI_Finalize");
    world = dlsym(library, "ompi_mpi_comm_world");
    init(NULL, NULL);
  }
  aclshmemx_init_attr_t attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.my_pe = number_of("OMPI_COMM_WORLD_RANK", "PMI_RANK");
  attributes.n_pes = number_of("OMPI_COMM_WORLD_SIZE", "PMI_SIZE");
  attributes.local_mem_size = 1 << 20;
  attributes.option_attr.version = (1 << 16) + (int)sizeof attributes.option_attr;
  attributes.option_attr.data_op_engine_type = ACLSHMEM_DATA_OP_MTE;
  attributes.option_attr.shm_init_timeout = 60;
  attributes.option_attr.shm_create_timeout = 60;
  attributes.option_attr.control_operation_timeout = 60;
  if (world != NULL) attributes.comm_args = &world;
  if (argc > 2) attributes.my_pe = attributes.n_pes - 1 - attributes.my_pe;
  int code = aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_MPI, &attributes);
  if (code != 0) {
    fprintf(stderr, "%d: %s\n", code, memspan_last_error());
    return 1;
  }
  const int me = aclshmem_my_pe();
  const int pes = aclshmem_n_pes();
  int32_t* word = aclshmem_calloc(1, sizeof *word);
  aclshmem_int32_p(word, me + 1, (me + 1) % pes);
  aclshmem_barrier_all();
  if (*word != (me + pes - 1) % pes + 1) code = 3;
  aclshmem_free(word);
  if (aclshmem_finalize() != 0) code = 4;
  if (finalize != NULL) finalize();
  return code;
}
