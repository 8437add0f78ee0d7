// SPDX-License-Identifier: Apache-2.0
// CANN SHMEM. What returns no code ends the process if it fails.
#include <aclshmem.h>
#include <memspan/memspan.h>
#include <memspan/stream.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "silent/silent.h"

namespace {

using silent::Ends;
using silent::kCaller;
using silent::kSilent;
using silent::need;

constexpr std::size_t kMany = 1 << 19;  // of 4 bytes
constexpr int kWords = 4;

class Cann final : public silent::Face {
 public:
  void begin() override {
    aclshmemx_init_attr_t attributes;
    attributes.my_pe = rank;
    attributes.n_pes = size;
    attributes.local_mem_size = 64 << 20;
    std::strncpy(attributes.ip_port, std::getenv("SILENT_STORE"), sizeof attributes.ip_port - 1);
    attributes.option_attr.shm_init_timeout = attributes.option_attr.shm_create_timeout =
        silent::start_limit();
    attributes.option_attr.control_operation_timeout = silent::kTimeout;
    need(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_DEFAULT, &attributes) == 0, memspan_last_error);
  }
  // The allocations have a short limit, and so they wait for the others' start here.
  void meet(const std::vector<std::string>&) override {
    words_ = static_cast<std::int32_t*>(aclshmem_calloc(kWords, sizeof *words_));
    touched_ = static_cast<std::int32_t*>(aclshmem_calloc(1, sizeof *touched_));
    there_ = static_cast<std::int32_t*>(aclshmem_calloc(kMany, sizeof *there_));
    block_ = aclshmem_malloc(1000);
    need(words_ != nullptr && touched_ != nullptr && there_ != nullptr && block_ != nullptr,
         memspan_last_error);
    need(aclshmem_team_split_strided(ACLSHMEM_TEAM_WORLD, 0, 1, size, &team_) == 0,
         memspan_last_error);
    for (int pe = 0; pe < size; ++pe) aclshmem_int32_p(touched_, 1, pe);
    aclshmem_barrier_all();
  }
  bool touch(int pe) override { return aclshmem_int32_g(touched_, pe) == 1; }
  bool pour() override {
    aclshmem_int32_put(there_, own_.data(), kMany, kSilent);
    return true;
  }
  std::string reason() override { return memspan_last_error(); }
  int end() override { return aclshmem_finalize(); }

  std::vector<silent::Call> calls() override {
    std::vector<silent::Call> all;
    add_memory(all);
    add_on_stream(all);
    add_waits(all);
    add_collectives(all);
    return all;
  }

 private:
  template <typename Make>
  static void add(std::vector<silent::Call>& all, const char* name, Ends near, Ends far,
                  Make make) {
    all.push_back({name, near, far, [make] {
                     make();
                     return memspan_last_error()[0] == '\0' ? 0 : 1;
                   }});
  }

  void add_memory(std::vector<silent::Call>& all) {
    const auto one_sided = [&](const char* name, auto make) {
      add(all, name, Ends::kAtOnce, Ends::kLost, make);
    };
    one_sided("p+quiet", [this] { aclshmem_int32_p(there_, 1, kSilent), quiet(); });
    one_sided("g", [this] { aclshmem_int32_g(there_, kSilent); });
    one_sided("put", [this] { aclshmem_int32_put(there_, own_.data(), 8, kSilent), quiet(); });
    one_sided("put-large",
              [this] { aclshmem_int32_put(there_, own_.data(), kMany, kSilent), quiet(); });
    one_sided("get", [this] { aclshmem_int32_get(own_.data(), there_, 8, kSilent); });
    one_sided("get-large", [this] { aclshmem_int32_get(own_.data(), there_, kMany, kSilent); });
    one_sided("putmem_nbi",
              [this] { aclshmem_putmem_nbi(there_, own_.data(), 64, kSilent), quiet(); });
    one_sided("getmem_nbi",
              [this] { aclshmem_getmem_nbi(own_.data(), there_, 64, kSilent), quiet(); });
    one_sided("iput",
              [this] { aclshmem_int32_iput(there_, own_.data(), 2, 2, 100, kSilent), quiet(); });
    one_sided("iget", [this] { aclshmem_int32_iget(own_.data(), there_, 2, 2, 100, kSilent); });
    one_sided("put_signal", [this] {
      aclshmem_int32_put_signal(there_, own_.data(), 8, reinterpret_cast<std::uint8_t*>(words_), 1,
                                ACLSHMEM_SIGNAL_SET, kSilent);
      quiet();
    });
  }
  static void synchronize() { memspan_stream_synchronize(memspan_stream_default(), UINT32_MAX); }
  static void quiet() {
    aclshmemx_quiet_on_stream(nullptr);
    synchronize();
  }

