// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM's calls. None has a time-out: they wait for a process of this host, and one of another
// host may be lost.
#include <shmem.h>
#include <shmemx.h>

#include <cstdint>

#include "silent/silent.h"

namespace {

using silent::Call;
using silent::Ends;
using silent::kSilent;

constexpr int kWords = 4;
constexpr std::size_t kMany = 1 << 18;  // longs: more than a connection holds

thread_local std::string told;

void remember(const char*, int, const char* message) {
  told = message;
}

class OpenShmem final : public silent::Face {
 public:
  void begin() override {
    int provided = 0;
    silent::need(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0, "shmem_init_thread");
    shmemx_set_error_handler(remember);
    words_ = static_cast<long*>(shmem_calloc(kWords, sizeof(long)));
    signal_ = static_cast<std::uint64_t*>(shmem_calloc(1, sizeof(std::uint64_t)));
    touched_ = static_cast<long*>(shmem_calloc(1, sizeof(long)));
    lock_ = static_cast<long*>(shmem_calloc(1, sizeof(long)));
    source_ = static_cast<long*>(shmem_calloc(kMany, sizeof(long)));
    dest_ = static_cast<long*>(shmem_calloc(kMany, sizeof(long)));
    block_ = shmem_malloc(1000);
    mine_.resize(kMany);
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, size, nullptr, 0, &team_);
    shmem_ctx_create(0, &context_);
    shmem_ctx_create(0, &others_);
    if (rank == kSilent) shmem_set_lock(lock_);
  }
  void meet(const std::vector<std::string>&) override {
    for (int pe = 0; pe < size; ++pe) shmem_long_atomic_inc(&words_[kWords - 1], pe);
    shmem_barrier_all();
    words_[kWords - 1] = 0;
    shmem_barrier_all();
  }

  bool touch(int pe) override {
    told.clear();
    shmem_ctx_long_p(others_, touched_, 1, pe);
    shmem_ctx_quiet(others_);
    return shmem_ctx_long_g(others_, touched_, pe) == 1 && told.empty();
  }
  bool pour() override {
    told.clear();
    shmem_long_put(dest_, mine_.data(), kMany, kSilent);
    return told.empty();
  }
  std::string reason() override { return told; }
  int end() override {
    told.clear();
    shmem_finalize();
    return told.empty() ? 0 : 1;
  }

  std::vector<Call> calls() override {
    std::vector<Call> all;
    add_memory(all);
    add_atomics(all);
    add_waits(all);
    add_collectives(all);
    add_sets(all);
    return all;
  }

 private:
  // Calls that return nothing say what failed to the handler.
  template <typename Make>
  static std::function<int()> checked(Make make) {
    return [make] {
      told.clear();
      make();
      return told.empty() ? 0 : 1;
    };
  }
  // One process alone is needed: its memory is at hand, or it is beyond the wire.
  template <typename Make>
  static void one_sided(std::vector<Call>& all, const char* name, Make make) {
    all.push_back({name, Ends::kAtOnce, Ends::kLost, checked(make)});
  }
  template <typename Make, typename Help>
  static void needs_help(std::vector<Call>& all, const char* name, Make make, Help help) {
    all.push_back({name, Ends::kWithPeer, Ends::kLost, checked(make), help});
  }
  template <typename Make>
  static void meeting(std::vector<Call>& all, const char* name, Make make) {
    needs_help(all, name, make, make);
  }

