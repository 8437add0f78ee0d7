/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of CANN's runtime that programs with kernels call around them, for the host device:
 * a device's memory is memory of the process, and a stream is a memspan_stream_t. Names, numbers
 * and arguments are CANN's. C (gnu99) or C++11; all are in this file, and link with -lshmem.
 *
 * All return 0, or another number for which aclGetRecentErrMsg() has a sentence. Thread-safe. A
 * null stream is the process's default one (memspan_stream_default()).
 */
#ifndef MEMSPAN_CANN_ACL_H
#define MEMSPAN_CANN_ACL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../memspan/memspan.h"
#include "../../memspan/stream.h"
#include "../../smem/host/smem.h"

typedef int aclError;
typedef void* aclrtStream;
typedef void* aclrtEvent;
typedef void* aclrtContext;

#define ACL_SUCCESS 0
#define ACL_ERROR_NONE 0
#define ACL_ERROR_INVALID_PARAM 100000
#define ACL_ERROR_BAD_ALLOC 200000
#define ACL_ERROR_INTERNAL_ERROR 500000
#define ACL_ERROR_RT_PARAM_INVALID 107000
#define ACL_ERROR_RT_STREAM_SYNC_TIMEOUT 507046

typedef enum aclrtMemcpyKind {
  ACL_MEMCPY_HOST_TO_HOST,
  ACL_MEMCPY_HOST_TO_DEVICE,
  ACL_MEMCPY_DEVICE_TO_HOST,
  ACL_MEMCPY_DEVICE_TO_DEVICE
} aclrtMemcpyKind;

typedef enum aclrtMemMallocPolicy {
  ACL_MEM_MALLOC_HUGE_FIRST,
  ACL_MEM_MALLOC_HUGE_ONLY,
  ACL_MEM_MALLOC_NORMAL_ONLY,
  ACL_MEM_MALLOC_HUGE_FIRST_P2P,
  ACL_MEM_MALLOC_HUGE_ONLY_P2P,
  ACL_MEM_MALLOC_NORMAL_ONLY_P2P
} aclrtMemMallocPolicy;

typedef enum aclrtEventRecordedStatus {
  ACL_EVENT_RECORDED_STATUS_NOT_READY = 0,
  ACL_EVENT_RECORDED_STATUS_COMPLETE = 1
} aclrtEventRecordedStatus;

#define ACL_EVENT_SYNC 0x00000001U
#define ACL_EVENT_TIME_LINE 0x00000008U
#define ACL_STREAM_FAST_LAUNCH 0x00000001U
#define ACL_STREAM_FAST_SYNC 0x00000002U

static inline const char* aclGetRecentErrMsg(void) {
  return memspan_last_error();
}
static inline const char* aclrtGetSocName(void) {
  return "memspan host device";
}

/* ---- Of this file ------------------------------------------------------------------------------
 */

/* The number that aclrtSetDevice() was given last; one for the process. */
#ifdef __cplusplus
extern "C" {
#endif
int32_t memspan_acl_device __attribute__((weak)) = 0;
#ifdef __cplusplus
}
#endif

static inline aclError memspan_acl_result(int32_t code) {
  if (code == 0) return ACL_SUCCESS;
  return code == SMEM_TIMEOUT ? ACL_ERROR_RT_STREAM_SYNC_TIMEOUT : ACL_ERROR_RT_PARAM_INVALID;
}
static inline memspan_stream_t memspan_acl_stream(aclrtStream stream) {
  return stream == NULL ? memspan_stream_default() : stream;
}
/* 0 when a place of `most` bytes holds `count`. */
static inline aclError memspan_acl_check(const char* call, const void* dst, size_t most,
                                         const void* src, size_t count) {
  char why[128];
  if (count > most) {
    snprintf(why, sizeof why, "invalid param, %zu bytes into a place of %zu", count, most);
    return memspan_keep_failure(call, ACL_ERROR_RT_PARAM_INVALID, why);
  }
  if (dst == NULL || src == NULL)
    return memspan_keep_failure(call, ACL_ERROR_RT_PARAM_INVALID,
                                "invalid param, an address is NULL");
  return ACL_SUCCESS;
}
static inline aclError memspan_acl_allocate(const char* call, void** address, size_t size) {
  /* As large copies like it, and as a device's memory is. */
  const size_t alignment = 512;
  if (address == NULL || size == 0)
    return memspan_keep_failure(call, ACL_ERROR_RT_PARAM_INVALID,
                                size == 0 ? "invalid param, size is 0; allowed are 1 and more"
                                          : "invalid param, the address's place is NULL");
  if (posix_memalign(address, alignment, size) == 0) return ACL_SUCCESS;
  *address = NULL;
  return memspan_keep_failure(call, ACL_ERROR_BAD_ALLOC, "the system has no more memory");
}

