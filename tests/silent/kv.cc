// SPDX-License-Identifier: Apache-2.0
// The pool of KV blocks: entries of a stopped member of this host are at hand; those of another
// host come over the wire.
#include <memspan/kv_pool.h>
#include <memspan/memspan.h>
#include <memspan/pool.h>
#include <smem/host/smem_bm.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "silent/pools.h"

namespace {

using silent::Ends;
using silent::kSilent;
using silent::need;
using silent::need_ok;

constexpr std::size_t kSmall = 4096;
constexpr std::size_t kLarge = std::size_t{1} << 20;
constexpr std::uint64_t kGiven = std::uint64_t{64} << 20;
constexpr std::uint32_t kSections = 8;  // each has entries of one size

class Blocks final : public silent::Face {
 public:
  void begin() override {
    silent::begin_pools(rank, size);
    pool_ = smem_bm_create(1, 0, SMEMB_DATA_OP_SDMA, kGiven, 0, 0);
    need(pool_ != nullptr, smem_get_last_err_msg);
    need_ok(memspan_kv_start(pool_, kSections));
    need_ok(smem_bm_join(pool_, 0));
    own_.resize(kLarge);
    touched_.resize(kSmall);
  }
  // Each puts entries, and gets one of each member, which is also put here then.
  void meet(const std::vector<std::string>&) override {
    need_ok(memspan_pool_wait_members(pool_, static_cast<std::uint32_t>(size), 20000));
    need(put(key(rank), kSmall) == 0, "an entry");
    need(put(other(rank), kSmall) == 0, "another entry");
    need(put(large(rank), kLarge) == 0, "a large entry");
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (int peer = 0; peer < size; ++peer)
      while (!touch(peer))
        need(std::chrono::steady_clock::now() < end, "an entry of another member");
  }
  bool touch(int peer) override { return get(key(peer), touched_.data(), kSmall) == 0; }
  bool pour() override { return false; }
  std::string reason() override { return memspan_last_error(); }
  int end() override {
    smem_bm_destroy(pool_);
    smem_bm_uninit(0);
    return 0;
  }

  std::vector<silent::Call> calls() override {
    std::vector<silent::Call> all;
    // A host that does not answer within half a second has nothing, which is no failure.
    const auto remote = [&](const char* name, std::function<int()> make) {
      all.push_back({name, Ends::kAtOnce, Ends::kSoon,
                     [make = std::move(make)] { return std::min(make(), 0); }});
    };
    const auto own = [&](const char* name, std::function<int()> make) {
      all.push_back({name, Ends::kAtOnce, Ends::kAtOnce, std::move(make)});
    };
    remote("memspan_kv_get", [this] { return get(other(kSilent), own_.data(), kSmall); });
    remote("memspan_kv_get-large", [this] { return get(large(kSilent), own_.data(), kLarge); });
    remote("memspan_kv_lookup", [this] { return lookup(other(kSilent)); });
    own("memspan_kv_put", [this] { return put(key(100), kSmall); });
    own("memspan_kv_put-large", [this] { return put(key(101), kLarge); });
    own("memspan_kv_remove", [this] {
      std::size_t removed = 0;
      const memspan_kv_key_t one = key(rank);
      const int code = memspan_kv_remove(pool_, &one, 1, &removed);
      return code != 0 ? code : static_cast<int>(removed) - 1;
    });
    own("memspan_kv_stats", [this] {
      memspan_kv_stats_t stats;
      return memspan_kv_stats(pool_, &stats);
    });
    return all;
  }

 private:
  static memspan_kv_key_t key(int number) {
    memspan_kv_key_t made = {};
    std::memset(made.bytes, number + 1, sizeof made.bytes);
    return made;
  }
  static memspan_kv_key_t other(int rank) { return key(30 + rank); }
  static memspan_kv_key_t large(int rank) { return key(50 + rank); }

  // 0 if it is in the pool, 1 if it is not, or the code of a failure, which is negative.
  int put(const memspan_kv_key_t& one, std::uint64_t bytes) {
    void* const from = own_.data();
    std::int32_t result = 0;
    const int code = memspan_kv_put(pool_, &one, 1, &from, &bytes, 1, &result);
    return code != 0 ? code : result >= MEMSPAN_KV_DONE ? 0 : 1;
  }
  int get(const memspan_kv_key_t& one, void* to, std::uint64_t bytes) {
    std::int32_t result = 0;
    const int code = memspan_kv_get(pool_, &one, 1, &to, &bytes, 1, &result);
    return code != 0 ? code : result == MEMSPAN_KV_DONE ? 0 : 1;
  }
  int lookup(const memspan_kv_key_t& one) {
    std::size_t found = 0;
    const int code = memspan_kv_lookup(pool_, &one, 1, nullptr, &found);
    return code != 0 ? code : found == 1 ? 0 : 1;
  }

  smem_bm_t pool_ = nullptr;
  std::vector<char> own_;
  std::vector<char> touched_;
};

}  // namespace

int main(int argc, char** argv) {
  Blocks face;
  return silent::main_of(face, argc, argv);
}
