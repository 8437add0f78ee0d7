// SPDX-License-Identifier: Apache-2.0
// Latency of one block and throughput of batches of 32, for blocks of 32 KiB to 16 MiB: the
// arguments and the measurements of MemFabric's program of this name. Rank 0 copies to rank 1,
// through a pool of Big Memory (testBm 1) or between two endpoints (testBm 0), and compares the
// bytes at the end.
//
//   testBm 1  latency: mean of 10 copies; throughput: 10 batches of contiguous blocks
//   testBm 0  the same by two threads at once, 100 copies and 100 batches each
#include <smem/host/smem_bm.h>
#include <smem/host/smem_trans.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "example.h"

using namespace example;

namespace {

constexpr const char* kUsage =
    "usage: transfer_perf rankSize rankId deviceId useSdma testBm storeUrl memType [most "
    "[memory]]\n"
    "  rankSize  2\n"
    "  rankId    0, which measures, or 1; \"all\" starts both\n"
    "  deviceId  0 to 65535\n"
    "  useSdma   1 for SDMA, 0 for device RDMA\n"
    "  testBm    1 for Big Memory, 0 for transfers\n"
    "  storeUrl  tcp://host:port; \"auto\" with \"all\"\n"
    "  memType   0 for device memory, 1 for DRAM, 2 for both, one after the other\n"
    "  most      bytes of the largest block (16777216); memspan's own\n"
    "  memory    bytes that each rank gives (1073741824); memspan's own\n";

constexpr std::uint64_t kLeastBlock = 32 << 10;
constexpr std::uint32_t kBatch = 32;

struct Options {
  std::uint32_t rank = 0, device = 0;
  smem_bm_data_op_type operation = SMEMB_DATA_OP_SDMA;
  bool is_bm = false, is_all = false;
  std::uint64_t memory_type = 0;
  std::uint64_t most = 16 << 20, memory = 1 << 30;
};

enum class Kind { kDevice, kDram };

// What is measured: copies of block i of rank 0's memory to block i of rank 1's.
class Way {
 public:
  virtual ~Way() = default;
  virtual void copy(std::uint64_t block) = 0;  // the first
  virtual void copy_batch(std::uint64_t block, std::uint32_t blocks) = 0;
  virtual void read_back(void* to, std::uint64_t bytes) = 0;
  virtual void* memory() = 0;  // of this rank
  virtual std::uint32_t threads() const = 0;
  virtual std::uint32_t repetitions() const = 0;
};

struct Batch {
  std::vector<void*> from, to;
  std::vector<std::uint64_t> bytes;
  Batch(void* first_from, void* first_to, std::uint64_t block, std::uint32_t blocks)
      : bytes(blocks, block) {
    for (std::uint32_t i = 0; i < blocks; ++i) {
      from.push_back(static_cast<char*>(first_from) + i * block);
      to.push_back(static_cast<char*>(first_to) + i * block);
    }
  }
};

// ---- Big Memory -------------------------------------------------------------------------------

class BigMemory : public Way {
 public:
  BigMemory(const Options& given, Kind kind, const char* store)
      : type_(kind == Kind::kDram ? SMEM_MEM_TYPE_HOST : SMEM_MEM_TYPE_DEVICE) {
    smem_bm_config_t config;
    must("smem_bm_config_init", smem_bm_config_init(&config));
    config.autoRanking = false;
    config.rankId = static_cast<std::uint16_t>(given.rank);
    must("smem_bm_init", smem_bm_init(store, 2, static_cast<std::uint16_t>(given.device), &config));
    const bool is_dram = kind == Kind::kDram;
    pool_ = must("smem_bm_create", smem_bm_create(0, 0, given.operation, is_dram ? given.memory : 0,
                                                  is_dram ? 0 : given.memory, 0));
    must("smem_bm_join", smem_bm_join(pool_, 0));
    rank_ = given.rank;
  }
  ~BigMemory() override {
    smem_bm_destroy(pool_);
    smem_bm_uninit(0);
  }

