// SPDX-License-Identifier: Apache-2.0
// How fast a pool of Big Memory moves data, direction by direction: the options and the columns of
// MemFabric's program of this name, so that numbers can be set side by side.
//
//   h2d  host buffer ──► own device memory       d2h  and back
//   h2rd, h2rh, d2rh, d2rd  buffer ──► the peer's device memory (rd) or host memory (rh)
//   rh2d, rh2h, rd2h, rd2d  and back
//
// All local ranks copy at once, each to and from its peer. The time is that of -cc batches, one
// after the other, without a warm-up. Afterwards every byte is compared; the exit code is 1 when
// one is wrong.
#include <smem/host/smem_bm.h>
#include <sys/mman.h>

#include <algorithm>
#include <memory>

#include "example.h"

using namespace example;

namespace {

constexpr const char* kUsage =
    "usage: bm_perf_benchmark -bw -ot OP -t TYPE -ws RANKS [option value]...\n"
    "  -bw    measure bandwidth (all that there is)\n"
    "  -ot    sdma, device_rdma, host_rdma, host_urma or host_tcp\n"
    "  -t     h2d, d2h, h2rd, h2rh, d2rh, d2rd, rh2d, rh2h, rd2h, rd2d or all\n"
    "  -s     bytes of a block (1024)\n"
    "  -cc    batches (1000)\n"
    "  -bs    blocks of a batch (1)\n"
    "  -d     the first rank's device; the others' follow (0)\n"
    "  -ws    ranks in all, a power of two up to 32\n"
    "  -lrs   ranks that this command starts (all)\n"
    "  -rs    the first of them (0)\n"
    "  -ip    the store, tcp://host:port; \"auto\" when all ranks are started here (auto)\n"
    "  -rdma  the network interface of host_rdma, tcp://address[/mask]:port\n"
    "  -pool  bytes that each rank gives to either space (268435456); memspan's own\n"
    "  -h     this text\n";

// ---- directions -------------------------------------------------------------------------------

enum class Side { kHost, kDevice };

struct Direction {
  const char* name;
  Side buffer;  // as what the rank's own memory is given
  Side space;   // of the pool
  bool is_put;  // buffer to pool, or back
  bool is_own;  // the pool's end is the rank's own part, or its peer's
};

constexpr Direction kDirections[] = {
    {"h2d", Side::kHost, Side::kDevice, true, true},
    {"d2h", Side::kHost, Side::kDevice, false, true},
    {"h2rd", Side::kHost, Side::kDevice, true, false},
    {"h2rh", Side::kHost, Side::kHost, true, false},
    {"d2rh", Side::kDevice, Side::kHost, true, false},
    {"d2rd", Side::kDevice, Side::kDevice, true, false},
    {"rh2d", Side::kDevice, Side::kHost, false, false},
    {"rh2h", Side::kHost, Side::kHost, false, false},
    {"rd2h", Side::kHost, Side::kDevice, false, false},
    {"rd2d", Side::kDevice, Side::kDevice, false, false},
};

smem_bm_copy_type copy_type(const Direction& direction) {
  if (direction.buffer == Side::kHost) return direction.is_put ? SMEMB_COPY_H2G : SMEMB_COPY_G2H;
  return direction.is_put ? SMEMB_COPY_L2G : SMEMB_COPY_G2L;
}

struct Operation {
  const char* name;
  smem_bm_data_op_type bit;
};

constexpr Operation kOperations[] = {{"sdma", SMEMB_DATA_OP_SDMA},
                                     {"device_rdma", SMEMB_DATA_OP_DEVICE_RDMA},
                                     {"host_rdma", SMEMB_DATA_OP_HOST_RDMA},
                                     {"host_urma", SMEMB_DATA_OP_HOST_URMA},
                                     {"host_tcp", SMEMB_DATA_OP_HOST_TCP}};

// ---- options ----------------------------------------------------------------------------------

struct Options {
  bool bandwidth = false;
  const Operation* operation = nullptr;
  std::string type;
  std::uint64_t block = 1024, batches = 1000, batch = 1, device = 0;
  std::uint64_t world = 0, local = 0, first = 0;
  std::string store = "auto", interface;
  std::uint64_t pool = 256 << 20;

