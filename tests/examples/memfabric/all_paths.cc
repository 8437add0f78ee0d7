// SPDX-License-Identifier: Apache-2.0
// Every way that a pool of Big Memory can copy, by a walk that takes each once: six places (local
// host and device memory, the own part of both spaces, other ranks' parts of both) and from each to
// each other one step. The bytes are carried along; before a step its destination is spoiled, so
// that what arrives came by that step. All ranks walk at once, each with its own bytes. The two
// remote places belong to two ranks where there are three: then the initiator owns neither end of a
// step between them. With MEMSPAN_DEVICE=cuda device memory is a GPU's, also the local one, which
// the program allocates then.
#include <smem/host/smem_bm.h>

#include <array>
#include <memory>

#include "example.h"
#include "support/free_url.h"
#include "support/processes.h"

#define CHECK(what) expect(what, #what)
using namespace example;
#include "support/cuda_driver/gpu.h"

namespace {

enum Place { kLH, kLD, kGH, kGD, kRemoteGH, kRemoteGD, kPlaces };
constexpr const char* kNames[] = {"LH", "LD", "GH", "GD", "remote GH", "remote GD"};
constexpr std::size_t kSizes[] = {1, 4095, (1 << 20) + 3};
constexpr std::size_t kMost = 2 << 20;  // of one rank's bytes at one place
constexpr std::size_t kShift = 61;      // they begin at no even address

bool is_local(Place place) {
  return place <= kLD;
}
bool is_host(Place place) {
  return place == kLH || place == kGH || place == kRemoteGH;
}

// Hierholzer: a closed walk over all ordered pairs of places, from LH to LH.
std::vector<Place> walk() {
  std::array<int, kPlaces> next_way = {};
  std::vector<Place> stack = {kLH}, found;
  while (!stack.empty()) {
    const Place at = stack.back();
    if (next_way[at] == at) ++next_way[at];
    if (next_way[at] < kPlaces) {
      stack.push_back(static_cast<Place>(next_way[at]++));
      continue;
    }
    found.push_back(at);
    stack.pop_back();
  }
  return {found.rbegin(), found.rend()};
}

// The names under which a step may be asked for.
std::vector<smem_bm_copy_type> types_of(Place from, Place to) {
  std::vector<smem_bm_copy_type> types = {SMEMB_COPY_AUTO};
  if (!is_local(from) && !is_local(to)) types.push_back(SMEMB_COPY_G2G);
  if (is_local(from)) {
    types.push_back(from == kLH ? SMEMB_COPY_H2G : SMEMB_COPY_L2G);
    if (is_host(to)) types.push_back(from == kLH ? SMEMB_COPY_H2GH : SMEMB_COPY_L2GH);
  }
  if (is_local(to)) {
    types.push_back(to == kLH ? SMEMB_COPY_G2H : SMEMB_COPY_G2L);
    if (is_host(from)) types.push_back(to == kLH ? SMEMB_COPY_GH2H : SMEMB_COPY_GH2L);
  }
  return types;
}

enum class How { kOne, kOneLater, kBatch, kBatchLater };
constexpr How kHows[] = {How::kOne, How::kOneLater, How::kBatch, How::kBatchLater};

class Walker {
 public:
  Walker(smem_bm_t pool, std::uint32_t ranks, std::uint32_t rank, bool has_gpu)
      : pool_(pool), rank_(rank), has_gpu_(has_gpu) {
    const std::uint32_t next = (rank + 1) % ranks, far = ranks > 2 ? (rank + 2) % ranks : next;
    for (auto& buffer : buffers_) buffer.resize(kMost + kShift);
    bytes_[kLH] = buffers_[0].data();
    bytes_[kLD] = has_gpu_ ? gpu_alloc(kMost + kShift) : buffers_[1].data();
    bytes_[kGH] = part(SMEM_MEM_TYPE_HOST, rank);
    bytes_[kGD] = part(SMEM_MEM_TYPE_DEVICE, rank);
    bytes_[kRemoteGH] = part(SMEM_MEM_TYPE_HOST, next);
    bytes_[kRemoteGD] = part(SMEM_MEM_TYPE_DEVICE, far);
    for (char*& bytes : bytes_) bytes += kShift;
  }

  // Once around, with the variant-th type of each step.
  void go(std::size_t size, How how, std::size_t variant) {
    const std::uint64_t seed = std::uint64_t{rank_} * 1000 + size + variant;
    spread(kLH, size, seed);
    const std::vector<Place> places = walk();
    for (std::size_t i = 0; i + 1 < places.size(); ++i) {
      const Place from = places[i], to = places[i + 1];
      step(from, to, size, how, variant);
      ++steps_;
      if (!is_local(to)) continue;
      const std::vector<char> there = look(to, size);
      expect(wrong_bytes(there.data(), size, seed) == 0,
             "rank " + std::to_string(rank_) + ", " + std::to_string(size) + " bytes, step " +
                 std::to_string(i) + " from " + kNames[from] + " to " + kNames[to]);
    }
  }
  std::size_t steps() const { return steps_; }