  void add_on_stream(std::vector<silent::Call>& all) {
    const auto one_sided = [&](const char* name, auto make) {
      add(all, name, Ends::kAtOnce, Ends::kLost, [make] { make(), quiet(); });
    };
    one_sided("putmem_on_stream+quiet_on_stream+synchronize",
              [this] { aclshmemx_putmem_on_stream(there_, own_.data(), 64, kSilent, nullptr); });
    one_sided("getmem_on_stream+quiet_on_stream+synchronize",
              [this] { aclshmemx_getmem_on_stream(own_.data(), there_, 64, kSilent, nullptr); });
    one_sided("signal_op_on_stream+quiet_on_stream+synchronize", [this] {
      aclshmemx_signal_op_on_stream(words_, 1, ACLSHMEM_SIGNAL_SET, kSilent, nullptr);
    });
  }

  void add_waits(std::vector<silent::Call>& all) {
    static std::int32_t ones[kWords] = {1, 1, 1, 1};
    const auto fed = [&](const char* name, auto make) {
      add(all, name, Ends::kInTime, Ends::kInTime, make);
      all.back().help = [this] {
        if (rank != kSilent) return;
        for (int i = 0; i < kWords; ++i) aclshmem_int32_p(&words_[i], 1, kCaller);
      };
    };
    fed("wait", [this] { aclshmem_int32_wait(words_, 0); });
    fed("wait_until", [this] { aclshmem_int32_wait_until(words_, ACLSHMEM_CMP_EQ, 1); });
    fed("wait_until_all",
        [this] { aclshmem_int32_wait_until_all(words_, kWords, nullptr, ACLSHMEM_CMP_EQ, 1); });
    fed("wait_until_any", [this] {
      std::size_t first = 0;
      aclshmem_int32_wait_until_any(words_, kWords, nullptr, ACLSHMEM_CMP_EQ, 1, &first);
    });
    fed("wait_until_all_vector", [this] {
      aclshmem_int32_wait_until_all_vector(words_, kWords, nullptr, ACLSHMEM_CMP_EQ, ones);
    });
    fed("signal_wait_until", [this] { aclshmem_signal_wait_until(words_, ACLSHMEM_CMP_EQ, 1); });
    fed("signal_wait_until_on_stream+synchronize", [this] {
      aclshmemx_signal_wait_until_on_stream(words_, ACLSHMEM_CMP_EQ, 1, nullptr);
      synchronize();
    });
  }

  void add_collectives(std::vector<silent::Call>& all) {
    const auto meeting = [&](const char* name, auto make) {
      add(all, name, Ends::kInTime, Ends::kInTime, make);
      all.back().help = make;
    };
    meeting("barrier_all", [] { aclshmem_barrier_all(); });
    meeting("barrier", [this] { aclshmem_barrier(team_); });
    meeting("sync_all", [] { aclshmem_sync_all(); });
    meeting("sync", [this] { aclshmem_sync(team_); });
    meeting("malloc", [] { aclshmem_malloc(100); });
    meeting("calloc", [] { aclshmem_calloc(10, 10); });
    meeting("align", [] { aclshmem_align(4096, 100); });
    meeting("free", [this] { aclshmem_free(block_); });
    meeting("barrier_all_on_stream+synchronize",
            [] { aclshmemx_barrier_all_on_stream(nullptr), synchronize(); });
    meeting("barrier_on_stream+synchronize",
            [this] { aclshmemx_barrier_on_stream(team_, nullptr), synchronize(); });
    meeting("finalize", [] { aclshmem_finalize(); });
    all.back().is_end = true;
    add(all, "team_split_strided", Ends::kAtOnce, Ends::kAtOnce, [this] {
      aclshmem_team_t fresh = 0;
      aclshmem_team_split_strided(ACLSHMEM_TEAM_WORLD, 0, 1, size, &fresh);
    });
  }

  std::int32_t* words_ = nullptr;
  std::int32_t* touched_ = nullptr;
  std::int32_t* there_ = nullptr;
  void* block_ = nullptr;
  aclshmem_team_t team_ = 0;
  std::vector<std::int32_t> own_ = std::vector<std::int32_t>(kMany);
};

}  // namespace

int main(int argc, char** argv) {
  Cann face;
  return silent::main_of(face, argc, argv);
}
