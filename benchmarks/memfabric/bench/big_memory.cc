// SPDX-License-Identifier: Apache-2.0
// Copies with a pool of Big Memory, next to memcpy at the same addresses.
#include <smem/host/smem_bm.h>

#include <cstring>
#include <vector>

#include "copies.h"
#include "example.h"
#include "measure.h"

namespace bench {
namespace {

using example::must;

class Pool {
 public:
  Pool(const char* store, std::uint16_t rank) {
    smem_bm_config_t config;
    must("smem_bm_config_init", smem_bm_config_init(&config));
    config.autoRanking = false;
    config.rankId = rank;
    must("smem_bm_init", smem_bm_init(store, 2, 0, &config));
    handle_ =
        must("smem_bm_create", smem_bm_create(0, 2, SMEMB_DATA_OP_SDMA, options.memory, 0, 0));
    std::memset(part(rank), 1, options.memory);
    must("smem_bm_join", smem_bm_join(handle_, 0));
  }
  ~Pool() {
    smem_bm_destroy(handle_);
    smem_bm_uninit(0);
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  smem_bm_t handle() { return handle_; }
  char* part(std::uint16_t rank) {
    return static_cast<char*>(must("smem_bm_ptr_by_mem_type",
                                   smem_bm_ptr_by_mem_type(handle_, SMEM_MEM_TYPE_HOST, rank)));
  }

 private:
  smem_bm_t handle_ = nullptr;
};

class PoolReach : public Reach {
 public:
  // The other has joined; a copy waits until its part is mapped here, and then loads and stores
  // work.
  PoolReach(Pool& pool, char* local) : pool_(pool), local_(local), remote_(pool.part(kOwner)) {
    smem_copy_params params = {remote_, local_, 1};
    must("smem_bm_copy", smem_bm_copy(pool_.handle(), &params, SMEMB_COPY_G2H, 0));
  }

  char* local() override { return local_; }
  void prepare(const Workload& work, Direction direction) override {
    from_.clear();
    to_.clear();
    bytes_.clear();
    for (const Piece& piece : work.pieces) {
      const bool is_write = direction == Direction::kWrite;
      from_.push_back(is_write ? local_ + piece.local : remote_ + piece.remote);
      to_.push_back(is_write ? remote_ + piece.remote : local_ + piece.local);
      bytes_.push_back(piece.bytes);
    }
    type_ = direction == Direction::kWrite ? SMEMB_COPY_H2G : SMEMB_COPY_G2H;
  }
  void ours() override {
    if (bytes_.size() == 1) {
      smem_copy_params params = {from_[0], to_[0], bytes_[0]};
      return must("smem_bm_copy", smem_bm_copy(pool_.handle(), &params, type_, 0));
    }
    smem_batch_copy_params params = {from_.data(), to_.data(), bytes_.data(),
                                     static_cast<std::uint32_t>(bytes_.size())};
    must("smem_bm_copy_batch", smem_bm_copy_batch(pool_.handle(), &params, type_, 0));
  }
  void bare() override {
    for (std::size_t i = 0; i < bytes_.size(); ++i) std::memcpy(to_[i], from_[i], bytes_[i]);
  }
  void peek(std::size_t at, void* to, std::size_t bytes) override {
    std::memcpy(to, remote_ + at, bytes);
  }
  void poke(std::size_t at, const void* from, std::size_t bytes) override {
    std::memcpy(remote_ + at, from, bytes);
  }

 private:
  Pool& pool_;
  char *const local_, *const remote_;
  std::vector<void*> from_, to_;
  std::vector<std::uint64_t> bytes_;
  smem_bm_copy_type type_ = SMEMB_COPY_H2G;
};

}  // namespace

int copy_big_memory() {
  const example::StoreUrl store("auto");
  return run_pair(
      [&](Talk& talk) {
        Pool pool(store.c_str(), kInitiator);
        talk.tell(kOwner, 'j');  // the store is there
        talk.hear<char>(kInitiator);
        PoolReach reach(pool, map_memory(options.memory, false));
        const bool is_right = measure_copies("bm", reach);
        talk.tell(kOwner, 'e');
        talk.hear<char>(kInitiator);  // the owner has left the store that this process hosts
        return is_right ? 0 : example::kFailed;
      },
      [&](Talk& talk) {
        talk.hear<char>(kOwner);
        {
          Pool pool(store.c_str(), kOwner);
          talk.tell(kInitiator, 'j');
          talk.hear<char>(kOwner);
        }
        talk.tell(kInitiator, 'e');
        return 0;
      });
}

}  // namespace bench
