// SPDX-License-Identifier: Apache-2.0
#include "kv_pool.h"

#include <memspan/pool.h>
#include <sched.h>

#include <cstring>
#include <string>

#include "../memfabric/example.h"

namespace kv_pool {
namespace {

using example::must;

constexpr std::size_t kLine = 64;
constexpr double kPatience = 60;  // seconds for other members to come and to finish

std::size_t whole_lines(std::size_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

// Of the hash and the bytes (a multiple of 32): four lanes, as one would wait for its
// multiplications.
std::uint64_t checksum_of(std::uint64_t hash, const void* block, std::size_t bytes) {
  const auto* const from = static_cast<const std::byte*>(block);
  std::uint64_t lanes[4] = {hash, hash + 1, hash + 2, hash + 3};
  for (std::size_t at = 0; at < bytes; at += sizeof lanes) {
    std::uint64_t words[4];
    std::memcpy(words, from + at, sizeof words);
    for (int i = 0; i < 4; ++i) {
      lanes[i] = (lanes[i] ^ words[i]) * 0x9fb21c651e98df25U;
      lanes[i] ^= lanes[i] >> 32;
    }
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t lane : lanes) sum = example::random_number(sum ^ lane);
  return sum;
}

// The other member is not there (yet, or any more), which is no failure of this one.
bool is_absence(int32_t code) {
  return code == SMEM_NOT_CONNECTED || code == SMEM_TIMEOUT;
}

}  // namespace

KvPool::KvPool(const char* store_url, const Shape& shape, std::uint32_t rank)
    : shape_(shape), rank_(rank), hands_(shape.blocks / kWays) {
  static_assert(sizeof(Entry) == sizeof(EntryCopy) &&
                std::atomic<std::uint64_t>::is_always_lock_free);
  smem_bm_config_t config;
  must("smem_bm_config_init", smem_bm_config_init(&config));
  config.autoRanking = false;
  config.rankId = static_cast<std::uint16_t>(rank);
  must("smem_bm_init", smem_bm_init(store_url, shape.members, 0, &config));
  pool_ = must("smem_bm_create",
               smem_bm_create(0, shape.members, SMEMB_DATA_OP_SDMA, part_bytes(), 0, 0));
  mine_ = part(rank);  // all zeros: no block
  must("smem_bm_join", smem_bm_join(pool_, 0));
  must("memspan_pool_wait_members",
       memspan_pool_wait_members(pool_, shape.members,
                                 static_cast<std::uint32_t>(kPatience) * 1000));
}

KvPool::~KvPool() {
  smem_bm_destroy(pool_);
  smem_bm_uninit(0);
}

std::size_t KvPool::part_bytes() const {
  return kLine + whole_lines(shape_.blocks * (sizeof(Entry) + 1)) +
         shape_.blocks * shape_.block_bytes;
}

KvPool::Part KvPool::part(std::uint32_t member) const {
  auto* const base = static_cast<std::byte*>(
      must("smem_bm_ptr_by_mem_type",
           smem_bm_ptr_by_mem_type(pool_, SMEM_MEM_TYPE_HOST, static_cast<std::uint16_t>(member))));
  Part found;
  found.state = reinterpret_cast<std::atomic<std::uint64_t>*>(base);
  found.entries = reinterpret_cast<Entry*>(base + kLine);
  found.referenced = reinterpret_cast<std::atomic<std::uint8_t>*>(found.entries + shape_.blocks);
  found.blocks = base + kLine + whole_lines(shape_.blocks * (sizeof(Entry) + 1));
  return found;
}

// Another member's part is only touched by copies: those fail where a load would crash.
bool KvPool::copy(const void* from, void* to, std::size_t bytes) {
  smem_copy_params params = {from, to, bytes};
  const int32_t code = smem_bm_copy(pool_, &params, SMEMB_COPY_AUTO, 0);
  if (code != SMEM_OK && !is_absence(code)) example::report("smem_bm_copy", code);
  return code == SMEM_OK;
}

void KvPool::put(std::uint64_t hash, const void* block) {
  const std::size_t set = set_of(hash);
  for (std::size_t i = set; i < set + kWays; ++i) {
    if (mine_.entries[i].hash != hash || mine_.entries[i].version == 0) continue;
    mine_.referenced[i].store(1, std::memory_order_relaxed);  // the same hash is the same block
    return;
  }
  const std::size_t i = make_room(set);
  Entry& entry = mine_.entries[i];
  const std::uint64_t version = entry.version.load(std::memory_order_relaxed);
  entry.version.store(version + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);  // odd before anything changes
  entry.hash = hash;
  entry.checksum = checksum_of(hash, block, shape_.block_bytes);
  std::memcpy(mine_.blocks + i * shape_.block_bytes, block, shape_.block_bytes);
  mine_.referenced[i].store(1, std::memory_order_relaxed);
  entry.version.store(version + 2, std::memory_order_release);
}

// The hand goes around at most twice: the first time it takes the marks away.
std::size_t KvPool::make_room(std::size_t set) {
  std::size_t& hand = hands_[set / kWays];
  for (;;) {
    const std::size_t i = set + hand;
    hand = (hand + 1) % kWays;
    if (mine_.entries[i].version.load(std::memory_order_relaxed) == 0) return i;
    if (mine_.referenced[i].exchange(0, std::memory_order_relaxed) != 0) continue;
    ++counts_.evicted;
    return i;
  }
}

std::optional<std::uint32_t> KvPool::get(std::uint64_t hash, void* block) {
  for (std::uint32_t i = 0; i < shape_.members; ++i) {
    const std::uint32_t member = (rank_ + i) % shape_.members;
    if (fetch(member, hash, block)) return member;
  }
  return std::nullopt;
}

bool KvPool::fetch(std::uint32_t member, std::uint64_t hash, void* block) {
  const Part at = member == rank_ ? mine_ : part(member);
  const std::size_t set = set_of(hash);
  EntryCopy entries[kWays];
  if (!copy(&at.entries[set], entries, sizeof entries)) return false;
  for (std::size_t way = 0; way < kWays; ++way) {
    const EntryCopy& entry = entries[way];
    if (entry.hash != hash || entry.version == 0 || entry.version % 2 != 0) continue;
    const std::size_t i = set + way;
    std::uint64_t version = 0;
    if (!copy(at.blocks + i * shape_.block_bytes, block, shape_.block_bytes)) return false;
    std::atomic_thread_fence(std::memory_order_acquire);  // the version after the block
    if (!copy(&at.entries[i].version, &version, sizeof version)) return false;
    if (version == entry.version &&
        entry.checksum == checksum_of(hash, block, shape_.block_bytes)) {
      const char yes = 1;
      return copy(&yes, &at.referenced[i], sizeof yes);
    }
    ++counts_.changed;  // its owner has given the room to another one
  }
  return false;
}

bool KvPool::is_there(std::uint32_t member) {
  std::uint64_t state = 0;
  return copy(part(member).state, &state, sizeof state);
}

void KvPool::finish() {
  mine_.state->store(kFinished, std::memory_order_release);
  const double end = example::seconds_now() + kPatience;
  for (std::uint32_t member = 0; member < shape_.members; ++member) {
    std::uint64_t state = 0;
    // A member that has gone is as good as finished.
    while (copy(part(member).state, &state, sizeof state) && state != kFinished) {
      if (example::seconds_now() > end)
        example::leave(example::kFailed, "member " + std::to_string(member) +
                                             " is not done after " +
                                             std::to_string(static_cast<int>(kPatience)) + " s");
      sched_yield();
    }
  }
}

}  // namespace kv_pool
