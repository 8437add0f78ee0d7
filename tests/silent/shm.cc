// SPDX-License-Identifier: Apache-2.0
// Spaces. Their meetings need every rank.
#include <memspan/memspan.h>
#include <smem/host/smem_shm.h>

#include <cstdlib>

#include "silent/silent.h"

namespace {

using silent::Ends;
using silent::need;

constexpr std::uint64_t kGiven = std::uint64_t{4} << 20;

class Spaces final : public silent::Face {
 public:
  void begin() override {
    smem_shm_config_t config;
    smem_shm_config_init(&config);
    config.startConfigStoreServer = false;
    config.shmInitTimeout = silent::start_limit();
    config.shmCreateTimeout = config.controlOperationTimeout = silent::kTimeout;
    const auto members = static_cast<std::uint32_t>(size);
    need_ok(smem_shm_init(std::getenv("SILENT_STORE"), members, static_cast<std::uint32_t>(rank), 0,
                          &config));
  }
  // The creation has a short limit, and so it waits for the others' start here.
  void meet(const std::vector<std::string>&) override {
    space_ = fresh_space(1);
    need(space_ != nullptr, smem_get_last_err_msg);
    need_ok(smem_shm_control_barrier(space_));
  }
  bool touch(int peer) override {
    std::uint32_t ways = 0;
    return smem_shm_topology_can_reach(space_, static_cast<std::uint32_t>(peer), &ways) == SMEM_OK;
  }
  bool pour() override { return false; }
  std::string reason() override { return memspan_last_error(); }
  int end() override {
    smem_shm_destroy(space_, 0);
    smem_shm_uninit(0);
    return 0;
  }

  std::vector<silent::Call> calls() override {
    std::vector<silent::Call> all;
    const auto meeting = [&](const char* name, std::function<int()> make) {
      all.push_back({name, Ends::kInTime, Ends::kInTime, std::move(make)});
    };
    const auto own = [&](const char* name, std::function<int()> make) {
      all.push_back({name, Ends::kAtOnce, Ends::kAtOnce, std::move(make)});
    };
    meeting("smem_shm_control_barrier", [this] { return smem_shm_control_barrier(space_); });
    meeting("smem_shm_control_allgather", [this] {
      return smem_shm_control_allgather(space_, bytes_, 8, bytes_ + 8,
                                        8 * static_cast<std::uint32_t>(size));
    });
    for (silent::Call& call : all) call.help = [make = call.make] { make(); };
    // Of the caller and the silent one.
    meeting("smem_shm_subgroup_barrier",
            [this] { return smem_shm_subgroup_barrier(space_, "two", 2, 0); });
    meeting("smem_shm_subgroup_allgather", [this] {
      return smem_shm_subgroup_allgather(space_, "two", 2, 0, bytes_, 8, bytes_ + 8, 16);
    });
    meeting("smem_shm_create", [this] { return fresh_space(2) == nullptr ? 1 : 0; });
    own("smem_shm_atomic_alloc_value", [this] {
      std::uint32_t value = 0;
      return smem_shm_atomic_alloc_value(space_, 8, &value);
    });
    own("smem_shm_topology_can_reach", [this] { return touch(silent::kSilent) ? 0 : 1; });
    own("smem_shm_destroy", [this] { return smem_shm_destroy(space_, 0); });
    all.back().is_end = true;
    own("smem_shm_uninit", [] { return smem_shm_uninit(0), 0; });
    all.back().is_end = true;
    return all;
  }

 private:
  static void need_ok(int code) { need(code == SMEM_OK, smem_get_last_err_msg); }
  smem_shm_t fresh_space(std::uint32_t id) const {
    void* gva = nullptr;
    return smem_shm_create(id, static_cast<std::uint32_t>(size), static_cast<std::uint32_t>(rank),
                           kGiven, SMEMS_DATA_OP_MTE, 0, &gva);
  }

  smem_shm_t space_ = nullptr;
  char bytes_[128] = {};
};

}  // namespace

int main(int argc, char** argv) {
  Spaces face;
  return silent::main_of(face, argc, argv);
}
