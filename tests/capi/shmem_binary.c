/* SPDX-License-Identifier: Apache-2.0
 * Programs that load libshmem.so by name and start by a unique id, with the names of either
 * generation: two processes, one of which makes the id. Gets the library's path. */
#include <memspan/memspan.h>
#include <shmem_api.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaded.h"
#include "support/free_url.h"

/* The functions, not what the header calls them. */
#undef shmem_malloc
#undef shmem_free
#undef shmem_ptr
#undef shmem_finalize

enum { kPes = 2, kHeap = 1 << 20, kSeconds = 30 };

typedef int32_t (*set_tls)(bool, const char*, uint32_t);
typedef int (*later_id)(aclshmemx_uniqueid_t*);
typedef int (*later_args)(int, int, int64_t, aclshmemx_uniqueid_t*, aclshmemx_init_attr_t*);
typedef int (*later_init)(aclshmemx_bootstrap_t, aclshmemx_init_attr_t*);
typedef int (*early_attr)(int, int, uint64_t, const char*, shmem_init_attr_t**);
typedef int (*early_id)(shmem_uniqueid_t*);
typedef int (*early_args)(int, int, const shmem_uniqueid_t*, shmem_init_attr_t*);
typedef void* (*allocate)(size_t);
typedef void (*release)(void*);
typedef void* (*pointer)(void*, int);
typedef int (*finish)(void);
typedef const char* (*text)(void);

/* What every process does with its memory, the other's in reach. */
static void use(int pe, allocate get, pointer at, release give_back) {
  volatile int* mine = get(2 * sizeof(int));
  CHECK(mine != NULL);
  volatile int* theirs = at((void*)(mine + 1), 1 - pe);
  CHECK(theirs != NULL && at((void*)mine, pe) == (void*)mine);
  *theirs = 7 + pe;
  give_back((void*)mine); /* waits for everybody */
  CHECK(mine[1] == 7 + 1 - pe);
}

static aclshmemx_init_attr_t later_attributes(void) {
  aclshmemx_init_attr_t attributes;
  memset(&attributes, 0xff, sizeof attributes);
  aclshmem_init_optional_attr_t option = {
      (1 << 16) + sizeof option, SHMEM_DATA_OP_MTE, kSeconds, kSeconds, kSeconds, 0};
  attributes.option_attr = option;
  return attributes;
}

static void check_later(int pe, aclshmemx_bootstrap_t flags, const int ends[2]) {
  FIND(set_tls, aclshmemx_set_conf_store_tls);
  FIND(later_id, aclshmemx_get_uniqueid);
  FIND(later_args, aclshmemx_set_attr_uniqueid_args);
  FIND(later_init, aclshmemx_init_attr);
  FIND(allocate, aclshmem_malloc);
  FIND(release, aclshmem_free);
  FIND(pointer, aclshmem_ptr);
  FIND(finish, aclshmem_finalize);
  CHECK(aclshmemx_set_conf_store_tls(false, NULL, 0) == 0);
  aclshmemx_init_attr_t attributes = later_attributes();
  {
    aclshmemx_uniqueid_t id;
    if (pe == 0) {
      CHECK(aclshmemx_get_uniqueid(&id) == 0 && id.version == (1 << 16) + (int)sizeof id);
      CHECK(write(ends[1], &id, sizeof id) == (ssize_t)sizeof id);
    } else {
      CHECK(read(ends[0], &id, sizeof id) == (ssize_t)sizeof id);
    }
    CHECK(aclshmemx_set_attr_uniqueid_args(pe, kPes, kHeap, &id, &attributes) == 0);
    memset(&id, 0, sizeof id); /* it was copied */
  }
  CHECK(aclshmemx_init_attr(flags, &attributes) == 0);
  use(pe, aclshmem_malloc, aclshmem_ptr, aclshmem_free);
  CHECK(aclshmem_finalize() == 0 && aclshmem_finalize() == 0);
}

static void check_early(int pe, const int ends[2]) {
  FIND(set_tls, shmem_set_conf_store_tls);
  FIND(early_attr, shmem_set_attr);
  FIND(early_id, shmem_get_uniqueid);
  FIND(early_args, shmem_set_attr_uniqueid_args);
  FIND(allocate, shmem_malloc);
  FIND(release, shmem_free);
  FIND(pointer, shmem_ptr);
  FIND(finish, shmem_finalize);
  CHECK(shmem_set_conf_store_tls(false, NULL, 0) == 0);
  shmem_init_attr_t* attributes = NULL;
  shmem_uniqueid_t id;
  if (pe == 0) {
    CHECK(shmem_get_uniqueid(&id) == 0);
    CHECK(write(ends[1], &id, sizeof id) == (ssize_t)sizeof id);
  } else {
    CHECK(read(ends[0], &id, sizeof id) == (ssize_t)sizeof id);
  }
  CHECK(shmem_set_attr(pe, kPes, kHeap, NULL, &attributes) == 0);
  CHECK(shmem_set_attr_uniqueid_args(pe, kPes, &id, attributes) == 0);
  use(pe, shmem_malloc, shmem_ptr, shmem_free);
  shmem_finalize();
}

