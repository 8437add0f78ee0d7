// SPDX-License-Identifier: Apache-2.0
// Streams, events and memory of CUDA.
#pragma once

#include <cuda_runtime.h>
#include <memspan/launch.h>
#include <memspan/memspan.h>
#include <shmem.h>

#include <cstdint>
#include <cstdio>

namespace example {

namespace k = memspan::kernel;

constexpr unsigned kThreads = 64;  // of a block

[[noreturn]] inline void fail(const char* what, const char* why) {
  std::fprintf(stderr, "%s: %s\n", what, why);
  shmem_global_exit(1);
  __builtin_unreachable();
}
inline void require(std::int32_t code) {
  if (code != 0) fail("failed", memspan_last_error());
}
inline void require(cudaError_t result) {
  if (result != cudaSuccess) fail("CUDA", cudaGetErrorString(result));
}

inline void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  require(cudaMallocManaged(&memory, bytes));
  return memory;
}
inline void release(void* memory) {
  require(cudaFree(memory));
}

class Event {
 public:
  Event() { require(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
  ~Event() { require(cudaEventDestroy(event_)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class Stream {
 public:
  Stream() { require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Stream() { require(cudaStreamDestroy(stream_)); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  template <typename Kernel, typename... Arguments>
  void launch(unsigned blocks, Kernel kernel, Arguments... arguments) {
    require(memspan::launch(stream_, memspan::Grid{blocks, kThreads}, kernel, arguments...));
  }
  void record(const Event& event) { require(cudaEventRecord(event.get(), stream_)); }
  void wait(const Event& event) { require(cudaStreamWaitEvent(stream_, event.get(), 0)); }
  void synchronize() { require(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace example