/* ---- The runtime and the device ----------------------------------------------------------------
 */

/* The path of a settings file is ignored. */
static inline aclError aclInit(const char* configPath) {
  (void)configPath;
  return ACL_SUCCESS;
}
static inline aclError aclFinalize(void) {
  return ACL_SUCCESS;
}
/* There is one device under every number from 0 on. */
static inline aclError aclrtSetDevice(int32_t deviceId) {
  if (deviceId < 0)
    return memspan_keep_failure("aclrtSetDevice", ACL_ERROR_RT_PARAM_INVALID,
                                "invalid param, deviceId is below 0");
  memspan_acl_device = deviceId;
  return ACL_SUCCESS;
}
static inline aclError aclrtResetDevice(int32_t deviceId) {
  (void)deviceId;
  return ACL_SUCCESS;
}
static inline aclError aclrtGetDevice(int32_t* deviceId) {
  if (deviceId == NULL)
    return memspan_keep_failure("aclrtGetDevice", ACL_ERROR_INVALID_PARAM,
                                "invalid param, deviceId is NULL");
  *deviceId = memspan_acl_device;
  return ACL_SUCCESS;
}
static inline aclError aclrtGetDeviceCount(uint32_t* count) {
  if (count == NULL)
    return memspan_keep_failure("aclrtGetDeviceCount", ACL_ERROR_INVALID_PARAM,
                                "invalid param, count is NULL");
  *count = 1;
  return ACL_SUCCESS;
}

/* ---- Memory ------------------------------------------------------------------------------------
 */

/* Aligned to 512 bytes. The policy is not used. */
static inline aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy policy) {
  (void)policy;
  return memspan_acl_allocate("aclrtMalloc", devPtr, size);
}
static inline aclError aclrtFree(void* devPtr) {
  free(devPtr);
  return ACL_SUCCESS;
}
static inline aclError aclrtMallocHost(void** hostPtr, size_t size) {
  return memspan_acl_allocate("aclrtMallocHost", hostPtr, size);
}
static inline aclError aclrtFreeHost(void* hostPtr) {
  free(hostPtr);
  return ACL_SUCCESS;
}
/* At once, whatever streams do. The kind is not used. */
static inline aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count,
                                   aclrtMemcpyKind kind) {
  (void)kind;
  const aclError failed = memspan_acl_check("aclrtMemcpy", dst, destMax, src, count);
  if (failed != ACL_SUCCESS) return failed;
  memmove(dst, src, count);
  return ACL_SUCCESS;
}
static inline aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) {
  const aclError failed = memspan_acl_check("aclrtMemset", devPtr, maxCount, devPtr, count);
  if (failed != ACL_SUCCESS) return failed;
  memset(devPtr, value, count);
  return ACL_SUCCESS;
}

/* ---- Streams -----------------------------------------------------------------------------------
 */