  void add_memory(std::vector<Call>& all) {
    one_sided(all, "p", [this] { shmem_long_p(&dest_[0], 1, kSilent), shmem_quiet(); });
    one_sided(all, "g", [this] { shmem_long_g(&source_[0], kSilent); });
    one_sided(all, "put",
              [this] { shmem_long_put(dest_, mine_.data(), 8, kSilent), shmem_quiet(); });
    one_sided(all, "put-large",
              [this] { shmem_long_put(dest_, mine_.data(), kMany, kSilent), shmem_quiet(); });
    one_sided(all, "get", [this] { shmem_long_get(mine_.data(), source_, 8, kSilent); });
    one_sided(all, "get-large", [this] { shmem_long_get(mine_.data(), source_, kMany, kSilent); });
    one_sided(all, "iput",
              [this] { shmem_long_iput(dest_, mine_.data(), 2, 2, 100, kSilent), shmem_quiet(); });
    one_sided(all, "iget", [this] { shmem_long_iget(mine_.data(), source_, 2, 2, 100, kSilent); });
    one_sided(all, "ibput", [this] {
      shmem_long_ibput(dest_, mine_.data(), 4, 4, 2, 50, kSilent), shmem_quiet();
    });
    one_sided(all, "ibget",
              [this] { shmem_long_ibget(mine_.data(), source_, 4, 4, 2, 50, kSilent); });
    one_sided(all, "put_nbi+quiet",
              [this] { shmem_long_put_nbi(dest_, mine_.data(), 8, kSilent), shmem_quiet(); });
    one_sided(all, "get_nbi+quiet",
              [this] { shmem_long_get_nbi(mine_.data(), source_, 8, kSilent), shmem_quiet(); });
    one_sided(all, "put_nbi-large+quiet",
              [this] { shmem_long_put_nbi(dest_, mine_.data(), kMany, kSilent), shmem_quiet(); });
    one_sided(all, "put_nbi+fence+put+quiet", [this] {
      shmem_long_put_nbi(dest_, mine_.data(), 8, kSilent);
      shmem_fence();
      shmem_long_put(dest_, mine_.data(), 8, kSilent);
      shmem_quiet();
    });
    one_sided(all, "put+pe_quiet", [this] {
      const int pe = kSilent;
      shmem_long_put_nbi(dest_, mine_.data(), 8, kSilent);
      shmem_pe_quiet(&pe, 1);
    });
    one_sided(all, "ctx_put+ctx_quiet", [this] {
      shmem_ctx_long_put(context_, dest_, mine_.data(), 8, kSilent);
      shmem_ctx_quiet(context_);
    });
    one_sided(all, "ctx_put+ctx_destroy", [this] {
      shmem_ctx_long_put(context_, dest_, mine_.data(), 8, kSilent);
      shmem_ctx_destroy(context_);
    });
    one_sided(all, "put_signal", [this] {
      shmem_long_put_signal(dest_, mine_.data(), 8, signal_, 1, SHMEM_SIGNAL_ADD, kSilent);
      shmem_quiet();
    });
    one_sided(all, "put_signal_nbi", [this] {
      shmem_long_put_signal_nbi(dest_, mine_.data(), 8, signal_, 1, SHMEM_SIGNAL_SET, kSilent);
      shmem_quiet();
    });
    one_sided(all, "signal_add", [this] { add_to_signal(); });
  }
  void add_to_signal() {
    shmem_ctx_signal_add(SHMEM_CTX_DEFAULT, signal_, 1, kSilent), shmem_quiet();
  }

  void add_atomics(std::vector<Call>& all) {
    one_sided(all, "atomic_fetch", [this] { shmem_long_atomic_fetch(&words_[0], kSilent); });
    one_sided(all, "atomic_set",
              [this] { shmem_long_atomic_set(&dest_[0], 1, kSilent), shmem_quiet(); });
    one_sided(all, "atomic_add",
              [this] { shmem_long_atomic_add(&dest_[0], 1, kSilent), shmem_quiet(); });
    one_sided(all, "atomic_fetch_add",
              [this] { shmem_long_atomic_fetch_add(&dest_[0], 1, kSilent); });
    one_sided(all, "atomic_fetch_xor", [this] {
      shmem_ulong_atomic_fetch_xor(reinterpret_cast<unsigned long*>(&dest_[0]), 1, kSilent);
    });
    one_sided(all, "atomic_swap", [this] {
      shmem_double_atomic_swap(reinterpret_cast<double*>(&dest_[0]), 1, kSilent);
    });
    one_sided(all, "atomic_compare_swap",
              [this] { shmem_long_atomic_compare_swap(&dest_[0], 0, 1, kSilent); });
    one_sided(all, "atomic_fetch_inc_nbi+quiet", [this] {
      shmem_long_atomic_fetch_inc_nbi(mine_.data(), &dest_[0], kSilent);
      shmem_quiet();
    });
    // The silent process has the lock.
    needs_help(
        all, "set_lock", [this] { shmem_set_lock(lock_); },
        [this] {
          if (rank == kSilent) shmem_clear_lock(lock_);
        });
  }

