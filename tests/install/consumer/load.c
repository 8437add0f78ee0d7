/* SPDX-License-Identifier: Apache-2.0
 * load LIBRARY: loads it as programs do that choose their library at run time, looks up all
 * names of MemFabric, and hosts a store (which loads what TLS needs from beside it). */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

static const char* const names[] = {
    "smem_init",
    "smem_uninit",
    "smem_create_config_store",
    "smem_destroy_config_store",
    "smem_set_conf_store_tls",
    "smem_set_config_store_tls_key",
    "smem_set_extern_logger",
    "smem_set_log_level",
    "smem_get_last_err_msg",
    "smem_get_and_clear_last_err_msg",
    "smem_get_last_err_code",
    "smem_get_error_string",
    "smem_bm_config_init",
    "smem_bm_init",
    "smem_bm_uninit",
    "smem_bm_get_rank_id",
    "smem_bm_create",
    "smem_bm_create2",
    "smem_bm_destroy",
    "smem_bm_join",
    "smem_bm_leave",
    "smem_bm_get_local_mem_size_by_mem_type",
    "smem_bm_ptr_by_mem_type",
    "smem_bm_get_rank_id_by_gva",
    "smem_bm_copy",
    "smem_bm_copy_batch",
    "smem_bm_copy_batch_partial_succeed",
    "smem_bm_wait",
    "smem_bm_register_user_mem",
    "smem_bm_unregister_user_mem",
    "smem_shm_config_init",
    "smem_shm_init",
    "smem_shm_uninit",
    "smem_shm_query_support_data_operation",
    "smem_shm_create",
    "smem_shm_destroy",
    "smem_shm_set_extra_context",
    "smem_shm_get_extra_context",
    "smem_shm_get_global_rank",
    "smem_shm_get_global_rank_size",
    "smem_shm_control_barrier",
    "smem_shm_control_allgather",
    "smem_shm_subgroup_barrier",
    "smem_shm_subgroup_allgather",
    "smem_shm_topology_can_reach",
    "smem_shm_atomic_alloc_value",
    "smem_shm_atomic_release_value",
    "smem_shm_register_exit",
    "smem_shm_global_exit",
    "smem_trans_config_init",
    "smem_trans_init",
    "smem_trans_uninit",
    "smem_trans_create",
    "smem_trans_destroy",
    "smem_trans_malloc",
    "smem_trans_free",
    "smem_trans_register_mem",
    "smem_trans_batch_register_mem",
    "smem_trans_deregister_mem",
    "smem_trans_write",
    "smem_trans_batch_write",
    "smem_trans_read",
    "smem_trans_batch_read",
    "smem_trans_read_submit",
    "smem_trans_write_submit",
    "smem_trans_batch_read_submit",
    "smem_trans_batch_write_submit",
    "smem_trans_check_flags",
};

int main(int argc, char** argv) {
  void* library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
  if (library == NULL) return printf("not loaded: %s\n", argc == 2 ? dlerror() : "no name") > 0;
  for (unsigned i = 0; i < sizeof names / sizeof *names; ++i)
    if (dlsym(library, names[i]) == NULL) return printf("%s is missing\n", names[i]) > 0;
  int32_t (*host)(const char*) =
      (int32_t(*)(const char*))dlsym(library, "smem_create_config_store");
  const char* (*why)(void) = (const char* (*)(void))dlsym(library, "smem_get_last_err_msg");
  char url[64];
  for (int port = 21000; port < 22000; ++port) {
    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", port);
    if (host(url) == 0) return 0;
  }
  return printf("no store: %s\n", why()) > 0;
}
