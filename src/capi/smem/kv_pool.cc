// SPDX-License-Identifier: Apache-2.0
// The functions of memspan/kv_pool.h.
#include <memspan/kv_pool.h>

#include "capi/smem/bm.h"
#include "observe/counters.h"

namespace memspan::capi {
namespace {

using blocks::BlockCache;
using blocks::Key;
using blocks::Outcome;

// The caller's keys have any alignment.
std::vector<Key> keys_of(const memspan_kv_key_t* keys, std::size_t count) {
  static_assert(sizeof(memspan_kv_key_t) == sizeof(Key));
  std::vector<Key> all(count);
  if (count > 0) std::memcpy(static_cast<void*>(all.data()), keys, count * sizeof(Key));
  return all;
}

Status check_keys(const memspan_kv_key_t* keys, std::size_t count) {
  return keys == nullptr && count > 0 ? invalid("keys is NULL") : Status::ok();
}

template <typename Action>
std::int32_t with_cache(const char* call, smem_bm_t pool, Action action) {
  return with<Pools>(call, pool, [&](BigMemory& memory) {
    BlockCache* const cache = memory.blocks_ready.load(std::memory_order_acquire);
    return cache != nullptr
               ? action(*cache)
               : Status(Code::kUnavailable, "memspan_kv_start() was not called for the pool");
  });
}

struct Batch {
  const memspan_kv_key_t* keys;
  std::size_t count;
  void* const* addresses;
  const std::uint64_t* sizes;
  std::size_t pieces;
  std::int32_t* results;
};

Status check_batch(const Batch& batch) {
  MEMSPAN_PASS(check_keys(batch.keys, batch.count));
  if (batch.count == 0) return Status::ok();
  if (batch.addresses == nullptr) return invalid("addresses is NULL");
  if (batch.sizes == nullptr) return invalid("sizes is NULL");
  if (batch.results == nullptr) return invalid("results is NULL");
  if (std::all_of(batch.sizes, batch.sizes + batch.pieces, [](auto size) { return size == 0; }))
    return invalid("the pieces of an entry have no bytes");
  return Status::ok();
}

using Move = Status (BlockCache::*)(std::span<const Key> keys, const blocks::Pieces& pieces,
                                    std::span<Outcome> outcomes);
std::int32_t move_batch(const char* call, smem_bm_t pool, const Batch& batch, Move move) {
  return with_cache(call, pool, [&](BlockCache& cache) -> Status {
    MEMSPAN_PASS(check_batch(batch));
    RecordedCall recorded(CallKind::kCopy, call, kNobodyNamed,
                          batch.count * counted_bytes(batch.sizes, batch.pieces));
    const auto keys = keys_of(batch.keys, batch.count);
    std::vector<Outcome> outcomes(batch.count);
    Status status =
        (cache.*move)(keys, blocks::Pieces{batch.addresses, batch.sizes, batch.pieces}, outcomes);
    std::transform(outcomes.begin(), outcomes.end(), batch.results,
                   [](Outcome outcome) { return static_cast<std::int32_t>(outcome); });
    return recorded.ends(std::move(status));
  });
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_EXPORT int32_t memspan_kv_start(smem_bm_t pool, uint32_t sections) {
  return with<Pools>(
      __func__, pool,
      [&](BigMemory& memory) {
        const MutexLock lock(memory.starting);
        if (memory.blocks != nullptr)
          return Status(Code::kUnavailable, "the pool has its share already");
        MEMSPAN_PASS_ASSIGN(memory.blocks, BlockCache::create(*memory.pool, sections));
        memory.blocks_ready.store(memory.blocks.get(), std::memory_order_release);
        return Status::ok();
      },
      SMEM_DUPLICATED);
}

MEMSPAN_EXPORT int32_t memspan_kv_lookup(smem_bm_t pool, const memspan_kv_key_t* keys, size_t count,
                                         uint64_t* bytes, size_t* found) {
  return with_cache(__func__, pool, [&](BlockCache& cache) -> Status {
    MEMSPAN_PASS(check_keys(keys, count));
    if (found == nullptr) return invalid("found is NULL");
    std::vector<std::uint64_t> own(bytes == nullptr ? count : 0);
    const std::span<std::uint64_t> sizes(bytes == nullptr ? own.data() : bytes, count);
    cache.lookup(keys_of(keys, count), sizes);
    *found = static_cast<std::size_t>(std::find(sizes.begin(), sizes.end(), 0) - sizes.begin());
    return Status::ok();
  });
}

MEMSPAN_EXPORT int32_t memspan_kv_put(smem_bm_t pool, const memspan_kv_key_t* keys, size_t count,
                                      void* const* addresses, const uint64_t* sizes, size_t pieces,
                                      int32_t* results) {
  return move_batch(__func__, pool, {keys, count, addresses, sizes, pieces, results},
                    &BlockCache::put);
}

MEMSPAN_EXPORT int32_t memspan_kv_get(smem_bm_t pool, const memspan_kv_key_t* keys, size_t count,
                                      void* const* addresses, const uint64_t* sizes, size_t pieces,
                                      int32_t* results) {
  return move_batch(__func__, pool, {keys, count, addresses, sizes, pieces, results},
                    &BlockCache::get);
}

MEMSPAN_EXPORT int32_t memspan_kv_remove(smem_bm_t pool, const memspan_kv_key_t* keys, size_t count,
                                         size_t* removed) {
  return with_cache(__func__, pool, [&](BlockCache& cache) -> Status {
    MEMSPAN_PASS(check_keys(keys, count));
    std::size_t gone = 0;
    for (const Key& key : keys_of(keys, count)) gone += cache.remove(key) ? 1 : 0;
    if (removed != nullptr) *removed = gone;
    return Status::ok();
  });
}

MEMSPAN_EXPORT int32_t memspan_kv_stats(smem_bm_t pool, memspan_kv_stats_t* stats) {
  return with_cache(__func__, pool, [&](BlockCache& cache) -> Status {
    if (stats == nullptr) return invalid("stats is NULL");
    const auto& counters = cache.counters();
    const auto read = [](const auto& counter) { return counter.load(std::memory_order_relaxed); };
    const auto use = cache.use();
    *stats = {.looked_up = read(counters.looked_up),
              .found = read(counters.found),
              .got = read(counters.got),
              .got_bytes = read(counters.got_bytes),
              .got_remote = read(counters.got_remote),
              .missed = read(counters.missed),
              .put = read(counters.put),
              .put_bytes = read(counters.put_bytes),
              .present = read(counters.present),
              .no_room = read(counters.no_room),
              .evicted = read(counters.evicted),
              .shares = use.shares,
              .capacity = use.capacity,
              .slots = use.slots,
              .entries = use.entries,
              .entry_bytes = use.bytes};
    return Status::ok();
  });
}