  std::uint64_t bytes() const { return block * batch; }
};

[[noreturn]] void misused(const std::string& why) {
  leave(kWrongUse, why + "\n" + kUsage);
}

const Operation* find_operation(const std::string& name) {
  for (const Operation& operation : kOperations)
    if (name == operation.name) return &operation;
  misused("-ot is \"" + name + "\"");
}

void read_option(Options& given, const std::string& name, const char* text) {
  const std::uint64_t any = std::uint64_t{1} << 40;
  if (name == "-ot")
    given.operation = find_operation(text);
  else if (name == "-t")
    given.type = text;
  else if (name == "-s")
    given.block = number(name, text, 1, any);
  else if (name == "-cc")
    given.batches = number(name, text, 1, any);
  else if (name == "-bs")
    given.batch = number(name, text, 1, UINT32_MAX);
  else if (name == "-d")
    given.device = number(name, text, 0, UINT16_MAX - 32);
  else if (name == "-ws")
    given.world = number(name, text, 1, 32);
  else if (name == "-lrs")
    given.local = number(name, text, 1, 32);
  else if (name == "-rs")
    given.first = number(name, text, 0, 31);
  else if (name == "-ip")
    given.store = text;
  else if (name == "-rdma")
    given.interface = text;
  else if (name == "-pool")
    given.pool = number(name, text, 1, std::uint64_t{64} << 30);
  else
    misused("unknown option " + name);
}

void check(Options& given) {
  if (!given.bandwidth) misused("-bw is missing");
  if (given.operation == nullptr) misused("-ot is missing");
  if (given.type.empty()) misused("-t is missing");
  if (given.world == 0) misused("-ws is missing");
  if ((given.world & (given.world - 1)) != 0)
    misused("-ws is " + std::to_string(given.world) + ", which is no power of two");
  if (given.local == 0) given.local = given.world;
  if (given.first + given.local > given.world) misused("-rs and -lrs are more than -ws");
  if (given.store == "auto" && given.local != given.world)
    misused("-ip auto needs all ranks to be started here");
  if (given.operation->bit == SMEMB_DATA_OP_HOST_RDMA && given.interface.empty())
    misused("-ot host_rdma needs -rdma");
  if (given.bytes() > given.pool)
    misused("a batch has " + std::to_string(given.bytes()) + " bytes, -pool only " +
            std::to_string(given.pool));
  bool is_known = given.type == "all";
  for (const Direction& direction : kDirections)
    is_known = is_known || given.type == direction.name;
  if (!is_known) misused("-t is \"" + given.type + "\"");
}

Options read(int argc, char** argv) {
  Options given;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "-h" || name == "--help") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    }
    if (name == "-bw") {
      given.bandwidth = true;
      continue;
    }
    if (i + 1 == argc) misused(name + " needs a value");
    read_option(given, name, argv[++i]);
  }
  check(given);
  return given;
}

// host_rdma has no way between these in the original; its table is kept.
bool is_measured(const Options& given, const Direction& direction) {
  if (given.type != "all") return given.type == direction.name;
  if (given.operation->bit != SMEMB_DATA_OP_HOST_RDMA) return true;
  return direction.space == Side::kHost;
}

// ---- a rank -----------------------------------------------------------------------------------

struct Freed {
  void operator()(void* memory) const { std::free(memory); }
};

// What a rank found, told to the process that prints.
struct Found {
  double seconds;
  std::uint64_t wrong_bytes;
};
using FoundOfRank = Found[std::size(kDirections)];

