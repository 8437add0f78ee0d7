// SPDX-License-Identifier: Apache-2.0
// What kernels on CUDA reach, next to what is bare, in alternating rounds:
//
//   oshrun -n 2 cuda_bench [--short]
//
// Both PEs may share a GPU. Medians of the ratios within each round; a line of a table for each.
#include <cuda_runtime.h>
#include <memspan/kernel.h>
#include <memspan/launch.h>
#include <memspan/memspan.h>
#include <shmem.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cuda/atomic>
#include <string>
#include <vector>

namespace {

namespace k = memspan::kernel;

void require(bool is_ok, const char* what, const char* why) {
  if (is_ok) return;
  std::fprintf(stderr, "cuda_bench: %s: %s\n", what, why);
  shmem_global_exit(1);
}
void require(cudaError_t result, const char* what) {
  require(result == cudaSuccess, what, cudaGetErrorString(result));
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// ---- kernels ----------------------------------------------------------------------------------

MEMSPAN_GLOBAL void put_all(char* to, const char* from, std::size_t bytes, int pe) {
  const std::size_t each = bytes / k::blocks();
  const std::size_t first = each * k::block();
  k::put_nbi<k::Scope::kBlock>(to + first, from + first, each, pe);
  k::sync_block();
  if (k::thread() == 0) k::quiet();
}

// PE 0 begins; a number goes to and fro.
MEMSPAN_GLOBAL void bounce(std::int64_t* data, std::uint64_t* signal, std::uint64_t first,
                           int rounds) {
  const int other = 1 - k::my_pe();
  for (std::uint64_t round = first; round < first + static_cast<std::uint64_t>(rounds); ++round) {
    const auto value = static_cast<std::int64_t>(round);
    if (k::my_pe() == 0) k::put_signal(data, &value, 1, signal, round, k::SignalOp::kSet, other);
    k::signal_wait_until(signal, k::Compare::kEqual, round);
    if (k::my_pe() == 1) k::put_signal(data, &value, 1, signal, round, k::SignalOp::kSet, other);
  }
}

// The same by nothing but a flag.
MEMSPAN_GLOBAL void bounce_bare(std::uint64_t* mine, std::uint64_t* theirs, std::uint64_t first,
                                int rounds, bool begins) {
  using Flag = cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>;
  for (std::uint64_t round = first; round < first + static_cast<std::uint64_t>(rounds); ++round) {
    if (begins) Flag(*theirs).store(round, cuda::memory_order_release);
    while (Flag(*mine).load(cuda::memory_order_acquire) != round) continue;
    if (!begins) Flag(*theirs).store(round, cuda::memory_order_release);
  }
}

struct Product {
  std::size_t rows, inner, columns, tile;  // rows of a tile
  const float* a;
  const float* b;
  float* parts;             // [PE][rows x columns] products that came from there
  float* sum;               // the result
  std::uint64_t* parts_in;  // [tile]
  std::uint64_t* sums_in;
  float* scratch;  // [block][tile x columns]
  MEMSPAN_HOST_DEVICE std::size_t tiles() const { return rows / tile; }
  MEMSPAN_HOST_DEVICE std::size_t tile_elements() const { return tile * columns; }
};

MEMSPAN_DEVICE void multiply(float* c, const Product& what, std::size_t tile) {
  for (std::size_t i = k::thread(); i < what.tile_elements(); i += k::threads()) {
    const float* const row = what.a + (tile * what.tile + i / what.columns) * what.inner;
    float sum = 0;
    for (std::size_t l = 0; l < what.inner; ++l)
      sum += row[l] * what.b[l * what.columns + i % what.columns];
    c[i] = sum;
  }
  k::sync_block();
}

MEMSPAN_DEVICE void add_parts(float* to, const Product& what, std::size_t tile) {
  const auto pes = static_cast<std::size_t>(k::n_pes());
  for (std::size_t i = k::thread(); i < what.tile_elements(); i += k::threads()) {
    float sum = 0;
    for (std::size_t pe = 0; pe < pes; ++pe)
      sum += what.parts[pe * what.rows * what.columns + tile * what.tile_elements() + i];
    to[i] = sum;
  }
  k::sync_block();
}

// Tiles go out as they are ready; PE tile % n sums them and sends the sum to all.
MEMSPAN_GLOBAL void fused(Product what, std::uint64_t round) {
  const auto pes = static_cast<std::size_t>(k::n_pes());
  const auto me = static_cast<std::size_t>(k::my_pe());
  const std::size_t size = what.tile_elements();
  float* const mine = what.scratch + k::block() * size;
  for (std::size_t tile = k::block(); tile < what.tiles(); tile += k::blocks()) {
    multiply(mine, what, tile);
    k::put_signal<k::Scope::kBlock>(what.parts + me * what.rows * what.columns + tile * size, mine,
                                    size, what.parts_in + tile * pes + me, round, k::SignalOp::kSet,
                                    static_cast<int>(tile % pes));
  }
  for (std::size_t tile = k::block(); tile < what.tiles(); tile += k::blocks()) {
    if (tile % pes != me) continue;
    if (k::thread() == 0)
      k::wait_until_all(what.parts_in + tile * pes, pes, nullptr, k::Compare::kEqual, round);
    k::sync_block();
    add_parts(mine, what, tile);
    for (std::size_t pe = 0; pe < pes; ++pe)
      k::put_signal<k::Scope::kBlock>(what.sum + tile * size, mine, size, what.sums_in + tile,
                                      round, k::SignalOp::kSet, static_cast<int>(pe));
  }
  if (k::thread() == 0)
    for (std::size_t tile = k::block(); tile < what.tiles(); tile += k::blocks())
      k::signal_wait_until(what.sums_in + tile, k::Compare::kEqual, round);
}

// The whole product, and then the whole reduction.
MEMSPAN_GLOBAL void product(Product what) {
  const auto me = static_cast<std::size_t>(k::my_pe());
  for (std::size_t tile = k::block(); tile < what.tiles(); tile += k::blocks())
    multiply(what.parts + me * what.rows * what.columns + tile * what.tile_elements(), what, tile);
}
MEMSPAN_GLOBAL void reduction(Product what) {
  const auto pes = static_cast<std::size_t>(k::n_pes());
  const auto me = static_cast<std::size_t>(k::my_pe());
  const std::size_t size = what.tile_elements();
  float* const mine = what.scratch + k::block() * size;
  float* const parts = what.parts + me * what.rows * what.columns;
  for (std::size_t tile = k::block(); tile < what.tiles(); tile += k::blocks())
    k::put<k::Scope::kBlock>(parts + tile * size, parts + tile * size, size,
                             static_cast<int>(tile % pes));
  k::barrier_all();
  for (std::size_t tile = k::block(); tile < what.tiles(); tile += k::blocks()) {
    if (tile % pes != me) continue;
    add_parts(mine, what, tile);
    for (std::size_t pe = 0; pe < pes; ++pe)
      k::put<k::Scope::kBlock>(what.sum + tile * size, mine, size, static_cast<int>(pe));
  }
  k::barrier_all();
}

// ---- measurements -----------------------------------------------------------------------------

struct Sizes {
  int rounds;
  int calls;
  std::size_t rows;
};

class Bench {
 public:
  explicit Bench(const Sizes& sizes) : sizes_(sizes) {
    require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
    require(cudaEventCreate(&begin_), "an event");
    require(cudaEventCreate(&end_), "an event");
  }
  ~Bench() {
    cudaEventDestroy(end_);
    cudaEventDestroy(begin_);
    cudaStreamDestroy(stream_);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  void run() {
    if (shmem_my_pe() == 0)
      std::printf("| CUDA, 2 PEs, %d rounds | result | target | verdict |\n|---|---:|---:|---|\n",
                  sizes_.rounds);
    for (const std::size_t bytes : {std::size_t{256} << 10, std::size_t{4} << 20, kMostBytes})
      measure_put(bytes);
    measure_round_trip();
    measure_product();
  }

 private:
  static constexpr std::size_t kMostBytes = std::size_t{32} << 20;
  static constexpr unsigned kBlocks = 32;
  static constexpr unsigned kThreads = 256;

  // A ratio that is to be at most `target`.
  static void tell(const std::string& name, const std::vector<double>& ratios, double target,
                   double value, const char* unit) {
    if (shmem_my_pe() != 0) return;
    const double ratio = median(ratios);
    std::printf("| %s | %.3g (%.4g %s) | %.3g | %s |\n", name.c_str(), ratio, value, unit, target,
                ratio <= target ? "met" : "missed");
  }

  // Microseconds of what `work` gives to the stream.
  template <typename Work>
  double time(Work work) {
    require(cudaEventRecord(begin_, stream_), "an event");
    work();
    require(cudaEventRecord(end_, stream_), "an event");
    require(cudaStreamSynchronize(stream_), "a kernel");
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, begin_, end_), "a time");
    return static_cast<double>(milliseconds) * 1e3;
  }
  template <typename Kernel, typename... Arguments>
  void launch(unsigned blocks, unsigned threads, Kernel kernel, Arguments... arguments) {
    require(memspan::launch(stream_, {blocks, threads}, kernel, arguments...) == 0, "a launch",
            memspan_last_error());
  }

  // From memory of the device to the other PE's heap, by a kernel and by CUDA's copy between the
  // same two places; a copy within the device is told, too.
  void measure_put(std::size_t bytes) {
    auto* const to = static_cast<char*>(shmem_malloc(bytes));
    char* from = nullptr;
    char* near = nullptr;
    require(cudaMalloc(&from, bytes), "memory");
    require(cudaMalloc(&near, bytes), "memory");
    require(cudaMemset(from, 1, bytes), "memory");
    std::vector<double> ratios;
    std::vector<double> times;
    std::vector<double> within;
    if (shmem_my_pe() == 0) {
      auto* const theirs = static_cast<char*>(shmem_ptr(to, 1));
      for (int i = 0; i <= sizes_.rounds; ++i) {
        const double put = time([&] { launch(kBlocks, kThreads, put_all, to, from, bytes, 1); });
        const double copy = time([&] {
          require(cudaMemcpyAsync(theirs, from, bytes, cudaMemcpyDefault, stream_), "a copy");
        });
        const double inside = time([&] {
          require(cudaMemcpyAsync(near, from, bytes, cudaMemcpyDefault, stream_), "a copy");
        });
        if (i == 0) continue;
        ratios.push_back(put / copy);
        times.push_back(put);
        within.push_back(inside);
      }
      const auto rate = [&](const std::vector<double>& all) {
        return static_cast<double>(bytes) / median(all) / 1e3;
      };
      tell("put of " + std::to_string(bytes >> 10) + " KiB in a kernel / CUDA's copy", ratios, 1.1,
           rate(times), "GB/s");
      std::printf("| the same copy within the device | %.4g GB/s | | |\n", rate(within));
    }
    shmem_barrier_all();
    cudaFree(near);
    cudaFree(from);
    shmem_free(to);
  }

  void measure_round_trip() {
    auto* const data = static_cast<std::int64_t*>(shmem_calloc(16, 8));
    auto* const signal = reinterpret_cast<std::uint64_t*>(data + 8);
    auto* const theirs = static_cast<std::uint64_t*>(shmem_ptr(signal, 1 - shmem_my_pe()));
    std::vector<double> ratios;
    std::vector<double> times;
    std::uint64_t next = 1;
    const int calls = sizes_.calls;
    for (int i = 0; i < sizes_.rounds; ++i) {
      shmem_barrier_all();
      const double ours = time([&] { launch(1, 1, bounce, data, signal, next, calls); });
      next += static_cast<std::uint64_t>(calls);
      shmem_barrier_all();
      const double bare =
          time([&] { launch(1, 1, bounce_bare, signal, theirs, next, calls, shmem_my_pe() == 0); });
      next += static_cast<std::uint64_t>(calls);
      ratios.push_back(ours / bare);
      times.push_back(ours / calls);
    }
    tell("put with signal and wait, to and fro / a flag", ratios, 1.25, median(times), "us");
    shmem_barrier_all();
    shmem_free(data);
  }

  void measure_product() {
    Product what{sizes_.rows, 256,     256,     8,       nullptr, nullptr,
                 nullptr,     nullptr, nullptr, nullptr, nullptr};
    const auto pes = static_cast<std::size_t>(shmem_n_pes());
    const std::size_t all = what.rows * what.columns;
    float* memory = nullptr;
    const std::size_t local =
        what.rows * what.inner + what.inner * what.columns + kBlocks * what.tile_elements();
    require(cudaMalloc(&memory, local * sizeof(float)), "memory");
    require(cudaMemset(memory, 0, local * sizeof(float)), "memory");
    what.a = memory;
    what.b = memory + what.rows * what.inner;
    what.scratch = memory + what.rows * what.inner + what.inner * what.columns;
    what.parts = static_cast<float*>(shmem_malloc(pes * all * sizeof(float)));
    what.sum = static_cast<float*>(shmem_malloc(all * sizeof(float)));
    what.parts_in = static_cast<std::uint64_t*>(shmem_calloc(pes * what.tiles(), 8));
    what.sums_in = static_cast<std::uint64_t*>(shmem_calloc(what.tiles(), 8));
    std::vector<double> ratios;
    std::vector<double> times;
    for (int i = 1; i <= sizes_.rounds; ++i) {
      shmem_barrier_all();
      const double together =
          time([&] { launch(kBlocks, kThreads, fused, what, static_cast<std::uint64_t>(i)); });
      shmem_barrier_all();
      const double apart = time([&] {
        launch(kBlocks, kThreads, product, what);
        launch(kBlocks, kThreads, reduction, what);
      });
      ratios.push_back(together / apart);
      times.push_back(together);
    }
    tell("product and all-reduce fused / one after the other", ratios, 1.0, median(times), "us");
    shmem_barrier_all();
    shmem_free(what.sums_in);
    shmem_free(what.parts_in);
    shmem_free(what.sum);
    shmem_free(what.parts);
    cudaFree(memory);
  }

  const Sizes sizes_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  const bool is_short = argc > 1 && std::string(argv[1]) == "--short";
  shmem_init();
  require(shmem_n_pes() == 2, "PEs", "there must be 2");
  Bench(is_short ? Sizes{1, 20, 64} : Sizes{11, 1000, 4096}).run();
  shmem_finalize();
  return 0;
}
