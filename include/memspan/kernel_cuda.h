// SPDX-License-Identifier: Apache-2.0
// The primitives of <memspan/kernel_device.h> for CUDA, and the code that lets the library fill
// this translation unit's state. Programs include <memspan/kernel.h>, and are compiled by nvcc for
// compute capability 7.0 and up, where threads of a warp that wait do not stop each other. C++17.
//
// Atomics are cuda::atomic_ref of the toolkit: the memory model of C++ with a scope, kept right by
// the hardware's vendor; assembly would be needed for each type and width.
#ifndef MEMSPAN_KERNEL_CUDA_H
#define MEMSPAN_KERNEL_CUDA_H

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cuda/atomic>

#include "kernel_state.h"
#include "kernel_types.h"

#define MEMSPAN_KERNEL_FUNCTION __device__ __forceinline__
#define MEMSPAN_KERNEL_OUT_OF_LINE inline __device__ __noinline__

namespace memspan::kernel {

// One in each translation unit; the library fills all of them equally.
namespace {
__constant__ memspan_kernel_state this_units_state;
}  // namespace

namespace primitive {

MEMSPAN_KERNEL_FUNCTION const memspan_kernel_state& state() {
  return this_units_state;
}

MEMSPAN_KERNEL_FUNCTION unsigned block() {
  return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
}
MEMSPAN_KERNEL_FUNCTION unsigned blocks() {
  return gridDim.x * gridDim.y * gridDim.z;
}
MEMSPAN_KERNEL_FUNCTION unsigned thread() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
MEMSPAN_KERNEL_FUNCTION unsigned threads() {
  return blockDim.x * blockDim.y * blockDim.z;
}

template <Scope scope>
struct Group;

template <>
struct Group<Scope::kThread> {
  MEMSPAN_KERNEL_FUNCTION unsigned index() const { return 0; }
  MEMSPAN_KERNEL_FUNCTION unsigned size() const { return 1; }
  MEMSPAN_KERNEL_FUNCTION void sync() const {}
  MEMSPAN_KERNEL_FUNCTION std::uint64_t broadcast(std::uint64_t value) const { return value; }
};

// The last warp of a block may have fewer threads.
template <>
struct Group<Scope::kWarp> {
  MEMSPAN_KERNEL_FUNCTION unsigned index() const { return thread() % 32; }
  MEMSPAN_KERNEL_FUNCTION unsigned size() const {
    const unsigned rest = threads() - thread() / 32 * 32;
    return rest < 32 ? rest : 32;
  }
  MEMSPAN_KERNEL_FUNCTION unsigned mask() const { return 0xffffffffU >> (32 - size()); }
  MEMSPAN_KERNEL_FUNCTION void sync() const { __syncwarp(mask()); }
  MEMSPAN_KERNEL_FUNCTION std::uint64_t broadcast(std::uint64_t value) const {
    return __shfl_sync(mask(), value, 0);
  }
};

template <>
struct Group<Scope::kBlock> {
  MEMSPAN_KERNEL_FUNCTION unsigned index() const { return thread(); }
  MEMSPAN_KERNEL_FUNCTION unsigned size() const { return threads(); }
  MEMSPAN_KERNEL_FUNCTION void sync() const { __syncthreads(); }
  MEMSPAN_KERNEL_FUNCTION std::uint64_t broadcast(std::uint64_t value) const {
    __shared__ std::uint64_t given;
    __syncthreads();  // no thread still reads the previous value
    if (index() == 0) given = value;
    __syncthreads();
    return given;
  }
};

template <typename T>
using Atomic = cuda::atomic_ref<T, cuda::thread_scope_system>;

template <typename T>
MEMSPAN_KERNEL_FUNCTION T load_relaxed(const T* word) {
  return Atomic<T>(*const_cast<T*>(word)).load(cuda::memory_order_relaxed);
}
template <typename T>
MEMSPAN_KERNEL_FUNCTION T load_acquire(const T* word) {
  return Atomic<T>(*const_cast<T*>(word)).load(cuda::memory_order_acquire);
}
template <typename T>
MEMSPAN_KERNEL_FUNCTION void store_relaxed(T* word, T value) {
  Atomic<T>(*word).store(value, cuda::memory_order_relaxed);
}
template <typename T>
MEMSPAN_KERNEL_FUNCTION void store_release(T* word, T value) {
  Atomic<T>(*word).store(value, cuda::memory_order_release);
}
template <typename T>
MEMSPAN_KERNEL_FUNCTION T exchange(T* word, T value) {
  return Atomic<T>(*word).exchange(value, cuda::memory_order_acq_rel);
}
template <typename T>
MEMSPAN_KERNEL_FUNCTION T compare_exchange(T* word, T expected, T value) {
  Atomic<T>(*word).compare_exchange_strong(expected, value, cuda::memory_order_acq_rel);
  return expected;
}
template <typename T>
MEMSPAN_KERNEL_FUNCTION T add(T* word, T value) {
  return Atomic<T>(*word).fetch_add(value, cuda::memory_order_acq_rel);
}
template <typename T>
MEMSPAN_KERNEL_FUNCTION T bit_and(T* word, T value) {
  return Atomic<T>(*word).fetch_and(value, cuda::memory_order_acq_rel);
}
template <typename T>
MEMSPAN_KERNEL_FUNCTION T bit_or(T* word, T value) {
  return Atomic<T>(*word).fetch_or(value, cuda::memory_order_acq_rel);
}
template <typename T>
MEMSPAN_KERNEL_FUNCTION T bit_xor(T* word, T value) {
  return Atomic<T>(*word).fetch_xor(value, cuda::memory_order_acq_rel);
}
MEMSPAN_KERNEL_FUNCTION void fence() {
  __threadfence_system();
}
MEMSPAN_KERNEL_FUNCTION std::uint64_t take_ticket(std::uint64_t* counter) {
  return cuda::atomic_ref<std::uint64_t, cuda::thread_scope_device>(*counter).fetch_add(
      1, cuda::memory_order_relaxed);
}
MEMSPAN_KERNEL_FUNCTION void pause() {
  __nanosleep(100);
}
// Reads a clock that all threads of the device share.
MEMSPAN_KERNEL_FUNCTION std::uint64_t nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// The launch fails with cudaErrorAssert, after a line with the call and the reason.
MEMSPAN_KERNEL_OUT_OF_LINE void end(const char* call, const char* why) {
  __assert_fail(why, "memspan/kernel.h", 0, call);
}

MEMSPAN_KERNEL_FUNCTION void sync_block() {
  __syncthreads();
}
MEMSPAN_KERNEL_FUNCTION void sync_grid(const char* call) {
  if (blocks() == 1) return __syncthreads();
  const auto grid = cooperative_groups::this_grid();
  if (!grid.is_valid()) end(call, "the grid was not launched by memspan::launch as a resident one");
  grid.sync();
}

}  // namespace primitive

namespace {

// Registers this translation unit with the library, from before main until its end.
class ThisUnit {
 public:
  ThisUnit() { memspan_kernel_register_unit(&unit_); }
  ~ThisUnit() { memspan_kernel_unregister_unit(&unit_); }
  ThisUnit(const ThisUnit&) = delete;
  ThisUnit& operator=(const ThisUnit&) = delete;

