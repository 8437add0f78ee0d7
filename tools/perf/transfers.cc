// SPDX-License-Identifier: Apache-2.0
// Transfers between PE 0's memory and what the last PE registered (smem_trans_*).
#include <fmt/format.h>
#include <shmem.h>
#include <smem/host/smem_trans.h>

#include <memory>

#include "perf/meter.h"
#include "perf/store.h"

namespace memspan::perf {
namespace {

std::string name_of(int rank) {
  return fmt::format("127.0.0.1:{}", 20000 + rank);  // only a name
}

// Owns this process's endpoint and what it registered. All PEs make and destroy it together.
class Endpoint : NotCopyable {
 public:
  static Result<std::unique_ptr<Endpoint>> make(Meter& meter, std::size_t bytes) {
    MEMSPAN_TRY_ASSIGN(const std::string store, meeting_store(meter), "transfers");
    smem_trans_config_t config;
    smem_trans_config_init(&config);
    config.role = SMEM_TRANS_BOTH;
    if (const int code = smem_trans_init(&config); code != SMEM_OK)
      return smem_failure("smem_trans_init", code);
    std::unique_ptr<Endpoint> made(new Endpoint(bytes));
    made->handle_ = smem_trans_create(store.c_str(), name_of(meter.rank()).c_str(), &config);
    if (made->handle_ == nullptr)
      return smem_failure("smem_trans_create", smem_get_last_err_code());
    if (const int code =
            smem_trans_register_mem(made->handle_, made->memory_.data(), made->memory_.size(), 0);
        code != SMEM_OK)
      return smem_failure("smem_trans_register_mem", code);
    shmem_barrier_all();
    return made;
  }
  ~Endpoint() {
    const auto destroy = [this] {
      if (handle_ != nullptr) smem_trans_destroy(handle_, 0);
    };
    leave_together(destroy, [] { smem_trans_uninit(0); });
  }

  smem_trans_t handle() const { return handle_; }
  std::byte* memory() { return memory_.data(); }

 private:
  explicit Endpoint(std::size_t bytes) : memory_(bytes, std::byte{1}) {}
  std::vector<std::byte> memory_;
  smem_trans_t handle_ = nullptr;
};

// One transfer, or a batch of pieces one behind the other.
class Moves {
 public:
  Moves(smem_trans_t handle, std::string peer, std::byte* here, std::byte* there, std::size_t bytes,
        std::size_t pieces)
      : handle_(handle), peer_(std::move(peer)), sizes_(pieces, bytes) {
    for (std::size_t i = 0; i < pieces; ++i) {
      here_.push_back(here + i * bytes);
      there_.push_back(there + i * bytes);
    }
  }
  int move(std::string_view name) {
    const auto count = static_cast<uint32_t>(sizes_.size());
    if (name == "trans-write")
      return smem_trans_write(handle_, here_[0], peer_.c_str(), there_[0], sizes_[0]);
    if (name == "trans-read")
      return smem_trans_read(handle_, here_[0], peer_.c_str(), there_[0], sizes_[0]);
    if (name == "trans-batch-write")
      return smem_trans_batch_write(handle_, const_cast<const void**>(here_.data()), peer_.c_str(),
                                    there_.data(), sizes_.data(), count);
    return smem_trans_batch_read(handle_, here_.data(), peer_.c_str(),
                                 const_cast<const void**>(there_.data()), sizes_.data(), count);
  }

 private:
  const smem_trans_t handle_;
  const std::string peer_;
  std::vector<void*> here_;
  std::vector<void*> there_;
  std::vector<std::size_t> sizes_;
};

// The address of PE `rank`'s memory in its process.
Result<std::byte*> address_at(Meter& meter, std::byte* own, int rank) {
  MEMSPAN_TRY_ASSIGN(std::byte* const memory, meter.symmetric(sizeof(uint64_t)), "transfers");
  auto* const word = reinterpret_cast<uint64_t*>(memory);
  *word = reinterpret_cast<uint64_t>(own);
  shmem_barrier_all();
  return reinterpret_cast<std::byte*>(shmem_uint64_g(word, rank));
}

}  // namespace

Status run_transfer(Meter& meter, const Test& test) {
  const bool is_batch = test.name.find("batch") != std::string_view::npos;
  const std::size_t pieces = is_batch ? meter.plan().batch : 1;
  const std::size_t most = meter.plan().sizes.back() * pieces;
  MEMSPAN_TRY_ASSIGN(const std::unique_ptr<Endpoint> endpoint, Endpoint::make(meter, most),
                     test.name);
  MEMSPAN_TRY_ASSIGN(std::byte* const there, address_at(meter, endpoint->memory(), meter.far()),
                     test.name);
  int code = SMEM_OK;
  for (const std::size_t bytes : meter.plan().sizes) {
    Moves moves(endpoint->handle(), name_of(meter.far()), endpoint->memory(), there, bytes, pieces);
    meter.measure(test, bytes, Actors::kFirst, pieces, [&](std::size_t count) {
      for (std::size_t i = 0; i < count; ++i)
        if (const int result = moves.move(test.name); result != SMEM_OK) code = result;
    });
  }
  return code == SMEM_OK ? Status::ok() : smem_failure(test.name, code);
}

}  // namespace memspan::perf