 private:
  // Between local places.
  void move_here(void* to, const void* from, std::size_t size) const {
    if (has_gpu_)
      expect(gpu_copies(to, from, size), "a copy of the program's own by the GPU");
    else
      std::memcpy(to, from, size);
  }
  void spread(Place place, std::size_t size, std::uint64_t seed) {
    std::vector<char> bytes(size);
    fill(bytes.data(), size, seed);
    move_here(bytes_[place], bytes.data(), size);
  }
  std::vector<char> look(Place place, std::size_t size) const {
    std::vector<char> bytes(size);
    move_here(bytes.data(), bytes_[place], size);
    return bytes;
  }
  char* part(smem_bm_mem_type space, std::uint32_t of) {
    auto* const base = static_cast<char*>(
        must("smem_bm_ptr_by_mem_type",
             smem_bm_ptr_by_mem_type(pool_, space, static_cast<std::uint16_t>(of))));
    return base + rank_ * kMost;
  }

  void copy(const void* from, void* to, std::size_t size, smem_bm_copy_type type, uint32_t flags) {
    smem_copy_params params = {from, to, size};
    must("smem_bm_copy", smem_bm_copy(pool_, &params, type, flags));
  }

  // Pieces of 1, 2, 4, ... bytes and the rest, the last first.
  void copy_batch(char* from, char* to, std::size_t size, smem_bm_copy_type type, uint32_t flags) {
    std::vector<void*> sources, destinations;
    std::vector<std::uint64_t> sizes;
    std::size_t end = size;
    for (std::size_t piece = 1; end > 0; piece *= 2) {
      piece = std::min(piece, end);
      end -= piece;
      sources.push_back(from + end);
      destinations.push_back(to + end);
      sizes.push_back(piece);
    }
    smem_batch_copy_params params = {sources.data(), destinations.data(), sizes.data(),
                                     static_cast<std::uint32_t>(sizes.size())};
    must("smem_bm_copy_batch", smem_bm_copy_batch(pool_, &params, type, flags));
  }

  void step(Place from, Place to, std::size_t size, How how, std::size_t variant) {
    if (is_local(to)) {
      spread(to, size, ~std::uint64_t{0});
    } else {
      const std::vector<char> spoiled(size, 0x5a);
      copy(spoiled.data(), bytes_[to], size, SMEMB_COPY_H2G, 0);
    }
    if (is_local(from) && is_local(to)) {  // no business of the pool's
      move_here(bytes_[to], bytes_[from], size);
      return;
    }
    const std::vector<smem_bm_copy_type> types = types_of(from, to);
    const smem_bm_copy_type type = types[variant % types.size()];
    const bool is_later = how == How::kOneLater || how == How::kBatchLater;
    const uint32_t flags = is_later ? ASYNC_COPY_FLAG : 0;
    if (how == How::kOne || how == How::kOneLater)
      copy(bytes_[from], bytes_[to], size, type, flags);
    else
      copy_batch(bytes_[from], bytes_[to], size, type, flags);
    if (is_later) must("smem_bm_wait", smem_bm_wait(pool_));
  }

  smem_bm_t const pool_;
  const std::uint32_t rank_;
  const bool has_gpu_;
  std::vector<char> buffers_[2];
  std::array<char*, kPlaces> bytes_ = {};
  std::size_t steps_ = 0;
};

int run_rank(const char* store, std::uint32_t ranks, std::uint32_t rank) {
  const char* const device = std::getenv("MEMSPAN_DEVICE");
  const bool has_gpu = device != nullptr && std::string(device).starts_with("cuda");
  if (has_gpu) use_gpu();
  smem_bm_config_t config;
  must("smem_bm_config_init", smem_bm_config_init(&config));
  config.autoRanking = false;
  config.rankId = static_cast<std::uint16_t>(rank);
  must("smem_bm_init", smem_bm_init(store, ranks, 0, &config));
  smem_bm_t const pool = must(
      "smem_bm_create", smem_bm_create(5, 0, SMEMB_DATA_OP_SDMA, ranks * kMost, ranks * kMost, 0));
  must("smem_bm_join", smem_bm_join(pool, 0));
  {
    Meeting meeting(store, ranks, rank);
    meeting.wait();
    Walker walker(pool, ranks, rank, has_gpu);
    for (const std::size_t size : kSizes)
      for (const How how : kHows)
        for (std::size_t variant = 0; variant < 3; ++variant) walker.go(size, how, variant);
    expect(walker.steps() == std::size(kSizes) * std::size(kHows) * 3 * kPlaces * (kPlaces - 1),
           "the number of steps, which is " + std::to_string(walker.steps()));
    std::printf("all_paths: rank %u of %u, %zu steps, PASS\n", rank, ranks, walker.steps());
    meeting.wait();
  }
  smem_bm_destroy(pool);
  smem_bm_uninit(0);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  program = "all_paths";
  if (argc != 2) leave(kWrongUse, "usage: all_paths RANKS");
  const auto ranks = static_cast<std::uint32_t>(number("RANKS", argv[1], 2, 16));
  char store[64];
  if (write_free_url(store, sizeof store) == 0) leave(kFailed, "no port for the store");
  return run_ranks(0, static_cast<int>(ranks), 100, [&](int rank) {
    join_test_host(rank);
    return run_rank(store, ranks, static_cast<std::uint32_t>(rank));
  });
}
