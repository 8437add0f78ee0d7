// SPDX-License-Identifier: Apache-2.0
// CANN SHMEM's host face of version 1.5 in a job, started by attributes as its programs do: moves,
// signals, waits and tests, both kinds of memory, teams, and the same in the order of a stream.
#include <aclshmem.h>
#include <memspan/memspan.h>
#include <memspan/stream.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

int my_pe = -1;
int pes = 0;

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "PE %d, line %d: %s (%s)\n", my_pe, __LINE__, #condition, \
                   memspan_last_error());                                            \
      std::_Exit(1);                                                                 \
    }                                                                                \
  } while (false)

int next_pe() {
  return (my_pe + 1) % pes;
}
int previous_pe() {
  return (my_pe + pes - 1) % pes;
}

void start(const char* place) {
  aclshmemx_init_attr_t attributes{};
  attributes.my_pe = std::atoi(std::getenv("RANK"));
  attributes.n_pes = std::atoi(std::getenv("WORLD_SIZE"));
  attributes.local_mem_size = 64 << 20;
  std::snprintf(attributes.ip_port, sizeof attributes.ip_port, "%s", place);
  CHECK(aclshmemx_init_status() == ACLSHMEM_STATUS_NOT_INITIALIZED);
  CHECK(aclshmemx_instance_ctx_get() == nullptr && aclshmemx_instance_ctx_set(0) != 0);
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_DEFAULT, &attributes) == ACLSHMEM_SUCCESS);
  CHECK(aclshmemx_init_status() == ACLSHMEM_STATUS_IS_INITIALIZED);
  my_pe = aclshmem_my_pe();
  pes = aclshmem_n_pes();
  CHECK(aclshmemx_instance_ctx_get()->id == 0 && aclshmemx_instance_ctx_set(0) == 0);
  CHECK(aclshmemx_instance_ctx_set(1) == ACLSHMEM_INVALID_VALUE);
}

template <typename T>
T* words(std::size_t count, aclshmem_mem_type_t kind = DEVICE_SIDE) {
  auto* made = static_cast<T*>(aclshmemx_calloc(count, sizeof(T), kind));
  CHECK(made != nullptr);
  return made;
}

void check_moves() {
  constexpr std::size_t kCount = 64;
  double* there = words<double>(kCount, HOST_SIDE);
  std::vector<double> here(kCount, my_pe + 0.5);
  aclshmem_double_put(there, here.data(), kCount, next_pe());
  aclshmem_barrier_all();
  CHECK(there[kCount - 1] == previous_pe() + 0.5);
  CHECK(aclshmem_double_g(there, next_pe()) == my_pe + 0.5);
  aclshmem_double_get(here.data(), there, kCount, next_pe());
  CHECK(here[3] == my_pe + 0.5);
  aclshmem_sync_all();
  // Every second place from every third.
  std::int16_t* strided = words<std::int16_t>(kCount);
  std::vector<std::int16_t> source(kCount);
  for (std::size_t i = 0; i < kCount; ++i) source[i] = static_cast<std::int16_t>(100 * my_pe + i);
  aclshmem_int16_iput(strided, source.data(), 2, 3, 10, next_pe());
  aclshmem_barrier_all();
  for (int i = 0; i < 10; ++i) {
    CHECK(strided[2 * i] == 100 * previous_pe() + 3 * i);
    CHECK(strided[2 * i + 1] == 0);
  }
  aclshmem_sync_all();
  std::vector<std::int16_t> back(kCount);
  aclshmem_iget16(back.data(), strided, 1, 2, 10, next_pe());
  CHECK(back[4] == 100 * my_pe + 12);
  aclshmem_sync_all();
  // Elements of 128 bits.
  aclshmem_put128_nbi(there, here.data(), kCount / 2, next_pe());
  aclshmemx_quiet_on_stream(nullptr);
  aclshmemx_barrier_all_on_stream(nullptr);
  aclshmem_barrier_all();
  aclshmemx_free(there, HOST_SIDE);
  aclshmem_free(strided);
}

