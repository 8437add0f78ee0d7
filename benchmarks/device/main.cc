// SPDX-License-Identifier: Apache-2.0
// What kernels and streams of the host device cost, next to what is bare, in alternating rounds:
//
//   oshrun -n 2 kernels_bench [--short]
//
// Medians over the rounds, and of the ratios within each round.
#include <aclshmem.h>
#include <memspan/kernel.h>
#include <memspan/launch.h>
#include <shmem.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

namespace k = memspan::kernel;

double now_us() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void require(bool is_ok, const char* what) {
  if (is_ok) return;
  std::fprintf(stderr, "kernels_bench: %s\n", what);
  std::exit(1);
}

struct Sizes {
  int rounds;
  int calls;
  std::size_t large;
};

class Bench {
 public:
  explicit Bench(const Sizes& sizes)
      : sizes_(sizes),
        symmetric_(static_cast<char*>(shmem_malloc(sizes.large))),
        source_(sizes.large, 1) {
    require(symmetric_ != nullptr, "no symmetric memory");
    require(memspan_stream_create(&stream_) == 0, "no stream");
    std::memset(symmetric_, 0, sizes.large);
  }
  ~Bench() {
    memspan_stream_destroy(stream_);
    shmem_free(symmetric_);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  void run() {
    for (int round = 0; round < sizes_.rounds; ++round) {
      alone([this] {
        launches_.push_back(time_launches(1));
        wide_launches_.push_back(time_launches(4));
        hand_offs_.push_back(time_hand_offs());
        small_.push_back(time_small_puts());
        std::vector<double> puts;
        std::vector<double> copies;
        for (int i = 0; i < 6; ++i) {
          copies.push_back(time_copy());
          puts.push_back(time_large_put());
        }
        large_.push_back(median(puts) / median(copies));
        const double call = time_host_puts();
        kernel_puts_.push_back(time_kernel_puts());
        ratios_.push_back(kernel_puts_.back() / call);
      });
      barriers_.push_back(time_barriers());
    }
    if (shmem_my_pe() != 0) return;
    std::printf("| %d rounds, 2 PEs | median | target |\n|---|---:|---|\n", sizes_.rounds);
    row("launch + synchronize, 1 block, us", launches_, "5");
    row("launch + synchronize, 4 blocks, us", wide_launches_, "");
    row("launch until the kernel runs, nobody waiting for the stream, us", hand_offs_, "reported");
    row("put of 8 bytes on a stream + synchronize, us", small_, "3");
    row("put of 64 MiB on a stream / memcpy", large_, "1.0");
    row("barrier of all PEs in a kernel of 4 blocks, us", barriers_, "20");
    row("put of 8 bytes in a kernel, ns", kernel_puts_, "");
    row("the same / the host call", ratios_, "1.2");
  }

 private:
  static void row(const char* name, const std::vector<double>& values, const char* target) {
    std::printf("| %s | %.3g | %s |\n", name, median(values), target);
  }
  // The other PE sleeps in a barrier's wait meanwhile.
  template <typename Work>
  static void alone(Work work) {
    if (shmem_my_pe() == 0) work();
    shmem_barrier_all();
  }
  void finish() { require(memspan_stream_synchronize(stream_, UINT32_MAX) == 0, "synchronize"); }
  template <typename Call>
  double time_each(Call call) {
    std::vector<double> times;
    for (int i = 0; i < sizes_.calls; ++i) {
      const double start = now_us();
      call();
      times.push_back(now_us() - start);
    }
    return median(times);
  }

  double time_launches(unsigned blocks) {
    return time_each([&] {
      require(memspan::launch(stream_, blocks, [] {}) == 0, "launch");
      finish();
    });
  }
  double time_hand_offs() {
    std::atomic<int> has_run{0};
    const double each = time_each([&] {
      has_run.store(0);
      require(memspan::launch(stream_, 1, [&has_run] { has_run.store(1); }) == 0, "launch");
      while (has_run.load(std::memory_order_acquire) == 0) continue;
    });
    finish();
    return each;
  }
  double time_small_puts() {
    return time_each([&] {
      aclshmemx_putmem_on_stream(symmetric_, source_.data(), 8, 1, stream_);
      finish();
    });
  }
  double time_large_put() {
    const double start = now_us();
    aclshmemx_putmem_on_stream(symmetric_, source_.data(), sizes_.large, 1, stream_);
    finish();
    return now_us() - start;
  }
  double time_copy() {
    void* const to = shmem_ptr(symmetric_, 1);
    require(to != nullptr, "PE 1 is on another host");
    const double start = now_us();
    std::memcpy(to, source_.data(), sizes_.large);
    return now_us() - start;
  }
  double time_host_puts() {
    auto* const word = reinterpret_cast<std::int64_t*>(symmetric_);
    const int calls = 1000 * sizes_.calls;
    const double start = now_us();
    for (int i = 0; i < calls; ++i) aclshmem_int64_p(word, i, 1);
    return (now_us() - start) * 1e3 / calls;
  }
  double time_kernel_puts() {
    auto* const word = reinterpret_cast<std::int64_t*>(symmetric_);
    const int calls = 1000 * sizes_.calls;
    double each = 0;
    memspan::launch(stream_, 1, [=, &each] {
      const double start = now_us();
      for (int i = 0; i < calls; ++i) k::p(word, i, 1);
      each = (now_us() - start) * 1e3 / calls;
    });
    finish();
    return each;
  }
  double time_barriers() {
    double each = 0;
    const int calls = sizes_.calls;
    memspan::launch(stream_, 4, [calls, &each] {
      k::barrier_all();
      const double start = now_us();
      for (int i = 0; i < calls; ++i) k::barrier_all();
      if (k::block() == 0) each = (now_us() - start) / calls;
    });
    finish();
    return each;
  }

  const Sizes sizes_;
  memspan_stream_t stream_ = nullptr;
  char* const symmetric_;
  std::vector<char> source_;
  std::vector<double> launches_, wide_launches_, hand_offs_, small_, large_, barriers_,
      kernel_puts_, ratios_;
};

}  // namespace

int main(int argc, char** argv) {
  const bool is_short = argc > 1 && std::string(argv[1]) == "--short";
  shmem_init();
  require(shmem_n_pes() == 2, "needs 2 PEs");
  Bench(is_short ? Sizes{1, 20, 1 << 20} : Sizes{7, 1000, 64 << 20}).run();
  shmem_finalize();
  return 0;
}
