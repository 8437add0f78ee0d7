// SPDX-License-Identifier: Apache-2.0
// Pools. The memory of a member on this host is mapped; that of others is reached through their
// process.
#include <memspan/memspan.h>
#include <memspan/pool.h>
#include <smem/host/smem_bm.h>

#include <cstdlib>

#include "silent/pools.h"

namespace {

using silent::Ends;
using silent::kNear;
using silent::kSilent;
using silent::need;
using silent::need_ok;

constexpr std::size_t kSmall = 4096;
constexpr std::size_t kLarge = std::size_t{20} << 20;
constexpr std::uint64_t kGiven = std::uint64_t{32} << 20;

class Pools final : public silent::Face {
 public:
  void begin() override {
    silent::begin_pools(rank, size);
    pool_ = fresh_pool(1);
    need_ok(smem_bm_join(pool_, 0));
    own_.resize(kLarge);
  }
  void meet(const std::vector<std::string>&) override {
    need_ok(memspan_pool_wait_members(pool_, static_cast<std::uint32_t>(size), 20000));
    for (int peer = 0; peer < size; ++peer) need_ok(put(peer, own_.data(), kSmall));
  }
  bool touch(int peer) override { return put(peer, touched_, sizeof touched_) == SMEM_OK; }
  bool pour() override { return put(kSilent, own_.data(), kLarge) == SMEM_OK; }
  std::string reason() override { return memspan_last_error(); }
  int end() override {
    smem_bm_destroy(pool_);
    smem_bm_uninit(0);
    return 0;
  }

  std::vector<silent::Call> calls() override {
    std::vector<silent::Call> all;
    const auto remote = [&](const char* name, std::function<int()> make) {
      all.push_back({name, Ends::kAtOnce, Ends::kInTime, std::move(make)});
    };
    remote("smem_bm_copy-H2G", [this] { return put(kSilent, own_.data(), kSmall); });
    remote("smem_bm_copy-H2G-large", [this] { return put(kSilent, own_.data(), kLarge); });
    remote("smem_bm_copy-G2H",
           [this] { return copy(there(kSilent), own_.data(), kSmall, SMEMB_COPY_G2H, 0); });
    remote("smem_bm_copy-G2H-large",
           [this] { return copy(there(kSilent), own_.data(), kLarge, SMEMB_COPY_G2H, 0); });
    remote("smem_bm_copy-G2G",
           [this] { return copy(there(kSilent), there(kNear), kSmall, SMEMB_COPY_G2G, 0); });
    remote("smem_bm_copy-G2G-large",
           [this] { return copy(there(kNear), there(kSilent), kLarge, SMEMB_COPY_G2G, 0); });
    remote("smem_bm_copy-AUTO",
           [this] { return copy(own_.data(), there(kSilent), kSmall, SMEMB_COPY_AUTO, 0); });
    remote("smem_bm_copy_batch", [this] { return batch(nullptr); });
    remote("smem_bm_copy_batch_partial_succeed", [this] {
      std::int32_t codes[3] = {};
      smem_batch_copy_result results{codes, 3};
      const int code = batch(&results);
      need(codes[1] == SMEM_OK, "the element of a living rank failed");
      return code;
    });
    remote("smem_bm_copy+smem_bm_wait", [this] {
      const int code = copy(own_.data(), there(kSilent), kLarge, SMEMB_COPY_H2G, ASYNC_COPY_FLAG);
      return code == SMEM_OK ? smem_bm_wait(pool_) : code;
    });
    add_control(all);
    return all;
  }

 private:
  static smem_bm_t fresh_pool(std::uint32_t id) {
    smem_bm_t const pool = smem_bm_create(id, 0, SMEMB_DATA_OP_SDMA, kGiven, 0, 0);
    need(pool != nullptr, smem_get_last_err_msg);
    return pool;
  }
  char* there(int peer) const {
    return static_cast<char*>(
        smem_bm_ptr_by_mem_type(pool_, SMEM_MEM_TYPE_HOST, static_cast<std::uint16_t>(peer)));
  }
  int copy(const void* from, void* to, std::size_t bytes, smem_bm_copy_type type,
           std::uint32_t flags) {
    smem_copy_params params{from, to, bytes};
    return smem_bm_copy(pool_, &params, type, flags);
  }
  int put(int peer, const void* from, std::size_t bytes) {
    return copy(from, there(peer), bytes, SMEMB_COPY_H2G, 0);
  }
  int batch(smem_batch_copy_result* results) {
    void* from[] = {own_.data(), own_.data(), own_.data()};
    void* to[] = {there(kSilent), there(kNear), there(kSilent) + kSmall};
    const std::uint64_t bytes[] = {kSmall, kSmall, kSmall};
    smem_batch_copy_params params{from, to, bytes, 3};
    return results == nullptr
               ? smem_bm_copy_batch(pool_, &params, SMEMB_COPY_H2G, 0)
               : smem_bm_copy_batch_partial_succeed(pool_, &params, SMEMB_COPY_H2G, 0, results);
  }

  // What the store serves, and members are only told of; they have a second to let memory go.
  void add_control(std::vector<silent::Call>& all) {
    const auto control = [&](const char* name, Ends ends, std::function<int()> make) {
      all.push_back({name, ends, ends, std::move(make)});
    };
    control("smem_bm_create", Ends::kAtOnce, [] { return smem_bm_destroy(fresh_pool(2)), 0; });
    control("smem_bm_join", Ends::kSoon, [] { return smem_bm_join(fresh_pool(2), 0); });
    control("smem_bm_leave", Ends::kSoon, [this] { return smem_bm_leave(pool_, 0); });
    all.back().is_end = true;
    control("smem_bm_destroy", Ends::kSoon, [this] { return smem_bm_destroy(pool_), 0; });
    all.back().is_end = true;
    control("smem_bm_uninit", Ends::kSoon, [] { return smem_bm_uninit(0), 0; });
    all.back().is_end = true;
    control("memspan_pool_wait_members", Ends::kAtOnce, [this] {
      return memspan_pool_wait_members(pool_, static_cast<std::uint32_t>(size),
                                       1000 * silent::kTimeout);
    });
    control("memspan_pool_wait_rank", Ends::kAtOnce,
            [this] { return memspan_pool_wait_rank(pool_, kSilent, 1000 * silent::kTimeout); });
    control("smem_bm_register_user_mem", Ends::kAtOnce, [this] {
      return smem_bm_register_user_mem(pool_, reinterpret_cast<std::uint64_t>(own_.data()), kSmall);
    });
  }

  smem_bm_t pool_ = nullptr;
  std::vector<char> own_;
  char touched_[64] = {};
};

}  // namespace

int main(int argc, char** argv) {
  Pools face;
  return silent::main_of(face, argc, argv);
}
