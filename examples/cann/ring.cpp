// SPDX-License-Identifier: Apache-2.0
// Kernel and host in one source in AscendC: numbers go once around all PEs. Every block takes a
// part through a queue of the block's buffer, adds one, and hands it to the next PE with a signal.
//   ring PES PE ADDRESS, one process for each PE, or oshrun -n 3 ring
#include <cstdio>
#include <cstdlib>

#include "acl/acl.h"
#include "kernel_operator.h"
#include "shmem.h"

#include "check.h"

constexpr uint32_t BLOCKS = 4;
constexpr uint32_t PIECE = 1024;  // elements
constexpr uint32_t PIECES = 10;   // of each block
constexpr uint32_t COUNT = BLOCKS * PIECES * PIECE;

class AddOne {
 public:
  __aicore__ inline void Init(GM_ADDR from, GM_ADDR to) {
    const uint32_t first = AscendC::GetBlockIdx() * PIECES * PIECE;
    source_.SetGlobalBuffer((__gm__ int32_t*)from + first, PIECES * PIECE);
    dest_.SetGlobalBuffer((__gm__ int32_t*)to + first, PIECES * PIECE);
    pipe_.InitBuffer(in_, 2, PIECE * sizeof(int32_t));
    pipe_.InitBuffer(out_, 2, PIECE * sizeof(int32_t));
  }
  __aicore__ inline void Process() {
    for (uint32_t i = 0; i < PIECES; ++i) {
      AscendC::LocalTensor<int32_t> in = in_.AllocTensor<int32_t>();
      AscendC::DataCopy(in, source_[i * PIECE], PIECE);
      in_.EnQue(in);
      in = in_.DeQue<int32_t>();
      AscendC::LocalTensor<int32_t> out = out_.AllocTensor<int32_t>();
      AscendC::Adds(out, in, int32_t{1}, PIECE);
      out_.EnQue(out);
      in_.FreeTensor(in);
      out = out_.DeQue<int32_t>();
      AscendC::DataCopy(dest_[i * PIECE], out, PIECE);
      out_.FreeTensor(out);
    }
  }

 private:
  AscendC::TPipe pipe_;
  AscendC::TQue<AscendC::TPosition::VECIN, 2> in_;
  AscendC::TQue<AscendC::TPosition::VECOUT, 2> out_;
  AscendC::GlobalTensor<int32_t> source_;
  AscendC::GlobalTensor<int32_t> dest_;
};

extern "C" __global__ __aicore__ void pass_on(GM_ADDR data, GM_ADDR next, GM_ADDR arrived,
                                              int step) {
  if ASCEND_IS_AIC {
    return;
  }
  const int block = AscendC::GetBlockIdx();
  __gm__ int32_t* signal = (__gm__ int32_t*)arrived + block * 16;
  if (step > 0) aclshmem_signal_wait_until(signal, ACLSHMEM_CMP_GE, step);
  AddOne add;
  add.Init(data, next);
  add.Process();
  aclshmem_barrier_all();  // all have read what is overwritten now
  const int to = (aclshmem_my_pe() + 1) % aclshmem_n_pes();
  const uint32_t first = block * PIECES * PIECE;
  aclshmem_int32_put_signal((__gm__ int32_t*)data + first, (__gm__ int32_t*)next + first,
                            PIECES * PIECE, signal, step + 1, ACLSHMEM_SIGNAL_SET, to);
}

int main(int count, char** values) {
  const bool is_told = count > 3;
  const char* const size = is_told ? values[1] : std::getenv("WORLD_SIZE");
  const char* const rank = is_told ? values[2] : std::getenv("RANK");
  if (size == nullptr || rank == nullptr) {
    std::fprintf(stderr, "ring PES PE ADDRESS, or by oshrun\n");
    return 2;
  }
  aclshmemx_init_attr_t attributes{};
  attributes.n_pes = std::atoi(size);
  attributes.my_pe = std::atoi(rank);
  attributes.local_mem_size = 16UL << 20;
  if (is_told) std::snprintf(attributes.ip_port, sizeof attributes.ip_port, "%s", values[3]);
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(attributes.my_pe));
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_DEFAULT, &attributes));
  aclrtStream stream = nullptr;
  aclrtEvent begin = nullptr;
  aclrtEvent end = nullptr;
  CHECK(aclrtCreateStream(&stream));
  CHECK(aclrtCreateEvent(&begin));
  CHECK(aclrtCreateEvent(&end));

  const int pe = aclshmem_my_pe();
  const int pes = aclshmem_n_pes();
  const size_t bytes = COUNT * sizeof(int32_t);
  auto* data = static_cast<uint8_t*>(aclshmem_malloc(bytes));
  auto* arrived = static_cast<uint8_t*>(aclshmem_calloc(BLOCKS * 16, sizeof(int32_t)));
  void* next = nullptr;
  int32_t* host = nullptr;
  CHECK(aclrtMalloc(&next, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMallocHost(reinterpret_cast<void**>(&host), bytes));
  for (uint32_t i = 0; i < COUNT; ++i) host[i] = pe * 1000000 + static_cast<int32_t>(i);
  CHECK(aclrtMemcpyAsync(data, bytes, host, bytes, ACL_MEMCPY_HOST_TO_DEVICE, stream));
  CHECK(aclrtSynchronizeStream(stream));
  aclshmem_barrier_all();

  CHECK(aclrtRecordEvent(begin, stream));
  for (int step = 0; step < pes; ++step)
    pass_on<<<BLOCKS, nullptr, stream>>>(data, static_cast<uint8_t*>(next), arrived, step);
  CHECK(aclrtRecordEvent(end, stream));
  CHECK(aclrtSynchronizeStream(stream));
  aclshmem_barrier_all();

  CHECK(aclrtMemcpy(host, bytes, data, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
  int wrong = 0;  // all the way around, one more at each PE
  for (uint32_t i = 0; i < COUNT; ++i)
    wrong += host[i] != pe * 1000000 + static_cast<int32_t>(i) + pes;
  float ms = 0;
  CHECK(aclrtEventElapsedTime(&ms, begin, end));
  std::printf("PE %d: %u numbers around %d PEs: %s\n", pe, COUNT, pes,
              wrong == 0 && ms > 0 ? "PASS" : "ERROR");
  aclshmem_free(arrived);
  aclshmem_free(data);
  CHECK(aclrtFree(next));
  CHECK(aclrtFreeHost(host));
  CHECK(aclrtDestroyEvent(begin));
  CHECK(aclrtDestroyEvent(end));
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclshmem_finalize());
  CHECK(aclFinalize());
  return wrong != 0;
}