  void feed() {
    if (rank != kSilent) return;
    for (int i = 0; i < kWords; ++i) shmem_long_p(&words_[i], 1, silent::kCaller);
    shmem_uint64_p(signal_, 1, silent::kCaller);
    shmem_quiet();
  }
  template <typename Make>
  void fed(std::vector<Call>& all, const char* name, Make make) {
    needs_help(all, name, make, [this] { feed(); });
  }
  void add_waits(std::vector<Call>& all) {
    static long ones[kWords] = {1, 1, 1, 1};
    static std::size_t which[kWords];
    fed(all, "wait_until", [this] { shmem_long_wait_until(words_, SHMEM_CMP_EQ, 1); });
    fed(all, "wait_until_all",
        [this] { shmem_long_wait_until_all(words_, kWords, nullptr, SHMEM_CMP_EQ, 1); });
    fed(all, "wait_until_any",
        [this] { shmem_long_wait_until_any(words_, kWords, nullptr, SHMEM_CMP_EQ, 1); });
    fed(all, "wait_until_some",
        [this] { shmem_long_wait_until_some(words_, kWords, which, nullptr, SHMEM_CMP_EQ, 1); });
    fed(all, "wait_until_all_vector",
        [this] { shmem_long_wait_until_all_vector(words_, kWords, nullptr, SHMEM_CMP_EQ, ones); });
    fed(all, "wait_until_any_vector",
        [this] { shmem_long_wait_until_any_vector(words_, kWords, nullptr, SHMEM_CMP_EQ, ones); });
    fed(all, "wait_until_some_vector", [this] {
      shmem_long_wait_until_some_vector(words_, kWords, which, nullptr, SHMEM_CMP_EQ, ones);
    });
    fed(all, "signal_wait_until", [this] { shmem_signal_wait_until(signal_, SHMEM_CMP_EQ, 1); });
  }

  void add_collectives(std::vector<Call>& all) {
    const auto world = SHMEM_TEAM_WORLD;
    meeting(all, "barrier_all", [] { shmem_barrier_all(); });
    meeting(all, "sync_all", [] { shmem_sync_all(); });
    meeting(all, "team_sync", [this] { shmem_team_sync(team_); });
    meeting(all, "broadcast",
            [this, world] { shmem_long_broadcast(world, dest_, source_, 4, kSilent); });
    meeting(all, "broadcast-large",
            [this, world] { shmem_long_broadcast(world, dest_, source_, kMany, kSilent); });
    meeting(all, "collect", [this, world] {
      shmem_long_collect(world, dest_, source_, static_cast<std::size_t>(rank) + 1);
    });
    meeting(all, "fcollect", [this, world] { shmem_long_fcollect(world, dest_, source_, 1000); });
    meeting(all, "alltoall", [this, world] { shmem_long_alltoall(world, dest_, source_, 100); });
    meeting(all, "alltoalls",
            [this, world] { shmem_long_alltoalls(world, dest_, source_, 2, 2, 100); });
    meeting(all, "reduce", [this, world] { shmem_long_sum_reduce(world, dest_, source_, 2); });
    meeting(all, "reduce-large",
            [this, world] { shmem_long_max_reduce(world, dest_, source_, kMany); });
    meeting(all, "inscan", [this, world] { shmem_long_sum_inscan(world, dest_, source_, 2); });
    meeting(all, "exscan", [this, world] { shmem_long_sum_exscan(world, dest_, source_, 2); });
  }

  void add_sets(std::vector<Call>& all) {
    meeting(all, "malloc", [] { shmem_malloc(64); });
    meeting(all, "malloc_with_hints",
            [] { shmem_malloc_with_hints(64, SHMEM_MALLOC_ATOMICS_REMOTE); });
    meeting(all, "calloc", [] { shmem_calloc(8, 8); });
    meeting(all, "align", [] { shmem_align(4096, 64); });
    meeting(all, "realloc", [this] { shmem_realloc(block_, 5000); });
    meeting(all, "free", [this] { shmem_free(block_); });
    meeting(all, "team_split_strided", [this] {
      shmem_team_t fresh;
      shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, size, nullptr, 0, &fresh);
    });
    meeting(all, "team_split_2d", [] {
      shmem_team_t rows;
      shmem_team_t columns;
      shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, nullptr, 0, &rows, nullptr, 0, &columns);
    });
    meeting(all, "team_destroy", [this] { shmem_team_destroy(team_); });
    meeting(all, "finalize", [] { shmem_finalize(); });
    all.back().is_end = true;
  }

  long* words_ = nullptr;
  std::uint64_t* signal_ = nullptr;
  long* touched_ = nullptr;  // another thread's
  long* lock_ = nullptr;
  long* source_ = nullptr;
  long* dest_ = nullptr;
  void* block_ = nullptr;
  std::vector<long> mine_;
  shmem_team_t team_ = SHMEM_TEAM_INVALID;
  shmem_ctx_t context_ = SHMEM_CTX_DEFAULT;
  shmem_ctx_t others_ = SHMEM_CTX_DEFAULT;  // another thread's: a quiet is about a context
};

}  // namespace

int main(int argc, char** argv) {
  OpenShmem face;
  return silent::main_of(face, argc, argv);
}
