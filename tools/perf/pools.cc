// SPDX-License-Identifier: Apache-2.0
// Copies between PE 0's memory and the last PE's window of a pool (smem_bm_*).
#include <fmt/format.h>
#include <shmem.h>
#include <smem/host/smem_bm.h>

#include <memory>

#include "perf/meter.h"
#include "perf/store.h"

namespace memspan::perf {
namespace {

constexpr uint32_t kPool = 1;

// Owns this process's membership of a pool. All PEs make and destroy it together.
class Pool : NotCopyable {
 public:
  static Result<std::unique_ptr<Pool>> join(Meter& meter, std::size_t bytes) {
    MEMSPAN_TRY_ASSIGN(const std::string store, meeting_store(meter), "pools");
    smem_bm_config_t config;
    smem_bm_config_init(&config);
    config.startConfigStoreServer = false;
    config.autoRanking = false;
    config.rankId = static_cast<uint16_t>(meter.rank());
    if (const int code =
            smem_bm_init(store.c_str(), static_cast<uint32_t>(meter.size()), 0, &config);
        code != SMEM_OK)
      return smem_failure("smem_bm_init", code);
    std::unique_ptr<Pool> pool(new Pool());
    pool->handle_ = smem_bm_create(kPool, 0, SMEMB_DATA_OP_SDMA, bytes, 0, 0);
    if (pool->handle_ == nullptr) return smem_failure("smem_bm_create", smem_get_last_err_code());
    if (const int code = smem_bm_join(pool->handle_, 0); code != SMEM_OK)
      return smem_failure("smem_bm_join", code);
    shmem_barrier_all();
    return pool;
  }
  ~Pool() {
    const auto destroy = [this] {
      if (handle_ != nullptr) smem_bm_destroy(handle_);
    };
    leave_together(destroy, [] { smem_bm_uninit(0); });
  }

  smem_bm_t handle() const { return handle_; }
  std::byte* window_of(int rank) const {
    return static_cast<std::byte*>(
        smem_bm_ptr_by_mem_type(handle_, SMEM_MEM_TYPE_HOST, static_cast<uint16_t>(rank)));
  }

 private:
  Pool() = default;
  smem_bm_t handle_ = nullptr;
};

// The pieces of a batch are adjacent at both ends.
struct Batch {
  std::vector<void*> from;
  std::vector<void*> to;
  std::vector<uint64_t> sizes;

  Batch(std::byte* source, std::byte* target, std::size_t bytes, std::size_t pieces)
      : from(pieces), to(pieces), sizes(pieces, bytes) {
    for (std::size_t i = 0; i < pieces; ++i) {
      from[i] = source + i * bytes;
      to[i] = target + i * bytes;
    }
  }
};

}  // namespace

Status run_pool(Meter& meter, const Test& test) {
  const bool is_batch = test.name == "bm-batch";
  const bool is_read = test.name == "bm-read";
  const std::size_t pieces = is_batch ? meter.plan().batch : 1;
  const std::size_t most = meter.plan().sizes.back() * pieces;
  MEMSPAN_TRY_ASSIGN(const std::unique_ptr<Pool> pool, Pool::join(meter, most), test.name);
  std::vector<std::byte> here(most, std::byte{1});
  std::byte* const there = pool->window_of(meter.far());
  int code = SMEM_OK;
  for (const std::size_t bytes : meter.plan().sizes) {
    Batch batch(here.data(), there, bytes, pieces);
    smem_batch_copy_params all{batch.from.data(), batch.to.data(), batch.sizes.data(),
                               static_cast<uint32_t>(pieces)};
    smem_copy_params one{is_read ? there : here.data(), is_read ? here.data() : there, bytes};
    meter.measure(test, bytes, Actors::kFirst, pieces, [&](std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) {
        const int result = is_batch ? smem_bm_copy_batch(pool->handle(), &all, SMEMB_COPY_AUTO, 0)
                                    : smem_bm_copy(pool->handle(), &one, SMEMB_COPY_AUTO, 0);
        if (result != SMEM_OK) code = result;
      }
    });
  }
  return code == SMEM_OK ? Status::ok() : smem_failure("smem_bm_copy", code);
}

}  // namespace memspan::perf
