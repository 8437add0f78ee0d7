// SPDX-License-Identifier: Apache-2.0
// An all-gather in AscendC. Half of the blocks bring this PE's elements piece by piece into the
// window that all PEs see, and say in a word of their own how many pieces are there; the others
// look at the words of all PEs and fetch what has come. Pieces go through the block's buffer.
#include "all_gather_kernel.h"
#include "kernel_operator.h"
#include "acl/acl.h"
#include "shmem.h"

#include "opdev/bfloat16.h"
#include "opdev/fp16_t.h"

using namespace AscendC;

namespace {

constexpr uint32_t PIECE_BYTES = 64 * 1024;
constexpr int64_t WORDS_APART = 16;

template <typename T>
struct Part {
  int64_t first, elements;
};

template <typename T>
ACLSHMEM_DEVICE Part<T> part_of(int64_t elements, int64_t index, int64_t parts) {
  const int64_t each = elements / parts;
  return {index * each, index == parts - 1 ? elements - index * each : each};
}

template <typename T>
ACLSHMEM_DEVICE void bring(__gm__ T* window, __gm__ int32_t* word, __gm__ T* input, Part<T> part,
                           int32_t before) {
  constexpr int64_t piece = PIECE_BYTES / sizeof(T);
  __ubuf__ T* through = (__ubuf__ T*)(1024);
  int32_t pieces = 0;
  for (int64_t at = 0; at < part.elements; at += piece) {
    const int64_t count = at + piece < part.elements ? piece : part.elements - at;
    aclshmemx_mte_put_nbi(window + part.first + at, input + part.first + at, through, PIECE_BYTES,
                          static_cast<uint32_t>(count), aclshmem_my_pe(), EVENT_ID0);
    SetFlag<HardEvent::MTE3_S>(EVENT_ID0);
    WaitFlag<HardEvent::MTE3_S>(EVENT_ID0);
    aclshmem_quiet();
    aclshmemx_signal_op(word, before + ++pieces, ACLSHMEM_SIGNAL_SET, aclshmem_my_pe());
  }
}

template <typename T>
ACLSHMEM_DEVICE void fetch(__gm__ T* output, __gm__ T* window, __gm__ int32_t* words,
                           int64_t elements, int64_t bringers, int pe, int32_t before) {
  constexpr int64_t piece = PIECE_BYTES / sizeof(T);
  // In the block's buffer: how many pieces of each bringer are here, and what its word says.
  __ubuf__ int32_t* here = (__ubuf__ int32_t*)(0);
  __ubuf__ int32_t* there = (__ubuf__ int32_t*)(512);
  __ubuf__ T* through = reinterpret_cast<__ubuf__ T*>(uint64_t(1024));
  for (int64_t i = 0; i < bringers; ++i) here[i] = 0;
  bool done = false;
  while (!done) {
    done = true;
    for (int64_t i = 0; i < bringers; ++i) {
      const Part<T> part = part_of<T>(elements, i, bringers);
      const int64_t pieces = (part.elements + piece - 1) / piece;
      if (*(here + i) == pieces) continue;
      done = false;
      aclshmem_int32_get_nbi(there + i, words + i * WORDS_APART, 1, pe);
      PipeBarrier<PIPE_ALL>();
      for (int32_t ready = there[i] - before; here[i] < ready && here[i] < pieces; ++here[i]) {
        const int64_t at = here[i] * piece;
        const int64_t count = at + piece < part.elements ? piece : part.elements - at;
        aclshmemx_mte_get_nbi(output + part.first + at, window + part.first + at, through,
                              PIECE_BYTES, static_cast<uint32_t>(count), pe, EVENT_ID1);
      }
    }
  }
}

}  // namespace

#define ALL_GATHER(type)                                                                         \
  extern "C" [[bisheng::core_ratio(0, 1)]] __global__ __aicore__ void AllGather_##type(          \
      uint64_t ffts, GM_ADDR input, GM_ADDR output, GM_ADDR window, int elements, int round) {   \
    util_set_ffts_config(ffts);                                                                  \
    const int64_t bringers = GetBlockNum() / 2;                                                  \
    const int64_t index = GetBlockIdx();                                                         \
    __gm__ int32_t* words = (__gm__ int32_t*)window;                                             \
    __gm__ type* data = (__gm__ type*)(words + bringers * WORDS_APART);                          \
    const int32_t before = round << 16;                                                          \
    if (index < bringers) {                                                                      \
      bring(data, words + index * WORDS_APART, (__gm__ type*)input,                              \
            part_of<type>(elements, index, bringers), before);                                   \
    } else {                                                                                     \
      const int64_t fetchers = GetBlockNum() - bringers;                                         \
      for (int pe = index - bringers; pe < aclshmem_n_pes(); pe += fetchers)                     \
        fetch((__gm__ type*)output + int64_t(pe) * elements, data, words, elements, bringers, pe, \
              before);                                                                           \
    }                                                                                            \
    aclshmem_barrier_all();                                                                      \
  }

ALL_GATHER(int32_t);
ALL_GATHER(float16_t);
ALL_GATHER(bfloat16_t);

template <>
void all_gather<int32_t>(uint32_t blocks, void* stream, uint64_t ffts, uint8_t* input,
                         uint8_t* output, uint8_t* window, int elements, int round) {
  AllGather_int32_t<<<blocks, nullptr, stream>>>(ffts, input, output, window, elements, round);
}
template <>
void all_gather<op::fp16_t>(uint32_t blocks, void* stream, uint64_t ffts, uint8_t* input,
                            uint8_t* output, uint8_t* window, int elements, int round) {
  AllGather_float16_t<<<blocks, nullptr, stream>>>(ffts, input, output, window, elements, round);
}
template <>
void all_gather<op::bfloat16>(uint32_t blocks, void* stream, uint64_t ffts, uint8_t* input,
                              uint8_t* output, uint8_t* window, int elements, int round) {
  AllGather_bfloat16_t<<<blocks, nullptr, stream>>>(ffts, input, output, window, elements, round);
}
