// SPDX-License-Identifier: Apache-2.0
// The faces but CANN SHMEM's without memory (no_memory.h). The argument names the part.
#include "no_memory.h"

#include <memspan/group.h>
#include <memspan/kv_pool.h>
#include <memspan/memspan.h>
#include <memspan/stream.h>
#include <memspan/transfer.h>
#include <shmem.h>
#include <smem/host/smem.h>
#include <smem/host/smem_bm.h>
#include <smem/host/smem_shm.h>
#include <smem/host/smem_trans.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>

#include "support/free_url.h"

namespace {

// Of this thread: how many allocations succeed before one fails; -1: all do.
thread_local long left = -1;
thread_local bool all_fail = false;
thread_local bool has_failed = false;
int wrong_results = 0;

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (left == 0) {
    has_failed = true;
    if (!all_fail) left = -1;
    return nullptr;
  }
  if (left > 0) --left;
  return alignment == 0
             ? std::malloc(bytes)
             : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  void* const memory = allocate(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) {
  return allocate_or_throw(bytes, 0);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, 0);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace no_memory {

void check(bool is_right, const char* what) {
  if (is_right) return;
  std::fprintf(stderr, "wrong: %s (last error: %s)\n", what, memspan_last_error());
  ++wrong_results;
}

int wrong() {
  return wrong_results;
}

void take_all() {
  all_fail = true;
  left = 0;
}

namespace {

// Whether the call needs no more than `allocations`.
bool try_with(const Case& which, long allocations) {
  has_failed = false;
  left = allocations;
  const int code = which.call();
  left = -1;
  if (code == 0) {
    if (which.undo != nullptr) which.undo();
    return !has_failed;
  }
  const char* const message = memspan_last_error();
  const bool is_named = std::strncmp(message, which.function, std::strlen(which.function)) == 0;
  if (!has_failed || code != which.expected || !is_named ||
      std::strstr(message, "out of memory") == nullptr) {
    std::fprintf(stderr, "wrong: %s with %ld allocations returns %d, and says: %s\n",
                 which.function, allocations, code, message);
    ++wrong_results;
  }
  return !has_failed;
}

}  // namespace

void sweep_once(const Case& which) {
  constexpr long kMost = 20000;
  long allocations = 0;
  while (allocations < kMost && !try_with(which, allocations)) ++allocations;
  std::printf("%s: %ld allocations%s\n", which.function, allocations, all_fail ? ", all" : "");
  std::fflush(stdout);
  check(allocations < kMost, which.function);
}

void sweep(const Case& which) {
  all_fail = true;
  sweep_once(which);
  all_fail = false;
  sweep_once(which);
}

}  // namespace no_memory

namespace {

using no_memory::check;
using no_memory::sweep;
using no_memory::sweep_all;
using no_memory::sweep_once;

struct Ended {};

void throw_it(const char*, int reason, const char*) {
  check(!has_failed || reason == MEMSPAN_END_OUT_OF_MEMORY, "the reason of an end");
  throw Ended();
}

// 7 when the call would have ended the process.
template <typename Call>
int ended(Call call) {
  try {
    call();
  } catch (const Ended&) {
    return 7;
  }
  return 0;
}

constexpr size_t kBlock = 256 << 10;  // of a heap of 1 MiB
shmem_team_t team;
shmem_ctx_t ctx;
void* block;
long* words;

void check_openshmem() {
  setenv("SHMEM_SYMMETRIC_SIZE", "1m", 1);
  memspan_set_end_handler(throw_it);
  sweep_once(
      {"shmem_init", 7, [] { return ended([] { shmem_init(); }); }, [] { shmem_finalize(); }});
  shmem_init();
  words = static_cast<long*>(shmem_calloc(8, sizeof(long)));
  sweep_all({
      {"shmem_team_split_strided", 1,
       [] { return shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, nullptr, 0, &team); },
       [] { shmem_team_destroy(team); }},
      {"shmem_ctx_create", 1, [] { return shmem_ctx_create(0, &ctx); },
       [] { shmem_ctx_destroy(ctx); }},
      {"shmem_malloc", 1, [] { return (block = shmem_malloc(kBlock)) == nullptr ? 1 : 0; },
       [] { shmem_free(block); }},
      {"shmem_team_sync", 1, [] { return shmem_team_sync(SHMEM_TEAM_WORLD); }, nullptr},
      {"shmem_long_sum_reduce", 1,
       [] { return shmem_long_sum_reduce(SHMEM_TEAM_WORLD, words, words + 4, 4); }, nullptr},
      {"shmem_barrier_all", 7, [] { return ended([] { shmem_barrier_all(); }); }, nullptr},
      {"shmem_long_iput", 7,
       [] {
         static const long source[2] = {1, 2};
         return ended([] { shmem_long_iput(words, source, 1, 1, 2, 0); });
       },
       nullptr},
      {"shmem_long_wait_until", 7,
       [] { return ended([] { shmem_long_wait_until(words + 7, SHMEM_CMP_EQ, 0); }); }, nullptr},
  });
  // A mistake whose message has no memory.
  sweep({"shmem_long_p", 7,
         [] {
           const int code = ended([] { shmem_long_p(words, 1, 99); });
           return code == 7 && !has_failed ? 0 : code;
         },
         nullptr});
  block = shmem_malloc(3 * kBlock);
  check(block != nullptr, "a block that was lost");
  shmem_free(block);
  shmem_long_p(words, 5, 0);
  check(shmem_long_g(words, 0) == 5, "the job after that");
  memspan_set_end_handler(nullptr);
  shmem_finalize();
}

char url[64];
smem_bm_config_t bm_config;
smem_bm_t pool;
char local[64];

smem_bm_t make_pool() {
  return smem_bm_create(0, 0, SMEMB_DATA_OP_SDMA, 4 << 20, 0, 0);
}

void check_pools() {
  check(write_free_url(url, sizeof url) != 0, "a free port");
  smem_bm_config_init(&bm_config);
  sweep_once({"smem_bm_init", SMEM_MALLOC_FAILED,
              [] { return smem_bm_init(url, 1, 0, &bm_config); }, [] { smem_bm_uninit(0); }});
  check(smem_bm_init(url, 1, 0, &bm_config) == SMEM_OK, "smem_bm_init");
  sweep_once({"smem_bm_create", SMEM_MALLOC_FAILED,
              [] { return (pool = make_pool()) == nullptr ? smem_get_last_err_code() : 0; },
              [] { smem_bm_destroy(pool); }});
  pool = make_pool();
  sweep_all({{"memspan_kv_start", SMEM_MALLOC_FAILED,
              [] {
                const int code = memspan_kv_start(pool, 1);
                return code == SMEM_DUPLICATED ? 0 : code;
              },
              nullptr},
             {"smem_bm_join", SMEM_MALLOC_FAILED,
              [] {
                const int code = smem_bm_join(pool, 0);
                return code == SMEM_DUPLICATED ? 0 : code;
              },
              [] { smem_bm_leave(pool, 0); }}});
  check(smem_bm_join(pool, 0) == SMEM_OK, "smem_bm_join");
  sweep_all(
      {{"smem_bm_register_user_mem", SMEM_MALLOC_FAILED,
        [] { return smem_bm_register_user_mem(pool, reinterpret_cast<std::uintptr_t>(local), 64); },
        [] { smem_bm_unregister_user_mem(pool, reinterpret_cast<std::uintptr_t>(local)); }},
       {"smem_bm_copy", SMEM_MALLOC_FAILED,
        [] {
          smem_copy_params copy{local, smem_bm_ptr_by_mem_type(pool, SMEM_MEM_TYPE_HOST, 0), 64};
          return smem_bm_copy(pool, &copy, SMEMB_COPY_L2G, 0);
        },
        nullptr},
       {"smem_bm_copy", SMEM_MALLOC_FAILED,
        [] {
          smem_copy_params copy{local, smem_bm_ptr_by_mem_type(pool, SMEM_MEM_TYPE_HOST, 0), 64};
          return smem_bm_copy(pool, &copy, SMEMB_COPY_L2G, ASYNC_COPY_FLAG);
        },
        [] { check(smem_bm_wait(pool) == SMEM_OK, "smem_bm_wait"); }},
       {"memspan_kv_put", SMEM_MALLOC_FAILED,
        [] {
          static const memspan_kv_key_t key = {{1}};
          static const uint64_t size = sizeof local;
          void* address = local;
          int32_t result = 0;
          return memspan_kv_put(pool, &key, 1, &address, &size, 1, &result);
        },
        nullptr}});
  // More keys than any container holds.
  memspan_kv_key_t key = {};
  void* address = local;
  std::uint64_t size = sizeof local;
  std::size_t found = 0;
  std::int32_t result = 0;
  check(memspan_kv_lookup(pool, &key, SIZE_MAX, &size, &found) == SMEM_MALLOC_FAILED, "lookup");
  check(memspan_kv_put(pool, &key, SIZE_MAX, &address, &size, 1, &result) == SMEM_MALLOC_FAILED,
        "put");
  check(memspan_kv_remove(pool, &key, SIZE_MAX, &found) == SMEM_MALLOC_FAILED, "remove");
  smem_bm_destroy(pool);
  smem_bm_uninit(0);
}

smem_shm_config_t shm_config;
smem_shm_t space;
void* base;

void check_spaces() {
  check(write_free_url(url, sizeof url) != 0, "a free port");
  smem_shm_config_init(&shm_config);
  sweep_once({"smem_shm_init", SMEM_MALLOC_FAILED,
              [] { return smem_shm_init(url, 1, 0, 0, &shm_config); }, [] { smem_shm_uninit(0); }});
  check(smem_shm_init(url, 1, 0, 0, &shm_config) == SMEM_OK, "smem_shm_init");
  sweep_once({"smem_shm_create", SMEM_MALLOC_FAILED,
              [] {
                space = smem_shm_create(0, 1, 0, 1 << 20, SMEMS_DATA_OP_MTE, 0, &base);
                return space == nullptr ? smem_get_last_err_code() : 0;
              },
              [] { smem_shm_destroy(space, 0); }});
  space = smem_shm_create(0, 1, 0, 1 << 20, SMEMS_DATA_OP_MTE, 0, &base);
  sweep({"smem_shm_control_barrier", SMEM_MALLOC_FAILED,
         [] { return smem_shm_control_barrier(space); }, nullptr});
  smem_shm_destroy(space, 0);
  smem_shm_uninit(0);
}

constexpr const char* kMe = "127.0.0.1:7777";
smem_trans_config_t trans_config;
smem_trans_t endpoint;
memspan_transfer_t request;

void check_endpoints() {
  check(write_free_url(url, sizeof url) != 0, "a free port");
  smem_trans_config_init(&trans_config);
  trans_config.role = SMEM_TRANS_BOTH;
  trans_config.startConfigServer = true;
  sweep({"smem_trans_init", SMEM_MALLOC_FAILED, [] { return smem_trans_init(&trans_config); },
         nullptr});
  sweep_once({"smem_trans_create", SMEM_MALLOC_FAILED,
              [] {
                endpoint = smem_trans_create(url, kMe, &trans_config);
                return endpoint == nullptr ? smem_get_last_err_code() : 0;
              },
              [] { smem_trans_destroy(endpoint, 0); }});
  endpoint = smem_trans_create(url, kMe, &trans_config);
  sweep({"smem_trans_malloc", SMEM_MALLOC_FAILED,
         [] {
           block = smem_trans_malloc(endpoint, 4096);
           return block == nullptr ? smem_get_last_err_code() : 0;
         },
         [] { smem_trans_free(endpoint, block); }});
  block = smem_trans_malloc(endpoint, 4096);
  sweep({"memspan_transfer_prepare", SMEM_MALLOC_FAILED,
         [] {
           void* const from[] = {local};
           void* const to[] = {block};
           const size_t bytes[] = {sizeof local};
           return memspan_transfer_prepare(endpoint, MEMSPAN_TRANSFER_WRITE, kMe, from, to, bytes,
                                           1, &request);
         },
         [] { memspan_transfer_destroy(request); }});
  check(smem_trans_write(endpoint, local, kMe, block, sizeof local) == SMEM_OK,
        "a write after that");
  smem_trans_destroy(endpoint, 0);
  smem_trans_uninit(0);
}

memspan_group_t group;
memspan_group_request_t message;

void check_groups() {
  sweep_once({"memspan_group_create", SMEM_MALLOC_FAILED,
              [] {
                return memspan_group_create(
                    0, 1,
                    [](void*, const void* mine, size_t bytes, void* all) {
                      std::memcpy(all, mine, bytes);
                      return 0;
                    },
                    nullptr, 10000, &group);
              },
              [] { memspan_group_destroy(group); }});
  memspan_group_create(
      0, 1,
      [](void*, const void* mine, size_t bytes, void* all) {
        std::memcpy(all, mine, bytes);
        return 0;
      },
      nullptr, 10000, &group);
  sweep_all({{"memspan_group_all_reduce", SMEM_MALLOC_FAILED,
              [] {
                return memspan_group_all_reduce(group, local, local, 8, MEMSPAN_TYPE_INT64,
                                                MEMSPAN_OP_SUM);
              },
              nullptr},
             {"memspan_group_send", SMEM_MALLOC_FAILED,
              [] { return memspan_group_send(group, 0, 1, local, sizeof local, &message); },
              [] {
                memspan_group_request_t received = nullptr;
                memspan_group_receive(group, 0, 1, local, sizeof local, &received);
                check(memspan_group_wait(received, 10000) == SMEM_OK, "the message");
                memspan_group_request_free(received);
                memspan_group_request_free(message);
              }},
             {"memspan_shareable_create", SMEM_MALLOC_FAILED,
              [] {
                block = memspan_shareable_create(4096);
                return block == nullptr ? smem_get_last_err_code() : 0;
              },
              [] { memspan_shareable_destroy(block); }}});
  memspan_group_destroy(group);
}

memspan_stream_t stream;
int arguments_left = 0;

void check_streams() {
  sweep({"memspan_stream_create", SMEM_MALLOC_FAILED, [] { return memspan_stream_create(&stream); },
         [] { memspan_stream_destroy(stream); }});
  memspan_stream_create(&stream);
  const auto synchronize = [] {
    check(memspan_stream_synchronize(stream, 10000) == 0, "a stream");
  };
  sweep_all({{"memspan_stream_call", SMEM_MALLOC_FAILED,
              [] {
                return memspan_stream_call(
                    stream, [](void*) { return int32_t{0}; }, nullptr);
              },
              synchronize},
             {"memspan_stream_launch", SMEM_MALLOC_FAILED,
              [] {
                ++arguments_left;
                return memspan_stream_launch(
                    stream, 2, [](void*) {}, &arguments_left,
                    [](void* given) { --*static_cast<int*>(given); });
              },
              synchronize}});
  memspan_stream_destroy(stream);
  check(arguments_left == 0, "arguments that were not released");
}

// Ends with one line, and code 1.
int end_without_memory() {
  std::puts("started");
  no_memory::take_all();
  shmem_init();
  return 0;
}

}  // namespace

int main(int, char** arguments) {
  const char* const part = arguments[1];
  const auto is = [part](const char* name) { return std::strcmp(part, name) == 0; };
  if (is("end")) return end_without_memory();
  if (is("openshmem")) check_openshmem();
  if (is("pools")) check_pools();
  if (is("spaces")) check_spaces();
  if (is("endpoints")) check_endpoints();
  if (is("groups")) check_groups();
  if (is("streams")) check_streams();
  if (is("cann")) no_memory::check_cann();
  return no_memory::wrong() == 0 ? 0 : 1;
}