/* By an address, which comes before a unique id. */
static void check_address(int pe, const char* url) {
  FIND(later_init, aclshmemx_init_attr);
  FIND(allocate, aclshmem_malloc);
  FIND(release, aclshmem_free);
  FIND(pointer, aclshmem_ptr);
  FIND(finish, aclshmem_finalize);
  aclshmemx_uniqueid_t nobodys = {(1 << 16) + sizeof nobodys, 0, 0, "127.0.0.1:1 -"};
  aclshmemx_init_attr_t attributes = later_attributes();
  attributes.my_pe = pe;
  attributes.n_pes = kPes;
  attributes.local_mem_size = kHeap;
  attributes.comm_args = &nobodys;
  snprintf(attributes.ip_port, sizeof attributes.ip_port, "%s", url);
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_DEFAULT, &attributes) == 0);
  use(pe, aclshmem_malloc, aclshmem_ptr, aclshmem_free);
  CHECK(aclshmem_finalize() == 0);
}

static void check_what_is_refused(void) {
  FIND(later_id, aclshmemx_get_uniqueid);
  FIND(later_args, aclshmemx_set_attr_uniqueid_args);
  FIND(later_init, aclshmemx_init_attr);
  FIND(text, memspan_last_error);
  aclshmemx_uniqueid_t id;
  aclshmemx_init_attr_t attributes = later_attributes();
  CHECK(aclshmemx_get_uniqueid(NULL) == SHMEM_INVALID_PARAM);
  CHECK(aclshmemx_get_uniqueid(&id) == 0);
  CHECK(aclshmemx_set_attr_uniqueid_args(0, 1, kHeap, NULL, &attributes) == SHMEM_INVALID_PARAM);
  CHECK(aclshmemx_set_attr_uniqueid_args(0, 1, kHeap, &id, NULL) == SHMEM_INVALID_PARAM);
  CHECK(aclshmemx_set_attr_uniqueid_args(-1, 1, kHeap, &id, &attributes) == SHMEM_INVALID_VALUE);
  CHECK(aclshmemx_set_attr_uniqueid_args(0, 16385, kHeap, &id, &attributes) == SHMEM_INVALID_VALUE);
  CHECK(aclshmemx_set_attr_uniqueid_args(1, 1, kHeap, &id, &attributes) == SHMEM_INVALID_PARAM);
  CHECK(aclshmemx_set_attr_uniqueid_args(0, 1, 0, &id, &attributes) == SHMEM_INVALID_VALUE);
  CHECK(aclshmemx_set_attr_uniqueid_args(0, 1, -5, &id, &attributes) == SHMEM_INVALID_VALUE &&
        strstr(memspan_last_error(), "local_mem_size is -5") != NULL);
  CHECK(aclshmemx_set_attr_uniqueid_args(0, 1, kHeap, &id, &attributes) == 0);
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_UNIQUEID, NULL) == SHMEM_INVALID_PARAM);
  CHECK(aclshmemx_init_attr((aclshmemx_bootstrap_t)4, &attributes) == SHMEM_INVALID_VALUE &&
        strstr(memspan_last_error(), "bootstrap_flags is 4") != NULL);
  attributes.option_attr.shm_init_timeout = 0;
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_UNIQUEID, &attributes) == SHMEM_INVALID_VALUE);
  attributes.option_attr.shm_init_timeout = kSeconds;
  id.version = 0;
  CHECK(aclshmemx_set_attr_uniqueid_args(0, 1, kHeap, &id, &attributes) == SHMEM_INVALID_PARAM);
  attributes.comm_args = &id;
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_UNIQUEID, &attributes) == SHMEM_INVALID_PARAM &&
        strstr(memspan_last_error(), "unique id") != NULL);
  attributes.comm_args = NULL;
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_UNIQUEID, &attributes) == SHMEM_INVALID_PARAM);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  char url[64];
  int ends[2];
  CHECK(write_free_url(url, sizeof url) && pipe(ends) == 0);
  const pid_t other = fork(); /* before the library is there */
  CHECK(other >= 0);
  const int pe = other == 0;
  close(ends[pe]); /* so that a process notices the other's end */
  library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  if (library == NULL) fprintf(stderr, "%s\n", dlerror());
  CHECK(library != NULL);
  if (pe == 0) check_what_is_refused();
  check_later(pe, ACLSHMEMX_INIT_WITH_UNIQUEID, ends);
  check_later(pe, ACLSHMEMX_INIT_WITH_DEFAULT, ends);
  check_address(pe, url);
  check_early(pe, ends);
  if (pe == 1) return 0;
  int status = -1;
  CHECK(waitpid(other, &status, 0) == other && status == 0);
  return 0;
}
