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

/* Between any two addresses, as the driver's copies are. */
static inline int gpu_copies(void* to, const void* from, size_t bytes) {
  int (*copy)(uintptr_t, uintptr_t, size_t) =
      (int (*)(uintptr_t, uintptr_t, size_t))gpu_function("cuMemcpy");
  return copy((uintptr_t)to, (uintptr_t)from, bytes) == 0;
}

static inline void* gpu_stream(void) {
  int (*create)(void**, unsigned) = (int (*)(void**, unsigned))gpu_function("cuStreamCreate");
  void* stream = NULL;
  CHECK(create(&stream, 1) == 0);
  return stream;
}

static inline int gpu_synchronize(void* stream) {
  int (*synchronize)(void*) = (int (*)(void*))gpu_function("cuStreamSynchronize");
  return synchronize(stream);
}

/* The stream calls it behind what it was given before. */
static inline void gpu_call(void* stream, void (*function)(void*), void* data) {
  int (*launch)(void*, void (*)(void*), void*) =
      (int (*)(void*, void (*)(void*), void*))gpu_function("cuLaunchHostFunc");
  CHECK(launch(stream, function, data) == 0);
}

#endif
