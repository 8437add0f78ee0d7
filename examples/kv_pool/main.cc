// SPDX-License-Identifier: Apache-2.0
// The members of a KvPool at work: each asks for blocks, some more often than others; what nobody
// has is computed and put. Every block that comes back is compared with what it must be.
#include <sys/mman.h>

#include <memory>

#include "../memfabric/example.h"
#include "kv_pool.h"

using namespace example;
using kv_pool::KvPool;
using kv_pool::Shape;

namespace {

constexpr const char* kUsage =
    "usage: kv_pool [option value]...\n"
    "  -members N      processes in all (4)\n"
    "  -local N        those that this command starts (all)\n"
    "  -first N        the first of them (0)\n"
    "  -store URL      tcp://host:port, the same for all; \"auto\" when all are started here "
    "(auto)\n"
    "  -block BYTES    of one block, a multiple of 64 (143360: 128 KiB and 12 KiB)\n"
    "  -blocks N       that a member has room for, a multiple of 8 (128)\n"
    "  -keys N         different blocks that are asked for (1024)\n"
    "  -operations N   blocks that each member asks for (20000)\n"
    "  -kill N         the member that dies half way, not 0, which hosts the store (none)\n";

struct Options {
  Shape shape = {4, 140 << 10, 128};
  std::uint64_t local = 0, first = 0, keys = 1024, operations = 20000;
  int killed = -1;
  std::string store = "auto";
};

Options read(int argc, char** argv) {
  Options given;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "-h" || name == "-help" || name == "--help") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    }
    if (i + 1 == argc) leave(kWrongUse, name + " needs a value\n" + kUsage);
    auto value = [&](std::uint64_t least, std::uint64_t most) {
      return number(name, argv[i + 1], least, most);
    };
    if (name == "-members")
      given.shape.members = static_cast<std::uint32_t>(value(1, 64));
    else if (name == "-local")
      given.local = value(1, 64);
    else if (name == "-first")
      given.first = value(0, 63);
    else if (name == "-store")
      given.store = argv[i + 1];
    else if (name == "-block")
      given.shape.block_bytes = value(64, 1 << 30) / 64 * 64;
    else if (name == "-blocks")
      given.shape.blocks = value(kv_pool::kWays, 1 << 24) / kv_pool::kWays * kv_pool::kWays;
    else if (name == "-keys")
      given.keys = value(1, UINT32_MAX);
    else if (name == "-operations")
      given.operations = value(1, UINT32_MAX);
    else if (name == "-kill")
      given.killed = static_cast<int>(value(1, 63));
    else
      leave(kWrongUse, "unknown option " + name + "\n" + kUsage);
  }
  if (given.local == 0) given.local = given.shape.members;
  if (given.first + given.local > given.shape.members)
    leave(kWrongUse, "-first and -local are more than -members");
  if (given.store == "auto" && given.local != given.shape.members)
    leave(kWrongUse, "-store auto needs all members to be started here");
  if (given.killed >= static_cast<int>(given.shape.members)) leave(kWrongUse, "-kill is no member");
  return given;
}

// What a member did; the parent sees it, too.
struct Work {
  std::uint64_t asked, own, others, put, evicted, changed;
  double seconds;  // of get and put alone
};

// Word i of a block is its hash + i: quick to make and to check.
void compute(std::uint64_t hash, std::vector<std::uint64_t>& block) {
  for (std::size_t i = 0; i < block.size(); ++i) block[i] = hash + i;
}

bool is_right(std::uint64_t hash, const std::vector<std::uint64_t>& block) {
  std::uint64_t difference = 0;
  for (std::size_t i = 0; i < block.size(); ++i) difference |= block[i] ^ (hash + i);
  return difference == 0;
}

// Low numbers come more often: the square of an even distribution.
std::uint64_t pick(std::uint64_t keys, std::uint64_t random) {
  const double even = static_cast<double>(random >> 11) * 0x1p-53;
  return static_cast<std::uint64_t>(even * even * static_cast<double>(keys));
}