void check_signals_and_waits() {
  constexpr std::size_t kCount = 4;
  std::int32_t* signal = words<std::int32_t>(1);
  float* data = words<float>(kCount);
  float mine[kCount] = {1, 2, 3, 4};
  aclshmem_float_put_signal(data, mine, kCount, reinterpret_cast<std::uint8_t*>(signal), 7,
                            ACLSHMEM_SIGNAL_SET, next_pe());
  aclshmem_signal_wait_until(signal, ACLSHMEM_CMP_EQ, 7);
  CHECK(data[3] == 4);
  aclshmem_barrier_all();
  aclshmem_put32_signal(data, mine, 1, signal, 5, ACLSHMEM_SIGNAL_ADD, next_pe());
  aclshmem_int32_wait_until(signal, ACLSHMEM_CMP_GE, 12);
  CHECK(*signal == 12);

  std::uint8_t* flags = words<std::uint8_t>(kCount);
  const int status[kCount] = {0, 1, 0, 0};  // the second does not count
  std::size_t which = 0;
  std::size_t found[kCount];
  aclshmem_uint8_test_any(flags, kCount, status, ACLSHMEM_CMP_EQ, 9, &which);
  CHECK(which == SIZE_MAX);
  aclshmem_barrier_all();
  for (int i = 0; i < 4; ++i)
    aclshmem_uint8_p(flags + i, static_cast<std::uint8_t>(i + 1), next_pe());
  aclshmem_uint8_wait_until_all(flags, kCount, status, ACLSHMEM_CMP_NE, 0);
  aclshmem_uint8_wait_until_any(flags, kCount, status, ACLSHMEM_CMP_EQ, 3, &which);
  CHECK(which == 2);
  aclshmem_uint8_wait_until_some(flags, kCount, found, status, ACLSHMEM_CMP_GT, 1, &which);
  CHECK(which == 2 && found[0] == 2 && found[1] == 3);
  std::uint8_t expected[kCount] = {1, 99, 3, 4};
  int holds = 0;
  aclshmem_uint8_test_all_vector(flags, kCount, status, ACLSHMEM_CMP_EQ, expected, &holds);
  CHECK(holds == 1);
  aclshmem_uint8_test(flags, ACLSHMEM_CMP_EQ, 2, &holds);
  CHECK(holds == 0);
  float* number = words<float>(1);
  aclshmem_float_p(number, -0.5F, next_pe());
  aclshmem_float_wait(number, 0);
  CHECK(*number == -0.5F);
  aclshmem_barrier_all();
  aclshmem_free(number);
  aclshmem_free(flags);
  aclshmem_free(data);
  aclshmem_free(signal);
}

// Ring after ring, in the order of a stream, while the caller only waits for the stream.
void check_stream(memspan_stream_t stream) {
  constexpr std::size_t kBytes = 100'000;
  constexpr int kRounds = 20;
  char* there = words<char>(kBytes);
  std::int32_t* signal = words<std::int32_t>(1);
  std::vector<char> here(kBytes, static_cast<char>(my_pe + 1));
  for (int round = 1; round <= kRounds; ++round) {
    aclshmemx_putmem_on_stream(there, here.data(), kBytes, next_pe(), stream);
    aclshmemx_quiet_on_stream(stream);
    aclshmemx_signal_op_on_stream(signal, 1, ACLSHMEM_SIGNAL_ADD, next_pe(), stream);
    aclshmemx_signal_wait_until_on_stream(signal, ACLSHMEM_CMP_GE, round, stream);
  }
  aclshmemx_getmem_on_stream(here.data(), there, kBytes, my_pe, stream);
  aclshmemx_handle_wait({ACLSHMEM_TEAM_WORLD}, stream);
  // A barrier comes after the library's own stream.
  if (stream != nullptr) CHECK(memspan_stream_synchronize(stream, 20'000) == 0);
  aclshmem_barrier_all();
  CHECK(there[kBytes - 1] == previous_pe() + 1);
  CHECK(here[kBytes - 1] == previous_pe() + 1);
  aclshmem_free(there);
  aclshmem_free(signal);
}

void check_teams() {
  aclshmem_team_t row = ACLSHMEM_TEAM_INVALID;
  aclshmem_team_t column = ACLSHMEM_TEAM_INVALID;
  CHECK(aclshmem_team_split_2d(ACLSHMEM_TEAM_WORLD, 2, &row, &column) == 0);
  CHECK(aclshmem_team_my_pe(row) == my_pe % 2);
  aclshmem_team_config_t config;
  CHECK(aclshmem_team_get_config(row, &config) == 0 && config.num_contexts == 0 &&
        config.version == 0 && config.uniqueid == 0);
  aclshmem_sync(row);
  aclshmem_barrier(column);
  aclshmem_barrier(ACLSHMEM_TEAM_INVALID);
  aclshmem_team_destroy(row);
  aclshmem_team_destroy(column);
}

void check_settings() {
  CHECK(aclshmemx_set_mte_config(0, 1, 2) == 0 && aclshmemx_set_sdma_config(0, 1, 2) == 0);
  CHECK(aclshmemx_set_rdma_config(0, 127, 0) == ACLSHMEM_INVALID_VALUE);
  CHECK(aclshmemx_set_udma_config(0, 128, 0) == 0);
  CHECK(aclshmemx_malloc(8, static_cast<aclshmem_mem_type_t>(1)) != nullptr);
  CHECK(aclshmemx_get_heap_base() != nullptr);
  aclshmem_prof_pe_t* cycles = nullptr;
  aclshmemx_get_prof(&cycles, false);
  CHECK(cycles != nullptr && cycles->pe_id == my_pe && cycles->block_prof[63].ccount[1023] == 0);
  CHECK(util_get_ffts_config() == 0);
}

}  // namespace

int main(int argc, char** argv) {
  start(argc > 1 ? argv[1] : "");
  check_moves();
  check_signals_and_waits();
  check_stream(nullptr);
  memspan_stream_t stream = nullptr;
  CHECK(memspan_stream_create(&stream) == 0);
  check_stream(stream);
  CHECK(memspan_stream_destroy(stream) == 0);
  check_teams();
  check_settings();
  CHECK(aclshmemx_finalize(5) == ACLSHMEM_INVALID_VALUE);
  CHECK(aclshmemx_finalize(0) == 0 && aclshmem_finalize() == 0);
  return 0;
}
