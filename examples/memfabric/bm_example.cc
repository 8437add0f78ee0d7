// SPDX-License-Identifier: Apache-2.0
// Big Memory in one sitting: every rank puts bytes into its part of the pool's device memory,
// copies them to the next rank's device memory and from there to the next rank's host memory, and
// reads the host memory that another rank filled for it.
//
//   rank r:  own buffer ──H2G──► device space, r ──G2G──► device space, r+1
//                                                             │ G2G
//            buffer ◄──G2H── host space, r  ◄─ rank r-1 ─     ▼
//                                                         host space, r+1
#include <memspan/pool.h>
#include <smem/host/smem_bm.h>

#include "example.h"

using namespace example;

namespace {

constexpr const char* kUsage =
    "usage: bm_example WORLD LOCAL RANK_START storeUrl TRANSPORT [BYTES]\n"
    "  WORLD       ranks in all, 1 to 1024\n"
    "  LOCAL       ranks that this command starts\n"
    "  RANK_START  the first of them\n"
    "  storeUrl    tcp://host:port, the same for all; \"auto\" when all ranks are started here\n"
    "  TRANSPORT   0 for SDMA, 1 for device RDMA\n"
    "  BYTES       what each rank gives to either space and copies (16777216)\n";

constexpr std::uint32_t kPatienceMs = 120'000;  // until all ranks have joined

struct Arguments {
  std::uint32_t world, local, first;
  smem_bm_data_op_type transport;
  std::uint64_t bytes = 16 << 20;
};

void copy(smem_bm_t pool, const void* from, void* to, std::size_t bytes, smem_bm_copy_type type) {
  smem_copy_params params = {from, to, bytes};
  must("smem_bm_copy", smem_bm_copy(pool, &params, type, 0));
}

// Forward to the next rank, and back: what the rank before put into our host memory.
void pass_around(smem_bm_t pool, Meeting& meeting, const Arguments& given, std::uint32_t rank) {
  const std::uint32_t next = (rank + 1) % given.world;
  const std::uint32_t previous = (rank + given.world - 1) % given.world;
  auto pointer = [&](smem_bm_mem_type space, std::uint32_t of) {
    return must("smem_bm_ptr_by_mem_type",
                smem_bm_ptr_by_mem_type(pool, space, static_cast<std::uint16_t>(of)));
  };
  // The device memory has two halves: what comes from the rank itself, and what from another.
  const std::size_t half = given.bytes / 2;
  char* const mine = static_cast<char*>(pointer(SMEM_MEM_TYPE_DEVICE, rank));
  char* const device_of_next = static_cast<char*>(pointer(SMEM_MEM_TYPE_DEVICE, next)) + half;
  void* const host_of_next = pointer(SMEM_MEM_TYPE_HOST, next);

  std::vector<char> buffer(half);
  fill(buffer.data(), half, rank);
  copy(pool, buffer.data(), mine, half, SMEMB_COPY_H2G);
  copy(pool, mine, device_of_next, half, SMEMB_COPY_G2G);
  copy(pool, device_of_next, host_of_next, half, SMEMB_COPY_G2G);
  meeting.wait();  // all have written

  std::fill(buffer.begin(), buffer.end(), char{});
  copy(pool, pointer(SMEM_MEM_TYPE_HOST, rank), buffer.data(), half, SMEMB_COPY_G2H);
  expect(wrong_bytes(buffer.data(), half, previous) == 0, "what the rank before wrote");
  copy(pool, host_of_next, buffer.data(), half, SMEMB_COPY_G2H);
  expect(wrong_bytes(buffer.data(), half, rank) == 0, "what this rank wrote to the next");
  meeting.wait();  // all have read; a part goes with the rank that leaves
}

int run_rank(const Arguments& given, const char* store, std::uint32_t rank) {
  smem_bm_config_t config;
  must("smem_bm_config_init", smem_bm_config_init(&config));
  config.autoRanking = false;
  config.rankId = static_cast<std::uint16_t>(rank);
  must("smem_bm_init", smem_bm_init(store, given.world, 0, &config));
  smem_bm_t const pool = must("smem_bm_create", smem_bm_create(0, given.world, given.transport,
                                                               given.bytes, given.bytes, 0));
  must("smem_bm_join", smem_bm_join(pool, 0));
  must("memspan_pool_wait_members", memspan_pool_wait_members(pool, given.world, kPatienceMs));
  {
    Meeting meeting(store, given.world, rank);
    const double began = seconds_now();
    pass_around(pool, meeting, given, rank);
    std::printf("bm_example: rank %u of %u, %llu bytes each way, %.3f s, PASS\n", rank, given.world,
                static_cast<unsigned long long>(given.bytes / 2), seconds_now() - began);
    must("smem_bm_leave", smem_bm_leave(pool, 0));
  }
  smem_bm_destroy(pool);
  smem_bm_uninit(0);
  return 0;
}

Arguments read(int argc, char** argv) {
  Arguments given = {};
  given.world = static_cast<std::uint32_t>(number("WORLD", argv[1], 1, SMEM_WORLD_SIZE_MAX));
  given.local = static_cast<std::uint32_t>(number("LOCAL", argv[2], 1, given.world));
  given.first =
      static_cast<std::uint32_t>(number("RANK_START", argv[3], 0, given.world - given.local));
  given.transport =
      number("TRANSPORT", argv[5], 0, 1) == 0 ? SMEMB_DATA_OP_SDMA : SMEMB_DATA_OP_DEVICE_RDMA;
  if (argc == 7) given.bytes = number("BYTES", argv[6], 2, std::uint64_t{1} << 36);
  if (std::string(argv[4]) == "auto" && given.local != given.world)
    leave(kWrongUse, "storeUrl is \"auto\", which needs LOCAL to be WORLD");
  return given;
}

}  // namespace

int main(int argc, char** argv) {
  program = "bm_example";
  if (argc != 6 && argc != 7) {
    std::fputs(kUsage, stderr);
    return kWrongUse;
  }
  const Arguments given = read(argc, argv);
  const StoreUrl store(argv[4]);
  return run_ranks(
      static_cast<int>(given.first), static_cast<int>(given.local), 120,
      [&](int rank) { return run_rank(given, store.c_str(), static_cast<std::uint32_t>(rank)); });
}
