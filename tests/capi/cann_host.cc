// SPDX-License-Identifier: Apache-2.0
// Every function that host code of CANN SHMEM 1.5 may call is there with its type, and the numbers
// and layouts are the originals'.
#include <shmem.h>

#include <cstdint>
#include <cstdio>

namespace {

int functions = 0;

// Compiles for the exact type alone, and links.
template <typename Type>
void have(Type* function) {
  volatile bool is_there = function != nullptr;
  if (is_there) ++functions;
}

#define MEMSPAN_TYPED(name, type)                                                              \
  have<void(type*, const type, int)>(aclshmem_##name##_p);                                     \
  have<type(type*, int32_t)>(aclshmem_##name##_g);                                             \
  have<void(type*, type*, size_t, int)>(aclshmem_##name##_put);                                \
  have<void(type*, type*, size_t, int)>(aclshmem_##name##_put_nbi);                            \
  have<void(type*, type*, size_t, int)>(aclshmem_##name##_get);                                \
  have<void(type*, type*, size_t, int)>(aclshmem_##name##_get_nbi);                            \
  have<void(type*, type*, ptrdiff_t, ptrdiff_t, size_t, int)>(aclshmem_##name##_iput);         \
  have<void(type*, type*, ptrdiff_t, ptrdiff_t, size_t, int)>(aclshmem_##name##_iget);         \
  have<void(type*, type*, size_t, uint8_t*, int32_t, int, int)>(aclshmem_##name##_put_signal); \
  have<void(type*, type*, size_t, uint8_t*, int32_t, int, int)>(aclshmem_##name##_put_signal_nbi)

#define MEMSPAN_SIZED(bits)                                                                   \
  have<void(void*, void*, uint32_t, int32_t)>(aclshmem_put##bits);                            \
  have<void(void*, void*, uint32_t, int32_t)>(aclshmem_put##bits##_nbi);                      \
  have<void(void*, void*, uint32_t, int32_t)>(aclshmem_get##bits);                            \
  have<void(void*, void*, uint32_t, int32_t)>(aclshmem_get##bits##_nbi);                      \
  have<void(void*, void*, ptrdiff_t, ptrdiff_t, size_t, int)>(aclshmem_iput##bits);           \
  have<void(void*, void*, ptrdiff_t, ptrdiff_t, size_t, int)>(aclshmem_iget##bits);           \
  have<void(void*, void*, size_t, int32_t*, int32_t, int, int)>(aclshmem_put##bits##_signal); \
  have<void(void*, void*, size_t, int32_t*, int32_t, int, int)>(aclshmem_put##bits##_signal_nbi)

#define MEMSPAN_SET(name, type, vector, value)                                                    \
  have<void(type*, size_t, const int*, int, value)>(aclshmem_##name##_wait_until_all##vector);    \
  have<void(type*, size_t, const int*, int, value, size_t*)>(                                     \
      aclshmem_##name##_wait_until_any##vector);                                                  \
  have<void(type*, size_t, size_t*, const int*, int, value, size_t*)>(                            \
      aclshmem_##name##_wait_until_some##vector);                                                 \
  have<void(type*, size_t, const int*, int, value, size_t*)>(aclshmem_##name##_test_any##vector); \
  have<void(type*, size_t, size_t*, const int*, int, value, size_t*)>(                            \
      aclshmem_##name##_test_some##vector)

#define MEMSPAN_WORDS(name, type)                                                             \
  have<void(type*, type)>(aclshmem_##name##_wait);                                            \
  have<void(type*, int, type)>(aclshmem_##name##_wait_until);                                 \
  have<void(type*, int, type, int*)>(aclshmem_##name##_test);                                 \
  have<void(type*, size_t, const int*, int, type*, int*)>(aclshmem_##name##_test_all_vector); \
  MEMSPAN_SET(name, type, , type);                                                            \
  MEMSPAN_SET(name, type, _vector, type*)

void have_data_plane() {
  ACLSHMEM_TYPE_FUNC(MEMSPAN_TYPED);
  ACLSHMEM_SIZE_FUNC(MEMSPAN_SIZED);
  ACLSHMEM_P2P_SYNC_TYPE_FUNC(MEMSPAN_WORDS);
  have<void(void*, void*, size_t, int32_t)>(aclshmem_putmem);
  have<void(void*, void*, size_t, int32_t)>(aclshmem_getmem);
  have<void(void*, void*, size_t, int32_t)>(aclshmem_putmem_nbi);
  have<void(void*, void*, size_t, int32_t)>(aclshmem_getmem_nbi);
  have<void(void*, void*, size_t, void*, int32_t, int, int)>(aclshmemx_putmem_signal);
  have<void(void*, void*, size_t, void*, int32_t, int, int)>(aclshmemx_putmem_signal_nbi);
  have<void(int32_t*, int, int32_t)>(aclshmem_signal_wait_until);
  have<void*(void*, int)>(aclshmem_ptr);
  have<void(aclshmem_team_t)>(aclshmem_barrier);
  have<void()>(aclshmem_barrier_all);
  have<void(aclshmem_team_t)>(aclshmem_sync);
  have<void()>(aclshmem_sync_all);
}

void have_streams() {
  have<void(void*, void*, size_t, int32_t, aclrtStream)>(aclshmemx_putmem_on_stream);
  have<void(void*, void*, size_t, int32_t, aclrtStream)>(aclshmemx_getmem_on_stream);
  have<void(aclrtStream)>(aclshmemx_quiet_on_stream);
  have<void(int32_t*, int32_t, int, int, aclrtStream)>(aclshmemx_signal_op_on_stream);
  have<void(int32_t*, int, int32_t, aclrtStream)>(aclshmemx_signal_wait_until_on_stream);
  have<void(aclshmem_team_t, aclrtStream)>(aclshmemx_barrier_on_stream);
  have<void(aclrtStream)>(aclshmemx_barrier_all_on_stream);
  have<void(aclshmem_handle_t, aclrtStream)>(aclshmemx_handle_wait);
}

void have_job() {
  have<int()>(aclshmemx_init_status);
  have<int(aclshmemx_bootstrap_t, aclshmemx_init_attr_t*)>(aclshmemx_init_attr);
  have<int()>(aclshmem_finalize);
  have<int(uint64_t)>(aclshmemx_finalize);
  have<int(aclshmemx_uniqueid_t*)>(aclshmemx_get_uniqueid);
  have<int(int, int, int64_t, aclshmemx_uniqueid_t*, aclshmemx_init_attr_t*)>(
      aclshmemx_set_attr_uniqueid_args);
  have<aclshmem_instance_ctx*()>(aclshmemx_instance_ctx_get);
  have<int(uint64_t)>(aclshmemx_instance_ctx_set);
  have<int32_t(bool, const char*, const uint32_t)>(aclshmemx_set_conf_store_tls);
  have<int32_t(const char*, const uint32_t, const char*, const uint32_t,
               const aclshmem_decrypt_handler)>(aclshmemx_set_config_store_tls_key);
  have<void(int*, int*)>(aclshmem_info_get_version);
  have<void(char*)>(aclshmem_info_get_name);
  have<void(int)>(aclshmem_global_exit);
  have<void*(size_t)>(aclshmem_malloc);
  have<void*(size_t, size_t)>(aclshmem_calloc);
  have<void*(size_t, size_t)>(aclshmem_align);
  have<void(void*)>(aclshmem_free);
  have<void*(size_t, aclshmem_mem_type_t)>(aclshmemx_malloc);
  have<void*(size_t, size_t, aclshmem_mem_type_t)>(aclshmemx_calloc);
  have<void*(size_t, size_t, aclshmem_mem_type_t)>(aclshmemx_align);
  have<void(void*, aclshmem_mem_type_t)>(aclshmemx_free);
  have<void*(aclshmem_mem_type_t)>(aclshmemx_get_heap_base);
  have<int()>(aclshmem_my_pe);
  have<int()>(aclshmem_n_pes);
  have<int(aclshmem_team_t)>(aclshmem_team_my_pe);
  have<int(aclshmem_team_t)>(aclshmem_team_n_pes);
  have<int(aclshmem_team_t, int, int, int, aclshmem_team_t*)>(aclshmem_team_split_strided);
  have<int(aclshmem_team_t, int, aclshmem_team_t*, aclshmem_team_t*)>(aclshmem_team_split_2d);
  have<int(aclshmem_team_t, int, aclshmem_team_t)>(aclshmem_team_translate_pe);
  have<int(aclshmem_team_t, aclshmem_team_config_t*)>(aclshmem_team_get_config);
  have<void(aclshmem_team_t)>(aclshmem_team_destroy);
  have<int(uint64_t, uint32_t, uint32_t)>(aclshmemx_set_mte_config);
  have<int(uint64_t, uint32_t, uint32_t)>(aclshmemx_set_sdma_config);
  have<int(uint64_t, uint32_t, uint32_t)>(aclshmemx_set_rdma_config);
  have<int(uint64_t, uint32_t, uint32_t)>(aclshmemx_set_udma_config);
  have<uint64_t()>(util_get_ffts_config);
  have<int32_t(void (*)(int, const char*))>(aclshmemx_set_extern_logger);
  have<int32_t(int)>(aclshmemx_set_log_level);
  have<void(aclshmem_prof_pe_t**, bool)>(aclshmemx_get_prof);
  have<void()>(aclshmemx_show_prof);
}

static_assert(sizeof(aclshmemx_init_attr_t) == 120 &&
                  offsetof(aclshmemx_init_attr_t, comm_args) == 104 &&
                  offsetof(aclshmemx_init_attr_t, instance_id) == 112,
              "attributes");
static_assert(sizeof(aclshmem_init_optional_attr_t) == 24, "options");
static_assert(sizeof(aclshmemx_uniqueid_t) == 136 && ACLSHMEM_UNIQUEID_VERSION == 65672, "id");
static_assert(sizeof(aclshmem_team_config_t) == 64 && sizeof(aclshmemx_team_t) == 131160 &&
                  offsetof(aclshmemx_team_t, pe_mapping) == 88,
              "teams");
static_assert(sizeof(aclshmem_device_host_state_t) == 32992 &&
                  offsetof(aclshmem_device_host_state_t, team_pools) == 16472 &&
                  offsetof(aclshmem_device_host_state_t, udma_config) == 32944 &&
                  offsetof(aclshmem_device_host_state_t, signal_addr) == 32984,
              "state of the device");
static_assert(sizeof(aclshmem_host_state_t) == 400 && sizeof(aclshmem_instance_ctx) == 16, "state");
static_assert(sizeof(aclshmem_prof_block_t) == 16384 && sizeof(aclshmem_prof_pe_t) == 1048584,
              "cycles");
static_assert(sizeof(aclshmemx_sync_bit) == 64 && sizeof(aclshmem_transport_t) == 1, "words");
static_assert(SYNC_ARRAY_SIZE == 2560 && SYNC_POOL_SIZE == 5242880 &&
                  SYNC_COUNTERS_SIZE == 131072 && ACLSHMEM_CORE_SYNC_POOL_SIZE == 18432 &&
                  ACLSHMEM_EXTRA_SIZE == 6291456 && ACLSHMEM_STARS_NOTIFY_ADDR_OFFSET == 14336,
              "sizes");
static_assert(ACLSHMEM_MAX_LOCAL_SIZE == 42949672960ULL &&
                  ACLSHMEM_HEAP_ALIGNMENT_SIZE == 1073741824 && ACLSHMEM_PAGE_SIZE == 2097152,
              "heaps");
static_assert(ACLSHMEMX_INIT_MAX == 2147483648U && ACLSHMEM_STATUS_INVALID == 2147483647 &&
                  ACLSHMEM_UNDER_API_UNLOAD == -11 && ACLSHMEM_DATA_OP_MAX == 8,
              "numbers");
static_assert(sizeof(shmem_init_attr_t) == 120 && sizeof(shmem_uniqueid_t) == 136, "aliases");
static_assert(ALIGN_UP(5, 4) == 8 && ALIGH_TO(5, 4) == 8, "rounding");

// The names without "acl" are these functions.
bool have_aliases() {
  void* (*volatile allocate)(size_t) = shmem_malloc;
  int (*volatile start)(aclshmemx_bootstrap_t, aclshmemx_init_attr_t*) = shmem_init_attr;
  void (*volatile quiet)(aclrtStream) = shmemx_quiet_on_stream;
  void (*volatile put)(double*, double*, size_t, uint8_t*, int32_t, int, int) =
      shmem_put_double_mem_signal;
  return allocate == aclshmem_malloc && start == aclshmemx_init_attr &&
         quiet == aclshmemx_quiet_on_stream && put == aclshmem_double_put_signal;
}

}  // namespace

int main() {
  if (!have_aliases()) return 1;
  const aclshmemx_init_attr_t attributes{};
  const aclshmemx_uniqueid_t id = ACLSHMEM_UNIQUEID_INITIALIZER;
  if (attributes.option_attr.shm_init_timeout != DEFAULT_TIMEOUT ||
      attributes.option_attr.data_op_engine_type != ACLSHMEM_DATA_OP_MTE ||
      attributes.option_attr.sockFd != 0 || attributes.comm_args != nullptr ||
      id.version != 65672) {
    std::puts("the values that members have by themselves are others");
    return 1;
  }
  have_data_plane();
  have_streams();
  have_job();
  constexpr int kAll = 350;
  std::printf("%d functions of %d\n", functions, kAll);
  return functions == kAll ? 0 : 1;
}