 private:
  static const char* text_of(cudaError_t result) {
    // At the program's end the runtime may have gone first, and all that is given back with it.
    if (result == cudaSuccess || result == cudaErrorCudartUnloading) return nullptr;
    cudaGetLastError();  // the program's next look finds only its own failures
    return cudaGetErrorString(result);
  }
  static const char* map(void* memory, std::size_t bytes) {
    const cudaError_t result =
        cudaHostRegister(memory, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
    if (result != cudaErrorHostMemoryAlreadyRegistered && result != cudaSuccess)
      return text_of(result);
    cudaGetLastError();
    void* on_device = nullptr;
    const char* const failure = text_of(cudaHostGetDevicePointer(&on_device, memory, 0));
    if (failure != nullptr) return failure;
    return on_device == memory ? nullptr : "the device has host memory at other addresses";
  }
  static void unmap(void* memory) { text_of(cudaHostUnregister(memory)); }
  static const char* allocate(void** memory, std::size_t bytes) {
    const char* const failure = text_of(cudaMalloc(memory, bytes));
    return failure != nullptr ? failure : text_of(cudaMemset(*memory, 0, bytes));
  }
  static void release(void* memory) { text_of(cudaFree(memory)); }
  static int has_native_atomics() {
    int device = 0;
    int is_native = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&is_native, cudaDevAttrHostNativeAtomicSupported, device) !=
            cudaSuccess)
      return 0;
    return is_native;
  }
  static const char* set_state(const memspan_kernel_state* state) {
    return text_of(cudaMemcpyToSymbol(this_units_state, state, sizeof *state));
  }

  memspan_kernel_unit unit_{MEMSPAN_KERNEL_STATE_VERSION, map,       unmap,  allocate, release,
                            has_native_atomics,           set_state, nullptr};
};
ThisUnit this_unit;

}  // namespace

}  // namespace memspan::kernel

#endif  // MEMSPAN_KERNEL_CUDA_H