  void* memory() override { return part(rank_); }
  std::uint32_t threads() const override { return 1; }
  std::uint32_t repetitions() const override { return 10; }
  void copy(std::uint64_t block) override {
    smem_copy_params params = {part(0), part(1), block};
    must("smem_bm_copy", smem_bm_copy(pool_, &params, SMEMB_COPY_L2G, 0));
  }
  void copy_batch(std::uint64_t block, std::uint32_t blocks) override {
    Batch batch(part(0), part(1), block, blocks);
    smem_batch_copy_params params = {batch.from.data(), batch.to.data(), batch.bytes.data(),
                                     blocks};
    must("smem_bm_copy_batch", smem_bm_copy_batch(pool_, &params, SMEMB_COPY_L2G, 0));
  }
  void read_back(void* to, std::uint64_t bytes) override {
    smem_copy_params params = {part(1), to, bytes};
    must("smem_bm_copy", smem_bm_copy(pool_, &params, SMEMB_COPY_G2H, 0));
  }

 private:
  void* part(std::uint32_t rank) {
    return must("smem_bm_ptr_by_mem_type",
                smem_bm_ptr_by_mem_type(pool_, type_, static_cast<std::uint16_t>(rank)));
  }

  const smem_bm_mem_type type_;
  smem_bm_t pool_ = nullptr;
  std::uint32_t rank_ = 0;
};

// ---- transfers --------------------------------------------------------------------------------

struct Freed {
  void operator()(void* memory) const { std::free(memory); }
};

class Transfers : public Way {
 public:
  Transfers(const Options& given, Kind kind, const char* store, Meeting& meeting) {
    smem_trans_config_t config;
    must("smem_trans_config_init", smem_trans_config_init(&config));
    config.role = given.rank == 0 ? SMEM_TRANS_SENDER : SMEM_TRANS_RECEIVER;
    config.deviceId = given.device;
    config.dataOpType = given.operation;
    must("smem_trans_init", smem_trans_init(&config));
    const char* const names[] = {"127.0.0.1:10000", peer_};
    endpoint_ = must("smem_trans_create", smem_trans_create(store, names[given.rank], &config));
    if (kind == Kind::kDram) {
      mine_ = must("smem_trans_malloc", smem_trans_malloc(endpoint_, given.memory));
    } else {
      own_.reset(std::aligned_alloc(4096, (given.memory + 4095) / 4096 * 4096));
      mine_ = own_.get();
      if (mine_ == nullptr) leave(kFailed, "no memory is left");
      must("smem_trans_register_mem", smem_trans_register_mem(endpoint_, mine_, given.memory, 0));
    }
    theirs_ = meeting.gather(mine_)[1 - given.rank];
  }
  ~Transfers() override {
    smem_trans_destroy(endpoint_, 0);
    smem_trans_uninit(0);
  }

  void* memory() override { return mine_; }
  std::uint32_t threads() const override { return 2; }
  std::uint32_t repetitions() const override { return 100; }
  void copy(std::uint64_t block) override {
    must("smem_trans_write", smem_trans_write(endpoint_, mine_, peer_, theirs_, block));
  }
  void copy_batch(std::uint64_t block, std::uint32_t blocks) override {
    Batch batch(mine_, theirs_, block, blocks);
    std::vector<const void*> from(batch.from.begin(), batch.from.end());
    std::vector<std::size_t> bytes(batch.bytes.begin(), batch.bytes.end());
    must("smem_trans_batch_write", smem_trans_batch_write(endpoint_, from.data(), peer_,
                                                          batch.to.data(), bytes.data(), blocks));
  }
  void read_back(void* to, std::uint64_t bytes) override {
    must("smem_trans_read", smem_trans_read(endpoint_, to, peer_, theirs_, bytes));
  }