static inline aclError aclrtCreateStream(aclrtStream* stream) {
  return memspan_acl_result(memspan_stream_create(stream));
}
/* Neither the priority nor the flags are used. */
static inline aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority,
                                                   uint32_t flag) {
  (void)priority;
  (void)flag;
  return aclrtCreateStream(stream);
}
static inline aclError aclrtDestroyStream(aclrtStream stream) {
  return memspan_acl_result(memspan_stream_destroy(stream));
}
static inline aclError aclrtSynchronizeStream(aclrtStream stream) {
  return memspan_acl_result(memspan_stream_synchronize(memspan_acl_stream(stream), UINT32_MAX));
}
/* In milliseconds; -1: for as long as it takes. */
static inline aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
  return memspan_acl_result(memspan_stream_synchronize(
      memspan_acl_stream(stream), timeout < 0 ? UINT32_MAX : (uint32_t)timeout));
}
static inline aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count,
                                        aclrtMemcpyKind kind, aclrtStream stream) {
  (void)kind;
  const aclError failed = memspan_acl_check("aclrtMemcpyAsync", dst, destMax, src, count);
  if (failed != ACL_SUCCESS) return failed;
  return memspan_acl_result(memspan_stream_copy(memspan_acl_stream(stream), dst, src, count));
}
typedef struct {
  void* address;
  int value;
  size_t count;
} memspan_acl_fill;
static inline int32_t memspan_acl_do_fill(void* context) {
  const memspan_acl_fill* const fill = (const memspan_acl_fill*)context;
  memset(fill->address, fill->value, fill->count);
  free(context);
  return 0;
}
static inline aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count,
                                        aclrtStream stream) {
  const aclError failed = memspan_acl_check("aclrtMemsetAsync", devPtr, maxCount, devPtr, count);
  if (failed != ACL_SUCCESS) return failed;
  memspan_acl_fill* const fill = (memspan_acl_fill*)malloc(sizeof *fill);
  if (fill == NULL)
    return memspan_keep_failure("aclrtMemsetAsync", ACL_ERROR_BAD_ALLOC,
                                "the system has no more memory");
  fill->address = devPtr;
  fill->value = value;
  fill->count = count;
  const int32_t code = memspan_stream_call(memspan_acl_stream(stream), memspan_acl_do_fill, fill);
  if (code != 0) free(fill);
  return memspan_acl_result(code);
}

/* ---- Events ------------------------------------------------------------------------------------
 */

/* A place in a stream, and when it was reached. */
typedef struct {
  memspan_event_t place;
  double reached_ms;
} memspan_acl_event;

static inline aclError aclrtCreateEvent(aclrtEvent* event) {
  memspan_acl_event* const made = (memspan_acl_event*)calloc(1, sizeof *made);
  if (made == NULL)
    return memspan_keep_failure("aclrtCreateEvent", ACL_ERROR_BAD_ALLOC,
                                "the system has no more memory");
  const int32_t code = memspan_event_create(&made->place);
  if (code != 0) {
    free(made);
    return memspan_acl_result(code);
  }
  *event = made;
  return ACL_SUCCESS;
}
/* The flags are not used: every event has a time. */
static inline aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) {
  (void)flag;
  return aclrtCreateEvent(event);
}
/* Waits until its place is reached. */
static inline aclError aclrtDestroyEvent(aclrtEvent event) {
  memspan_acl_event* const made = (memspan_acl_event*)event;
  int32_t code = memspan_event_synchronize(made->place, UINT32_MAX);
  if (code == 0) code = memspan_event_destroy(made->place);
  if (code == 0) free(made);
  return memspan_acl_result(code);
}
static inline int32_t memspan_acl_note_time(void* context) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  ((memspan_acl_event*)context)->reached_ms = (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
  return 0;
}
static inline aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  memspan_acl_event* const made = (memspan_acl_event*)event;
  const memspan_stream_t given = memspan_acl_stream(stream);
  int32_t code = memspan_stream_call(given, memspan_acl_note_time, made);
  if (code == 0) code = memspan_event_record(made->place, given);
  return memspan_acl_result(code);
}
static inline aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  return memspan_acl_result(
      memspan_stream_wait_event(memspan_acl_stream(stream), ((memspan_acl_event*)event)->place));
}
static inline aclError aclrtSynchronizeEvent(aclrtEvent event) {
  return memspan_acl_result(
      memspan_event_synchronize(((memspan_acl_event*)event)->place, UINT32_MAX));
}
static inline aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status) {
  const int32_t code = memspan_event_query(((memspan_acl_event*)event)->place);
  if (code < 0) return memspan_acl_result(code);
  *status = code == 0 ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
  return ACL_SUCCESS;
}
/* In milliseconds, between the places of two events that have been reached. */
static inline aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent,
                                             aclrtEvent endEvent) {
  *ms = (float)(((memspan_acl_event*)endEvent)->reached_ms -
                ((memspan_acl_event*)startEvent)->reached_ms);
  return ACL_SUCCESS;
}

#endif
