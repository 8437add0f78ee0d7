// SPDX-License-Identifier: Apache-2.0
// A pool whose members show each other certificates. The private key is encrypted, and so is its
// password, which the library of decrypter.c opens.
#include <memspan/pool.h>
#include <sched.h>
#include <smem/host/smem_bm.h>
#include <sys/stat.h>

#include "../example.h"

using namespace example;

namespace {

constexpr std::uint32_t kRanks = 2;
constexpr std::size_t kBytes = 1 << 20;
constexpr std::uint32_t kPatienceMs = 30'000;  // for the other rank

constexpr const char* kUsage =
    "usage: secured_pool FOLDER DECRYPTER [storeUrl (auto)]\n"
    "  FOLDER     ca.pem, member.pem, member.key and member.password (make_certificates.sh)\n"
    "  DECRYPTER  libmemspan_decrypter.so\n";

void set_path(char (&field)[SMEM_TLS_PATH_SIZE], const std::string& path) {
  struct stat found;
  if (::stat(path.c_str(), &found) != 0) leave(kWrongUse, path + ": " + std::strerror(errno));
  if (path.size() >= sizeof field)
    leave(kWrongUse, path + ": longer than " + std::to_string(sizeof field - 1) + " characters");
  std::memcpy(field, path.c_str(), path.size() + 1);
}

smem_bm_config_t secured(const std::string& folder, const std::string& decrypter) {
  smem_bm_config_t config;
  must("smem_bm_config_init", smem_bm_config_init(&config));
  smem_tls_config& tls = config.storeTlsConfig;
  tls.tlsEnable = true;
  set_path(tls.caPath, folder + "/ca.pem");
  set_path(tls.certPath, folder + "/member.pem");
  set_path(tls.keyPath, folder + "/member.key");
  set_path(tls.keyPassPath, folder + "/member.password");
  set_path(tls.decrypterLibPath, decrypter);
  return config;
}

// What each rank gives: bytes for the other to read, and whether it has.
struct Part {
  char bytes[kBytes];
  volatile char was_read;
};

void copy(smem_bm_t pool, const void* from, void* to, std::size_t bytes, smem_bm_copy_type type) {
  smem_copy_params params = {from, to, bytes};
  must("smem_bm_copy", smem_bm_copy(pool, &params, type, 0));
}

int run_rank(smem_bm_config_t config, const char* store, std::uint32_t rank) {
  config.autoRanking = false;
  config.rankId = static_cast<std::uint16_t>(rank);
  must("smem_bm_init", smem_bm_init(store, kRanks, 0, &config));
  smem_bm_t const pool =
      must("smem_bm_create", smem_bm_create(0, kRanks, SMEMB_DATA_OP_SDMA, sizeof(Part), 0, 0));
  auto part = [&](std::uint32_t of) {
    return static_cast<Part*>(
        must("smem_bm_ptr_by_mem_type",
             smem_bm_ptr_by_mem_type(pool, SMEM_MEM_TYPE_HOST, static_cast<std::uint16_t>(of))));
  };
  Part *const mine = part(rank), *const others = part(1 - rank);
  fill(mine->bytes, kBytes, rank);
  must("smem_bm_join", smem_bm_join(pool, 0));
  must("memspan_pool_wait_members", memspan_pool_wait_members(pool, kRanks, kPatienceMs));

  std::vector<char> buffer(kBytes);
  copy(pool, others->bytes, buffer.data(), kBytes, SMEMB_COPY_G2H);
  expect(wrong_bytes(buffer.data(), kBytes, 1 - rank) == 0, "what the other rank wrote");
  const char yes = 1;
  copy(pool, &yes, const_cast<char*>(&others->was_read), sizeof yes, SMEMB_COPY_H2G);
  const double end = seconds_now() + kPatienceMs / 1000;
  while (mine->was_read != 1) {
    expect(seconds_now() < end, "the other rank did not read in time");
    sched_yield();
  }
  std::printf("secured_pool: rank %u, PASS\n", rank);
  smem_bm_destroy(pool);
  smem_bm_uninit(0);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  program = "secured_pool";
  if (argc != 3 && argc != 4) {
    std::fputs(kUsage, stderr);
    return kWrongUse;
  }
  const smem_bm_config_t config = secured(argv[1], argv[2]);
  const StoreUrl store(argc == 4 ? argv[3] : "auto");
  return run_ranks(0, kRanks, 60, [&](int rank) {
    return run_rank(config, store.c_str(), static_cast<std::uint32_t>(rank));
  });
}
