// SPDX-License-Identifier: Apache-2.0
// One process fills the cache of a prompt (prefill), another goes on with it (decode). Each layer's
// pieces are on their way while the next layer is computed, straight from the one's memory into the
// other's. Nobody waits for a time: a transfer works as soon as the registration returned.
//
//   decode    registers its cache, tells the addresses ─┐                       checks every byte
//   prefill   registers its own ────────────────────────┴─ layer 0, 1, ...  ──► meeting
//                                                          writes on a stream
#include <memspan/stream.h>
#include <smem/host/smem_trans.h>

#include <memory>

#include "example.h"

using namespace example;

namespace {

constexpr std::uint64_t kMaxLayers = 128;
constexpr std::size_t kBytes[] = {128 << 10, 16 << 10};  // of a layer's two pieces
constexpr std::uint32_t kPrefill = 0, kDecode = 1;       // ranks at the meetings
constexpr const char* kNames[] = {"127.0.0.1:10000", "127.0.0.1:10001"};

// The memory of a cache: every piece is an allocation of its own, as in an engine.
class Cache {
 public:
  explicit Cache(std::size_t layers) {
    for (std::size_t i = 0; i < 2 * layers; ++i)
      pieces_.push_back(std::make_unique<char[]>(kBytes[i % 2]));
  }
  std::size_t pieces() const { return pieces_.size(); }
  void* at(std::size_t i) const { return pieces_[i].get(); }
  static std::size_t bytes(std::size_t i) { return kBytes[i % 2]; }

  void lend(smem_trans_t endpoint) const {
    std::vector<void*> addresses;
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < pieces(); ++i) {
      addresses.push_back(at(i));
      sizes.push_back(bytes(i));
    }
    must("smem_trans_batch_register_mem",
         smem_trans_batch_register_mem(endpoint, addresses.data(), sizes.data(),
                                       static_cast<std::uint32_t>(pieces()), 0));
  }

 private:
  std::vector<std::unique_ptr<char[]>> pieces_;
};

// What the processes tell each other at the beginning.
struct Addresses {
  void* piece[2 * kMaxLayers];
};

Addresses addresses_of(const Cache& cache) {
  Addresses all = {};
  for (std::size_t i = 0; i < cache.pieces(); ++i) all.piece[i] = cache.at(i);
  return all;
}

smem_trans_t open_endpoint(const char* store, std::uint32_t rank) {
  smem_trans_config_t config;
  must("smem_trans_config_init", smem_trans_config_init(&config));
  config.role = rank == kPrefill ? SMEM_TRANS_SENDER : SMEM_TRANS_RECEIVER;
  must("smem_trans_init", smem_trans_init(&config));
  return must("smem_trans_create", smem_trans_create(store, kNames[rank], &config));
}

// The seed of a piece's bytes: what a model would compute.
std::uint64_t content(std::size_t piece) {
  return 7000 + piece;
}

void prefill(smem_trans_t endpoint, const Cache& cache, Addresses& at_decode) {
  memspan_stream_t stream = nullptr;
  must("memspan_stream_create", memspan_stream_create(&stream));
  const double began = seconds_now();
  std::size_t total = 0;
  for (std::size_t i = 0; i < cache.pieces(); i += 2) {
    const void* from[2];
    std::size_t bytes[2];
    for (std::size_t k = 0; k < 2; ++k) {
      fill(cache.at(i + k), Cache::bytes(i + k), content(i + k));
      from[k] = cache.at(i + k);
      total += bytes[k] = Cache::bytes(i + k);
    }
    must("smem_trans_batch_write_submit",
         smem_trans_batch_write_submit(endpoint, from, kNames[kDecode], &at_decode.piece[i], bytes,
                                       2, stream));
  }
  must("memspan_stream_synchronize", memspan_stream_synchronize(stream, 30'000));
  std::printf("trans_demo: prefill, %zu pieces, %zu bytes, %.3f s, PASS\n", cache.pieces(), total,
              seconds_now() - began);
  must("memspan_stream_destroy", memspan_stream_destroy(stream));
}

// Everything has arrived; and the first piece again, fetched from there.
void decode(smem_trans_t endpoint, const Cache& cache, const Addresses& at_prefill) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < cache.pieces(); ++i)
    wrong += wrong_bytes(cache.at(i), Cache::bytes(i), content(i));
  expect(wrong == 0, std::to_string(wrong) + " bytes of the cache");
  std::vector<char> again(Cache::bytes(0));
  must("smem_trans_read", smem_trans_read(endpoint, again.data(), kNames[kPrefill],
                                          at_prefill.piece[0], again.size()));
  expect(wrong_bytes(again.data(), again.size(), content(0)) == 0, "the piece that was read");
  std::printf("trans_demo: decode, %zu pieces, PASS\n", cache.pieces());
}

int run_rank(const char* store, std::size_t layers, std::uint32_t rank) {
  Meeting meeting(store, 2, rank);  // prefill hosts the store
  smem_trans_t const endpoint = open_endpoint(store, rank);
  const Cache cache(layers);
  cache.lend(endpoint);
  std::vector<Addresses> addresses = meeting.gather(addresses_of(cache));
  if (rank == kPrefill) prefill(endpoint, cache, addresses[kDecode]);
  meeting.wait();  // the cache is complete
  if (rank == kDecode) decode(endpoint, cache, addresses[kPrefill]);
  meeting.wait();  // nobody needs it any longer
  smem_trans_destroy(endpoint, 0);
  smem_trans_uninit(0);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  program = "trans_demo";
  if (argc > 4)
    leave(kWrongUse, "usage: trans_demo [prefill|decode|both [storeUrl [LAYERS (61)]]]");
  const std::string role = argc > 1 ? argv[1] : "both";
  const std::string url = argc > 2 ? argv[2] : "auto";
  if (role != "prefill" && role != "decode" && role != "both")
    leave(kWrongUse, "the role is \"" + role + "\", allowed are prefill, decode and both");
  if (url == "auto" && role != "both") leave(kWrongUse, "storeUrl is \"auto\", which needs both");
  const std::size_t layers = argc > 3 ? number("LAYERS", argv[3], 1, kMaxLayers) : 61;
  const StoreUrl store(url);
  const int first = role == "decode" ? kDecode : kPrefill, count = role == "both" ? 2 : 1;
  return run_ranks(first, count, 150, [&](int rank) {
    return run_rank(store.c_str(), layers, static_cast<std::uint32_t>(rank));
  });
}