 private:
  static constexpr const char* peer_ = "127.0.0.1:10001";
  smem_trans_t endpoint_ = nullptr;
  std::unique_ptr<void, Freed> own_;
  void *mine_ = nullptr, *theirs_ = nullptr;
};

// ---- the measurement --------------------------------------------------------------------------

// Seconds of one call, when all threads do theirs at once.
template <typename Call>
double seconds_of_a_call(const Way& way, Call call) {
  auto calls = [&] {
    for (std::uint32_t i = 0; i < way.repetitions(); ++i) call();
  };
  const double began = seconds_now();
  std::vector<std::thread> others;
  for (std::uint32_t i = 1; i < way.threads(); ++i) others.emplace_back(calls);
  calls();
  for (std::thread& other : others) other.join();
  return (seconds_now() - began) / way.repetitions();
}

std::size_t measure(Way& way, const Options& given, const char* name) {
  const std::uint64_t all = given.most * kBatch;
  fill(way.memory(), all, 1);
  way.copy_batch(given.most, kBatch);  // every page is there
  std::printf("%s, %u thread%s\n%-14s %-14s %s\n", name, way.threads(),
              way.threads() == 1 ? "" : "s", "Block(KB)", "Latency(us)", "Throughput(GB/s)");
  for (std::uint64_t block = kLeastBlock; block <= given.most; block *= 2) {
    const double one = seconds_of_a_call(way, [&] { way.copy(block); });
    const double batch = seconds_of_a_call(way, [&] { way.copy_batch(block, kBatch); });
    const double bytes = static_cast<double>(block) * kBatch * way.threads();
    std::printf("%-14llu %-14.3f %.3f\n", static_cast<unsigned long long>(block >> 10), one * 1e6,
                bytes / batch * 1e-9);
  }
  std::vector<char> back(all);
  way.read_back(back.data(), all);
  return wrong_bytes(back.data(), all, 1);
}

int run_rank(const Options& given, const char* store) {
  Meeting meeting(store, 2, given.rank);
  std::size_t wrong = 0;
  for (const Kind kind : {Kind::kDevice, Kind::kDram}) {
    if (given.memory_type != 2 && given.memory_type != (kind == Kind::kDevice ? 0 : 1)) continue;
    std::unique_ptr<Way> way;
    if (given.is_bm) way = std::make_unique<BigMemory>(given, kind, store);
    if (!given.is_bm) way = std::make_unique<Transfers>(given, kind, store, meeting);
    meeting.wait();  // both are there
    if (given.rank == 0)
      wrong += measure(*way, given, kind == Kind::kDevice ? "device memory" : "DRAM");
    meeting.wait();  // rank 0 is done
  }
  if (given.rank == 0) std::printf("WrongBytes(B) %zu\n", wrong);
  return wrong == 0 ? 0 : kFailed;
}

Options read(int argc, char** argv) {
  Options given;
  number("rankSize", argv[1], 2, 2);
  given.is_all = std::string(argv[2]) == "all";
  if (!given.is_all) given.rank = static_cast<std::uint32_t>(number("rankId", argv[2], 0, 1));
  given.device = static_cast<std::uint32_t>(number("deviceId", argv[3], 0, UINT16_MAX));
  given.operation =
      number("useSdma", argv[4], 0, 1) == 1 ? SMEMB_DATA_OP_SDMA : SMEMB_DATA_OP_DEVICE_RDMA;
  given.is_bm = number("testBm", argv[5], 0, 1) == 1;
  given.memory_type = number("memType", argv[7], 0, 2);
  if (argc > 8) given.most = number("most", argv[8], kLeastBlock, 1 << 30);
  if (argc > 9) given.memory = number("memory", argv[9], 1, std::uint64_t{64} << 30);
  if (given.most * kBatch > given.memory)
    leave(kWrongUse, "32 blocks of " + std::to_string(given.most) + " bytes do not fit into " +
                         std::to_string(given.memory));
  if (std::string(argv[6]) == "auto" && !given.is_all)
    leave(kWrongUse, "storeUrl is \"auto\", which needs rankId to be \"all\"");
  return given;
}

}  // namespace

int main(int argc, char** argv) {
  program = "transfer_perf";
  if (argc < 8 || argc > 10) {
    std::fputs(kUsage, stderr);
    return kWrongUse;
  }
  const Options given = read(argc, argv);
  const StoreUrl store(argv[6]);
  const int first = given.is_all ? 0 : static_cast<int>(given.rank);
  return run_ranks(first, given.is_all ? 2 : 1, 1800, [&](int rank) {
    Options mine = given;
    mine.rank = static_cast<std::uint32_t>(rank);
    return run_rank(mine, store.c_str());
  });
}