class Rank {
 public:
  Rank(const Options& given, const char* store, std::uint32_t rank)
      : given_(given), rank_(rank), peer_(peer_of(given, rank)) {
    smem_bm_config_t config;
    must("smem_bm_config_init", smem_bm_config_init(&config));
    config.autoRanking = false;
    config.rankId = static_cast<std::uint16_t>(rank);
    std::snprintf(config.hcomUrl, sizeof config.hcomUrl, "%s", given.interface.c_str());
    const auto world = static_cast<std::uint32_t>(given.world);
    const auto device = static_cast<std::uint16_t>(given.device + rank - given.first);
    must("smem_bm_init", smem_bm_init(store, world, device, &config));
    const std::uint32_t near = (1U << SMEM_BM_PERFORMANCE_MODE_FLAG_INDEX) | 0x7F;
    const std::uint32_t flags = given.operation->bit == SMEMB_DATA_OP_SDMA ? near : 0;
    pool_ = must("smem_bm_create",
                 smem_bm_create(0, 0, given.operation->bit, given.pool, given.pool, flags));
    must("smem_bm_join", smem_bm_join(pool_, 0));
    meeting_ = std::make_unique<Meeting>(store, world, rank);
    for (auto& buffer : buffers_) buffer.reset(allocate());
  }
  ~Rank() {
    meeting_->wait();  // nobody needs this part
    meeting_.reset();
    for (auto& buffer : buffers_)
      smem_bm_unregister_user_mem(pool_, reinterpret_cast<std::uint64_t>(buffer.get()));
    smem_bm_destroy(pool_);
    smem_bm_uninit(0);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  // The host of rank 0 goes first, then the others.
  Found measure(const Direction& direction) {
    Found found = {};
    const bool is_first = rank_ < given_.local;
    prepare(direction);
    meeting_->wait();
    if (is_first) found = timed(direction);
    meeting_->wait();
    if (!is_first) found = timed(direction);
    meeting_->wait();
    found.wrong_bytes = compare(direction);
    meeting_->wait();
    return found;
  }

 private:
  static std::uint32_t peer_of(const Options& given, std::uint32_t rank) {
    const std::uint64_t distance = given.local == given.world ? 1 : given.local;
    return static_cast<std::uint32_t>((rank + distance) % given.world);
  }

  void* allocate() {
    void* memory = nullptr;
    if (::posix_memalign(&memory, 4096, given_.bytes()) != 0) leave(kFailed, "no memory is left");
    std::memset(memory, 0, given_.bytes());
    const auto address = reinterpret_cast<std::uint64_t>(memory);
    if (smem_bm_register_user_mem(pool_, address, given_.bytes()) != SMEM_OK)
      std::fprintf(stderr, "bm_perf_benchmark: not registered: %s\n", smem_get_last_err_msg());
    return memory;
  }

  char* buffer(const Direction& direction) {
    return static_cast<char*>(buffers_[direction.buffer == Side::kHost ? 0 : 1].get());
  }

  char* remote(const Direction& direction) {
    const smem_bm_mem_type space =
        direction.space == Side::kHost ? SMEM_MEM_TYPE_HOST : SMEM_MEM_TYPE_DEVICE;
    const auto of = static_cast<std::uint16_t>(direction.is_own ? rank_ : peer_);
    return static_cast<char*>(
        must("smem_bm_ptr_by_mem_type", smem_bm_ptr_by_mem_type(pool_, space, of)));
  }

  void copy(const void* from, void* to, smem_bm_copy_type type) {
    smem_copy_params params = {from, to, given_.bytes()};
    must("smem_bm_copy", smem_bm_copy(pool_, &params, type, 0));
  }

  std::uint64_t seed(const Direction& direction) const {
    return rank_ * std::size(kDirections) + static_cast<std::uint64_t>(&direction - kDirections);
  }

  // Where the data comes from has what it must be, where it goes to has something else.
  void prepare(const Direction& direction) {
    char* const mine = buffer(direction);
    fill(mine, given_.bytes(), direction.is_put ? ~seed(direction) : seed(direction));
    copy(mine, remote(direction), SMEMB_COPY_H2G);
    fill(mine, given_.bytes(), direction.is_put ? seed(direction) : ~seed(direction));
  }

  Found timed(const Direction& direction) {
    const auto batch = static_cast<std::uint32_t>(given_.batch);
    std::vector<void*> mine, theirs;
    for (std::uint32_t i = 0; i < batch; ++i) {
      mine.push_back(buffer(direction) + i * given_.block);
      theirs.push_back(remote(direction) + i * given_.block);
    }
    const std::vector<std::uint64_t> sizes(batch, given_.block);
    smem_batch_copy_params params = {mine.data(), theirs.data(), sizes.data(), batch};
    if (!direction.is_put) std::swap(params.sources, params.destinations);
    const smem_bm_copy_type type = copy_type(direction);
    const double began = seconds_now();
    for (std::uint64_t i = 0; i < given_.batches; ++i)
      must("smem_bm_copy_batch", smem_bm_copy_batch(pool_, &params, type, 0));
    return {seconds_now() - began, 0};
  }

  std::uint64_t compare(const Direction& direction) {
    if (!direction.is_put) return wrong_bytes(buffer(direction), given_.bytes(), seed(direction));
    std::vector<char> back(given_.bytes());
    copy(remote(direction), back.data(), SMEMB_COPY_G2H);
    return wrong_bytes(back.data(), back.size(), seed(direction));
  }

  const Options& given_;
  const std::uint32_t rank_, peer_;
  smem_bm_t pool_ = nullptr;
  std::unique_ptr<Meeting> meeting_;
  std::unique_ptr<void, Freed> buffers_[2];  // as host memory and as device memory
};

// ---- the table --------------------------------------------------------------------------------

void print(const Options& given, const Direction& direction, std::uint64_t rank,
           const Found& found) {
  const double bytes = static_cast<double>(given.bytes()) * static_cast<double>(given.batches);
  const double us = found.seconds * 1e6;
  std::printf("%-6s %-4llu %-5llu %-14.0f %-14.3f %-12.3f %-9.3f %llu\n", direction.name,
              static_cast<unsigned long long>(given.device + rank - given.first),
              static_cast<unsigned long long>(rank), bytes / 1024, us,
              us / static_cast<double>(given.batches), bytes / found.seconds * 1e-9,
              static_cast<unsigned long long>(found.wrong_bytes));
}

std::uint64_t print_all(const Options& given, const FoundOfRank* found) {
  std::printf("%-6s %-4s %-5s %-14s %-14s %-12s %-9s %s\n", "Type", "NPU", "Rank", "TotalSize(KB)",
              "TotalTime(us)", "AvgTime(us)", "BW(GB/s)", "WrongBytes(B)");
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < std::size(kDirections); ++i) {
    if (!is_measured(given, kDirections[i])) continue;
    for (std::uint64_t local = 0; local < given.local; ++local) {
      print(given, kDirections[i], given.first + local, found[local][i]);
      wrong += found[local][i].wrong_bytes;
    }
  }
  return wrong;
}

int run_rank(const Options& given, const char* store, std::uint32_t rank, FoundOfRank& found) {
  Rank self(given, store, rank);
  for (std::size_t i = 0; i < std::size(kDirections); ++i)
    if (is_measured(given, kDirections[i])) found[i] = self.measure(kDirections[i]);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  program = "bm_perf_benchmark";
  const Options given = read(argc, argv);
  const StoreUrl store(given.store);
  void* const shared = ::mmap(nullptr, given.local * sizeof(FoundOfRank), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) leave(kFailed, std::string("mmap: ") + std::strerror(errno));
  auto* const found = static_cast<FoundOfRank*>(shared);
  const int code =
      run_ranks(static_cast<int>(given.first), static_cast<int>(given.local), 3600, [&](int rank) {
        const auto of = static_cast<std::uint32_t>(rank);
        return run_rank(given, store.c_str(), of, found[of - given.first]);
      });
  if (code != 0) return code;
  return print_all(given, found) == 0 ? 0 : kFailed;
}
