// SPDX-License-Identifier: Apache-2.0
#include "names_in_python.h"

#include <string_view>

#include "calls.h"

namespace memspan::python {
namespace {

struct Name {
  std::string_view c;
  const char* python;
};
// Names of C that Python's differ from in more than a prefix. The starts of a job and of an
// endpoint are one call in Python.
constexpr Name kNames[] = {
    {"aclshmemx_align", "shmem_align"},
    {"aclshmemx_barrier_all_on_stream", "shmem_barrier_all_on_stream"},
    {"aclshmemx_calloc", "shmem_calloc"},
    {"aclshmemx_free", "shmem_free"},
    {"aclshmemx_getmem_on_stream", "shmem_getmem_on_stream"},
    {"aclshmemx_malloc", "shmem_malloc"},
    {"aclshmemx_putmem_on_stream", "shmem_putmem_on_stream"},
    {"aclshmemx_quiet_on_stream", "shmem_quiet_on_stream"},
    {"aclshmemx_signal_op_on_stream", "shmem_signal_op_on_stream"},
    {"aclshmemx_signal_wait_until_on_stream", "shmem_signal_wait_until_on_stream"},
    {"memspan_kv_get", "KvPool.get"},
    {"memspan_kv_lookup", "KvPool.lookup"},
    {"memspan_kv_put", "KvPool.put"},
    {"memspan_kv_remove", "KvPool.remove"},
    {"memspan_kv_start", "KvPool"},
    {"memspan_kv_stats", "KvPool.stats"},
    {"memspan_pool_wait_members", "BigMemory.wait_members"},
    {"memspan_pool_wait_rank", "BigMemory.wait_rank"},
    {"memspan_transfer_cancel", "TransferRequest.cancel"},
    {"memspan_transfer_counter", "TransferEngine.counter"},
    {"memspan_transfer_destroy", "TransferRequest.destroy"},
    {"memspan_transfer_device_malloc", "TransferEngine.trans_device_malloc"},
    {"memspan_transfer_event", "TransferRequest.fileno"},
    {"memspan_transfer_messages_event", "TransferEngine.messages_fileno"},
    {"memspan_transfer_post", "TransferRequest.post"},
    {"memspan_transfer_prepare", "TransferEngine.prepare"},
    {"memspan_transfer_reach", "TransferEngine.probe"},
    {"memspan_transfer_receive", "TransferEngine.receive"},
    {"memspan_transfer_register_adopted", "TransferEngine.register_memory"},
    {"memspan_transfer_result", "TransferRequest.result"},
    {"memspan_transfer_set_counter", "TransferRequest.set_counter"},
    {"memspan_transfer_set_message", "TransferRequest.set_message"},
    {"memspan_transfer_set_patience", "TransferRequest.set_patience"},
    {"memspan_transfer_test", "TransferRequest.test"},
    {"memspan_transfer_wait", "TransferRequest.wait"},
    {"memspan_transfer_wait_counter", "TransferEngine.wait_counter"},
    {"shmem_get_uniqueid", "shmem_get_unique_id"},
    {"shmem_init_attr", "shmem_init"},
    {"shmem_set_attr", "shmem_init"},
    {"shmem_set_attr_uniqueid_args", "shmem_init_using_unique_id"},
    {"shmem_set_conf_store_tls", "set_conf_store_tls"},
    {"shmem_set_config_store_tls_key", "set_conf_store_tls_key"},
    {"shmem_set_extern_logger", "set_extern_logger"},
    {"shmem_set_log_level", "set_log_level"},
    {"shmem_team_destroy", "team_destroy"},
    {"shmem_team_split_2d", "team_split_2d"},
    {"shmem_team_split_strided", "team_split_strided"},
    {"smem_bm_copy", "BigMemory.copy_data"},
    {"smem_bm_copy_batch", "BigMemory.copy_data_batch"},
    {"smem_bm_copy_batch_partial_succeed", "BigMemory.copy_data_batch_partial_succeed"},
    {"smem_bm_create", "bm.create"},
    {"smem_bm_create2", "bm.create2"},
    {"smem_bm_destroy", "BigMemory.destroy"},
    {"smem_bm_get_local_mem_size_by_mem_type", "BigMemory.local_mem_size"},
    {"smem_bm_get_rank_id", "bm.bm_rank_id"},
    {"smem_bm_get_rank_id_by_gva", "BigMemory.get_rank_id_by_gva"},
    {"smem_bm_init", "bm.initialize"},
    {"smem_bm_join", "BigMemory.join"},
    {"smem_bm_leave", "BigMemory.leave"},
    {"smem_bm_ptr_by_mem_type", "BigMemory.peer_rank_ptr"},
    {"smem_bm_register_user_mem", "BigMemory.register"},
    {"smem_bm_uninit", "bm.uninitialize"},
    {"smem_bm_unregister_user_mem", "BigMemory.unregister"},
    {"smem_bm_wait", "BigMemory.wait"},
    {"smem_init", "initialize"},
    {"smem_set_config_store_tls_key", "set_conf_store_tls_key"},
    {"smem_shm_atomic_alloc_value", "ShareMemory.atomic_alloc_value"},
    {"smem_shm_atomic_release_value", "ShareMemory.atomic_release_value"},
    {"smem_shm_control_allgather", "ShareMemory.all_gather"},
    {"smem_shm_control_barrier", "ShareMemory.barrier"},
    {"smem_shm_create", "shm.create"},
    {"smem_shm_destroy", "ShareMemory.destroy"},
    {"smem_shm_get_extra_context", "ShareMemory.get_context"},
    {"smem_shm_get_global_rank", "ShareMemory.local_rank"},
    {"smem_shm_get_global_rank_size", "ShareMemory.rank_size"},
    {"smem_shm_global_exit", "ShareMemory.global_exit"},
    {"smem_shm_init", "shm.initialize"},
    {"smem_shm_query_support_data_operation", "ShareMemory.query_support_data_operation"},
    {"smem_shm_register_exit", "ShareMemory.register_exit"},
    {"smem_shm_set_extra_context", "ShareMemory.set_context"},
    {"smem_shm_subgroup_allgather", "ShareMemory.subgroup_all_gather"},
    {"smem_shm_subgroup_barrier", "ShareMemory.subgroup_barrier"},
    {"smem_shm_topology_can_reach", "ShareMemory.topology_can_reach"},
    {"smem_shm_uninit", "shm.uninitialize"},
    {"smem_trans_batch_read", "TransferEngine.batch_transfer_sync_read"},
    {"smem_trans_batch_read_submit", "TransferEngine.batch_transfer_async_read_submit"},
    {"smem_trans_batch_register_mem", "TransferEngine.batch_register_memory"},
    {"smem_trans_batch_write", "TransferEngine.batch_transfer_sync_write"},
    {"smem_trans_batch_write_submit", "TransferEngine.batch_transfer_async_write_submit"},
    {"smem_trans_create", "TransferEngine.initialize"},
    {"smem_trans_deregister_mem", "TransferEngine.unregister_memory"},
    {"smem_trans_destroy", "TransferEngine.destroy"},
    {"smem_trans_free", "TransferEngine.trans_free"},
    {"smem_trans_init", "TransferEngine.initialize"},
    {"smem_trans_malloc", "TransferEngine.trans_malloc"},
    {"smem_trans_read", "TransferEngine.transfer_sync_read"},
    {"smem_trans_read_submit", "TransferEngine.transfer_async_read_submit"},
    {"smem_trans_register_mem", "TransferEngine.register_memory"},
    {"smem_trans_set_peer_down_callback", "TransferEngine.set_peer_down_callback"},
    {"smem_trans_uninit", "TransferEngine.unInitialize"},
    {"smem_trans_write", "TransferEngine.transfer_sync_write"},
    {"smem_trans_write_submit", "TransferEngine.transfer_async_write_submit"},
    {"smem_uninit", "uninitialize"}};

}  // namespace

const char* name_in_python(const char* call) {
  if (!InCall::is_inside) return call;
  const std::string_view name = call;
  for (const Name& known : kNames)
    if (known.c == name) return known.python;
  if (name.starts_with("aclshmem_")) return call + std::string_view("acl").size();
  if (name.starts_with("smem_")) return call + std::string_view("smem_").size();
  return call;
}

}  // namespace memspan::python