void one_request(KvPool& pool, std::uint32_t rank, std::uint64_t hash,
                 std::vector<std::uint64_t>& block, Work& work) {
  double began = seconds_now();
  const auto owner = pool.get(hash, block.data());
  work.seconds += seconds_now() - began;
  ++work.asked;
  if (owner) {
    expect(is_right(hash, block), "a block of member " + std::to_string(*owner));
    ++(*owner == rank ? work.own : work.others);
    return;
  }
  compute(hash, block);
  began = seconds_now();
  pool.put(hash, block.data());
  work.seconds += seconds_now() - began;
  ++work.put;
}

// A block a second time from the dead member would be a failure: it is gone, and the others know.
void outlive(KvPool& pool, int killed) {
  const double end = seconds_now() + 30;
  while (pool.is_there(static_cast<std::uint32_t>(killed))) {
    expect(seconds_now() < end, "the dead member is there after 30 s");
    sched_yield();
  }
}

void print(const char* who, const Work& work, std::size_t block_bytes) {
  const double asked = static_cast<double>(work.asked);
  const double hits = static_cast<double>(work.own + work.others);
  std::printf(
      "kv_pool: %s: %llu asked, hit rate %.3f (own %.3f, others' %.3f), %llu put, %llu "
      "evicted, %llu changed meanwhile, %.2f GB/s\n",
      who, static_cast<unsigned long long>(work.asked), hits / asked,
      static_cast<double>(work.own) / asked, static_cast<double>(work.others) / asked,
      static_cast<unsigned long long>(work.put), static_cast<unsigned long long>(work.evicted),
      static_cast<unsigned long long>(work.changed),
      asked * static_cast<double>(block_bytes) / work.seconds * 1e-9);
}

int run_member(const Options& given, const char* store, std::uint32_t rank, Work& work) {
  smem_set_log_level(4);  // that a member is not there is no news here
  KvPool pool(store, given.shape, rank);
  std::vector<std::uint64_t> block(given.shape.block_bytes / sizeof(std::uint64_t));
  for (std::uint64_t i = 0; i < given.operations; ++i) {
    if (static_cast<int>(rank) == given.killed && i == given.operations / 2) ::raise(SIGKILL);
    const std::uint64_t key = pick(given.keys, random_number((std::uint64_t{rank} << 32) + i));
    one_request(pool, rank, random_number(key), block, work);
  }
  if (given.killed >= 0) outlive(pool, given.killed);
  work.evicted = pool.counts().evicted;
  work.changed = pool.counts().changed;
  print(("member " + std::to_string(rank)).c_str(), work, given.shape.block_bytes);
  pool.finish();
  return 0;
}

// The members' own sum: what they moved together in the time of the slowest.
Work sum_of(const Work* works, const Options& given) {
  Work sum = {};
  for (std::uint64_t i = 0; i < given.local; ++i) {
    const Work& one = works[i];
    if (static_cast<int>(given.first + i) == given.killed) continue;
    sum.asked += one.asked;
    sum.own += one.own;
    sum.others += one.others;
    sum.put += one.put;
    sum.evicted += one.evicted;
    sum.changed += one.changed;
    if (one.seconds > sum.seconds) sum.seconds = one.seconds;
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  program = "kv_pool";
  const Options given = read(argc, argv);
  const StoreUrl store(given.store);
  void* const shared = ::mmap(nullptr, given.local * sizeof(Work), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) leave(kFailed, std::string("mmap: ") + std::strerror(errno));
  Work* const works = static_cast<Work*>(shared);
  const int code = run_ranks(
      static_cast<int>(given.first), static_cast<int>(given.local), 300,
      [&](int rank) {
        return run_member(given, store.c_str(), static_cast<std::uint32_t>(rank),
                          works[static_cast<std::uint64_t>(rank) - given.first]);
      },
      given.killed);
  if (code != 0) return code;
  const Work sum = sum_of(works, given);
  if (sum.asked > 0) print("all", sum, given.shape.block_bytes);
  if (given.killed >= 0) std::printf("kv_pool: member %d died, the others went on\n", given.killed);
  std::puts("kv_pool: PASS");
  return 0;
}
