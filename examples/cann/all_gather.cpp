// SPDX-License-Identifier: Apache-2.0
// The host of an all-gather in AscendC: all_gather PES PE ADDRESS [int|float16_t|bfloat16_t], one
// process for each PE, or by a launcher: oshrun -n 2 all_gather - - - int.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "opdev/bfloat16.h"
#include "opdev/fp16_t.h"
#include "shmem.h"

#include "all_gather_kernel.h"
#include "check.h"

namespace {

constexpr uint32_t BLOCKS = 8;
constexpr int ROUNDS = 5;

// What element `i` of the PE is: small, so that every type has it exactly.
int value(int pe, int i) {
  return (pe * 31 + i * 7) % 127;
}

template <typename T>
int run(int pe, int pes, int elements, aclrtStream stream) {
  const size_t bytes = elements * sizeof(T);
  T* host = nullptr;
  void* input = nullptr;
  void* output = nullptr;
  CHECK(aclrtMallocHost(reinterpret_cast<void**>(&host), pes * bytes));
  CHECK(aclrtMalloc(&input, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMalloc(&output, pes * bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  for (int i = 0; i < elements; ++i) host[i] = static_cast<T>(value(pe, i));
  CHECK(aclrtMemcpy(input, bytes, host, bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  const size_t window_bytes = BLOCKS * 64 + bytes;
  void* window = aclshmem_malloc(window_bytes);
  if (window == nullptr) return 1;
  CHECK(aclrtMemset(window, window_bytes, 0, window_bytes));
  aclshmem_barrier_all();
  for (int round = 1; round <= ROUNDS; ++round)
    all_gather<T>(BLOCKS, stream, util_get_ffts_config(), static_cast<uint8_t*>(input),
                  static_cast<uint8_t*>(output), static_cast<uint8_t*>(window), elements, round);
  CHECK(aclrtSynchronizeStream(stream));
  CHECK(aclrtMemcpy(host, pes * bytes, output, pes * bytes, ACL_MEMCPY_DEVICE_TO_HOST));
  int wrong = 0;
  for (int from = 0; from < pes; ++from)
    for (int i = 0; i < elements; ++i)
      wrong += static_cast<float>(host[from * elements + i]) != static_cast<float>(value(from, i));
  aclshmem_free(window);
  CHECK(aclrtFree(output));
  CHECK(aclrtFree(input));
  CHECK(aclrtFreeHost(host));
  std::printf("PE %d: %d elements of each: %s\n", pe, elements, wrong == 0 ? "PASS" : "ERROR");
  return wrong != 0;
}

template <typename T>
int run_all(int pe, int pes, aclrtStream stream) {
  int failed = 0;
  for (const int elements : {16, 1000, 100001, 1 << 20})
    failed += run<T>(pe, pes, elements, stream);
  return failed;
}

// As the command says, or as the launcher does.
int fill(char** values, aclshmemx_init_attr_t& attributes) {
  const bool is_told = std::strcmp(values[1], "-") != 0;
  const char* const size = is_told ? values[1] : std::getenv("WORLD_SIZE");
  const char* const rank = is_told ? values[2] : std::getenv("RANK");
  if (size == nullptr || rank == nullptr) return 1;
  attributes.n_pes = std::atoi(size);
  attributes.my_pe = std::atoi(rank);
  attributes.local_mem_size = 64UL << 20;
  attributes.option_attr = {(1 << 16) + int(sizeof attributes),
                            ACLSHMEM_DATA_OP_MTE,
                            DEFAULT_TIMEOUT,
                            DEFAULT_TIMEOUT,
                            DEFAULT_TIMEOUT,
                            0};
  if (is_told) std::snprintf(attributes.ip_port, sizeof attributes.ip_port, "%s", values[3]);
  return 0;
}

}  // namespace

int main(int count, char** values) {
  if (count < 4) {
    std::fprintf(stderr, "all_gather PES PE ADDRESS [int|float16_t|bfloat16_t]\n");
    return 2;
  }
  const std::string type = count > 4 ? values[4] : "int";
  aclshmemx_init_attr_t attributes{};
  CHECK(fill(values, attributes));
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(attributes.my_pe));
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_DEFAULT, &attributes));
  aclrtStream stream = nullptr;
  CHECK(aclrtCreateStream(&stream));
  const int pe = aclshmem_my_pe();
  const int pes = aclshmem_n_pes();
  int failed = 2;
  if (type == "int") failed = run_all<int32_t>(pe, pes, stream);
  if (type == "float16_t") failed = run_all<op::fp16_t>(pe, pes, stream);
  if (type == "bfloat16_t") failed = run_all<op::bfloat16>(pe, pes, stream);
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclshmem_finalize());
  CHECK(aclrtResetDevice(attributes.my_pe));
  CHECK(aclFinalize());
  return failed;
}
