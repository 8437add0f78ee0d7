/* SPDX-License-Identifier: Apache-2.0
 * What a program does with a GPU of its own, for C tests on the stand-in of the CUDA driver (or on
 * a driver): memory of its own, copies and streams. Include support/check.h first. */
#ifndef MEMSPAN_TESTS_SUPPORT_GPU_H
#define MEMSPAN_TESTS_SUPPORT_GPU_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

static inline void* gpu_function(const char* name) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  CHECK(library != NULL);
  void* function = dlsym(library, name);
  CHECK(function != NULL);
  return function;
}

/* A function that only the stand-in has; NULL on a driver. */
static inline void* gpu_standin_function(const char* name) {
  return dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
}

/* Makes device 0 the calling thread's. */
static inline void use_gpu(void) {
  int (*init)(unsigned) = (int (*)(unsigned))gpu_function("cuInit");
  int (*retain)(void**, int) = (int (*)(void**, int))gpu_function("cuDevicePrimaryCtxRetain");
  int (*push)(void*) = (int (*)(void*))gpu_function("cuCtxPushCurrent_v2");
  void* context = NULL;
  CHECK(init(0) == 0);
  CHECK(retain(&context, 0) == 0);
  CHECK(push(context) == 0);
}

static inline char* gpu_alloc(size_t bytes) {
  int (*alloc)(uintptr_t*, size_t) = (int (*)(uintptr_t*, size_t))gpu_function("cuMemAlloc_v2");
  uintptr_t at = 0;
  CHECK(alloc(&at, bytes) == 0);
  return (char*)at;
}

static inline int gpu_free(char* at) {
  int (*give_back)(uintptr_t) = (int (*)(uintptr_t))gpu_function("cuMemFree_v2");
  return give_back((uintptr_t)at) == 0;
}

/* How much of the device is free. */
static inline size_t gpu_free_bytes(void) {
  int (*info)(size_t*, size_t*) = (int (*)(size_t*, size_t*))gpu_function("cuMemGetInfo_v2");
  size_t free_bytes = 0, all = 0;
  CHECK(info(&free_bytes, &all) == 0);
  return free_bytes;
}

/* ---- by the virtual-memory calls, as PyTorch makes its expandable segments */

enum { GPU_NOT_SHAREABLE = 0, GPU_SHAREABLE = 1 };

/* CUmemAllocationProp */
struct gpu_properties {
  int kind, shareable_as, where, device;
  void* unused;
  unsigned char flags[8];
};

/* One more allocation at reserved addresses, which nobody has a handle of then. */
static inline void gpu_map_at(char* at, size_t bytes, int shareable_as) {
  int (*create)(unsigned long long*, size_t, const struct gpu_properties*, unsigned long long) =
      (int (*)(unsigned long long*, size_t, const struct gpu_properties*,
               unsigned long long))gpu_function("cuMemCreate");
  int (*map)(uintptr_t, size_t, size_t, unsigned long long, unsigned long long) = (int (*)(
      uintptr_t, size_t, size_t, unsigned long long, unsigned long long))gpu_function("cuMemMap");
  int (*allow)(uintptr_t, size_t, const int*, size_t) =
      (int (*)(uintptr_t, size_t, const int*, size_t))gpu_function("cuMemSetAccess");
  int (*release)(unsigned long long) = (int (*)(unsigned long long))gpu_function("cuMemRelease");
  const struct gpu_properties properties = {1, shareable_as, 1, 0, NULL, {0}};
  const int access[3] = {1, 0, 3};
  unsigned long long handle = 0;
  CHECK(create(&handle, bytes, &properties, 0) == 0);
  CHECK(map((uintptr_t)at, bytes, 0, handle, 0) == 0);
  CHECK(allow((uintptr_t)at, bytes, access, 1) == 0);
  CHECK(release(handle) == 0);
}

static inline char* gpu_reserve(size_t bytes) {
  int (*reserve)(uintptr_t*, size_t, size_t, uintptr_t, unsigned long long) =
      (int (*)(uintptr_t*, size_t, size_t, uintptr_t, unsigned long long))gpu_function(
          "cuMemAddressReserve");
  uintptr_t at = 0;
  CHECK(reserve(&at, bytes, 0, 0, 0) == 0);
  return (char*)at;
}

/* `count` allocations side by side. */
static inline char* gpu_map(size_t count, size_t bytes, int shareable_as) {
  char* at = gpu_reserve(count * bytes);
  for (size_t i = 0; i < count; ++i) gpu_map_at(at + i * bytes, bytes, shareable_as);
  return at;
}

/* ---- of asynchronous pools */

/* CUmemPoolProps */
struct gpu_pool_properties {
  int kind, shareable_as, where, device;
  void* unused;
  size_t most_bytes;
  unsigned char rest[56];
};

static inline char* gpu_alloc_of_new_pool(size_t bytes, int shareable_as) {
  int (*create)(void**, const struct gpu_pool_properties*) =
      (int (*)(void**, const struct gpu_pool_properties*))gpu_function("cuMemPoolCreate");
  int (*alloc)(uintptr_t*, size_t, void*, void*) =
      (int (*)(uintptr_t*, size_t, void*, void*))gpu_function("cuMemAllocFromPoolAsync");
  const struct gpu_pool_properties properties = {1, shareable_as, 1, 0, NULL, 0, {0}};
  void* pool = NULL;
  uintptr_t at = 0;
  CHECK(create(&pool, &properties) == 0);
  CHECK(alloc(&at, bytes, pool, NULL) == 0);
  return (char*)at;
}

static inline char* gpu_alloc_async(size_t bytes) {
  int (*alloc)(uintptr_t*, size_t, void*) =
      (int (*)(uintptr_t*, size_t, void*))gpu_function("cuMemAllocAsync");
  uintptr_t at = 0;
  CHECK(alloc(&at, bytes, NULL) == 0);
  return (char*)at;
}

static inline int gpu_synchronize(void* stream) {
  int (*synchronize)(void*) = (int (*)(void*))gpu_function("cuStreamSynchronize");
  return synchronize(stream);
}

/* Between any two addresses, as the driver's copies are. A copy from ordinary memory returns when
 * the driver has taken the bytes; they are at the device, for other processes too, when the default
 * stream is synchronized. */
static inline int gpu_copies(void* to, const void* from, size_t bytes) {
  int (*copy)(uintptr_t, uintptr_t, size_t) =
      (int (*)(uintptr_t, uintptr_t, size_t))gpu_function("cuMemcpy");
  return copy((uintptr_t)to, (uintptr_t)from, bytes) == 0 && gpu_synchronize(NULL) == 0;
}

static inline void* gpu_stream(void) {
  int (*create)(void**, unsigned) = (int (*)(void**, unsigned))gpu_function("cuStreamCreate");
  void* stream = NULL;
  CHECK(create(&stream, 1) == 0);
  return stream;
}

/* The stream calls it behind what it was given before. */
static inline void gpu_call(void* stream, void (*function)(void*), void* data) {
  int (*launch)(void*, void (*)(void*), void*) =
      (int (*)(void*, void (*)(void*), void*))gpu_function("cuLaunchHostFunc");
  CHECK(launch(stream, function, data) == 0);
}

#endif
