// SPDX-License-Identifier: Apache-2.0
// The stand-in's start, devices and contexts.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "standin.h"

namespace memspan::cuda {
struct ContextObject {
  Ordinal device;
};
}  // namespace memspan::cuda

namespace standin {
namespace {

constexpr int kMostDevices = 16;
constexpr ResultCode kNotStarted = 3;

std::atomic<pid_t> started_in{0};
ContextObject contexts[kMostDevices];

// A thread's contexts, the last one current. Without a destructor: a process that exits uses them
// after those of its main thread's variables.
struct Stack {
  ContextHandle all[16];
  int depth;
};
thread_local Stack current;

}  // namespace

thread_local bool is_in_call_of_stream = false;

int devices() {
  const char* text = std::getenv("MEMSPAN_TEST_CUDA_DEVICES");
  return text == nullptr ? 1 : std::atoi(text);
}

ResultCode check(Needs needs) {
  if (started_in.load() != getpid()) return kNotStarted;
  if (is_in_call_of_stream) return kNotPermitted;
  return needs == Needs::kContext && current.depth == 0 ? kInvalidContext : kSuccess;
}

Ordinal current_device() {
  return current.depth == 0 ? -1 : current.all[current.depth - 1]->device;
}

}  // namespace standin

using namespace standin;

STANDIN_EXPORT ResultCode cuInit(unsigned flags) {
  if (flags != 0) return kInvalidValue;
  if (devices() == 0) return kNoDevice;
  pid_t none = 0;
  const bool is_first = started_in.compare_exchange_strong(none, getpid());
  return is_first || none == getpid() ? kSuccess : kNotStarted;
}

STANDIN_EXPORT ResultCode cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}

STANDIN_EXPORT ResultCode cuGetErrorName(ResultCode error, const char** name) {
  switch (error) {
    case kSuccess:
      *name = "CUDA_SUCCESS";
      break;
    case kInvalidValue:
      *name = "CUDA_ERROR_INVALID_VALUE";
      break;
    case kOutOfDeviceMemory:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      break;
    case kNotStarted:
      *name = "CUDA_ERROR_NOT_INITIALIZED";
      break;
    case kNoDevice:
      *name = "CUDA_ERROR_NO_DEVICE";
      break;
    case kInvalidDevice:
      *name = "CUDA_ERROR_INVALID_DEVICE";
      break;
    case kInvalidContext:
      *name = "CUDA_ERROR_INVALID_CONTEXT";
      break;
    case kNotPermitted:
      *name = "CUDA_ERROR_NOT_PERMITTED";
      break;
    case kNotReady:
      *name = "CUDA_ERROR_NOT_READY";
      break;
    default:
      *name = nullptr;
      return kInvalidValue;
  }
  return kSuccess;
}

STANDIN_EXPORT ResultCode cuGetErrorString(ResultCode /*error*/, const char** text) {
  *text = "says the stand-in of the driver";
  return kSuccess;
}

STANDIN_EXPORT ResultCode cuDeviceGetCount(int* count) {
  *count = devices();
  return check(Needs::kDriver);
}

STANDIN_EXPORT ResultCode cuDeviceGet(Ordinal* device, int ordinal) {
  if (ordinal < 0 || ordinal >= devices()) return kInvalidDevice;
  *device = ordinal;
  return check(Needs::kDriver);
}

STANDIN_EXPORT ResultCode cuDeviceGetName(char* name, int bytes, Ordinal device) {
  std::snprintf(name, static_cast<std::size_t>(bytes), "stand-in %d", device);
  return check(Needs::kDriver);
}

STANDIN_EXPORT ResultCode cuDeviceGetAttribute(int* value, int attribute, Ordinal /*device*/) {
  *value = attribute == kHasUnifiedAddresses || attribute == kHasVirtualMemory ||
           attribute == kExportsDescriptors;
  return check(Needs::kDriver);
}

STANDIN_EXPORT ResultCode cuDevicePrimaryCtxRetain(ContextHandle* context, Ordinal device) {
  if (device < 0 || device >= devices()) return kInvalidDevice;
  contexts[device].device = device;
  *context = &contexts[device];
  return check(Needs::kDriver);
}

STANDIN_EXPORT ResultCode cuCtxGetCurrent(ContextHandle* context) {
  *context = current.depth == 0 ? nullptr : current.all[current.depth - 1];
  return check(Needs::kDriver);
}

STANDIN_EXPORT ResultCode cuCtxPushCurrent_v2(ContextHandle context) {
  if (const ResultCode result = check(Needs::kDriver); result != kSuccess) return result;
  if (current.depth == static_cast<int>(std::size(current.all))) return kOutOfDeviceMemory;
  current.all[current.depth++] = context;
  return kSuccess;
}

STANDIN_EXPORT ResultCode cuCtxPopCurrent_v2(ContextHandle* context) {
  if (const ResultCode result = check(Needs::kContext); result != kSuccess) return result;
  *context = current.all[current.depth - 1];
  --current.depth;
  return kSuccess;
}

STANDIN_EXPORT ResultCode cuCtxGetDevice(Ordinal* device) {
  *device = current_device();
  return check(Needs::kContext);
}
