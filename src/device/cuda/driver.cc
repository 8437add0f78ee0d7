// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "core/environment.h"

namespace memspan::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";
constexpr std::string_view kNumbered = "cuda:";

// The driver has no name and no text for a number that it does not know.
Status failure(const Functions& functions, std::string_view what, ResultCode result) {
  if (result == kSuccess) return Status::ok();
  const char* name = nullptr;
  const char* text = nullptr;
  functions.error_name(result, &name);
  functions.error_string(result, &text);
  const std::string story =
      name == nullptr ? fmt::format("{}: error {} of the CUDA driver", what, result)
                      : fmt::format("{}: {} ({})", what, name, text == nullptr ? "" : text);
  switch (result) {
    case kOutOfDeviceMemory:
      return {Code::kOutOfMemory, story};
    case kInvalidValue:
    case kInvalidDevice:
      return {Code::kInvalidArgument, story};
    case kNotSupportedByDevice:
      return {Code::kNotSupported, story};
    case kNoDevice:
      return {Code::kUnavailable, story};
    default:
      return {Code::kSystem, story};
  }
}

Status find(void* library, const char* symbol, void** function) {
  *function = dlsym(library, symbol);
  if (*function != nullptr) return Status::ok();
  return {Code::kNotSupported,
          fmt::format("the CUDA driver here ({}) is too old: it has no {}", kLibrary, symbol)};
}

MEMSPAN_REMEDY(kNoCudaDriver, "no-cuda-driver",
               "MEMSPAN_DEVICE=cuda needs the CUDA driver (libcuda.so.1) and a GPU.",
               "Make `nvidia-smi` list a GPU (docker run --gpus all), or unset MEMSPAN_DEVICE.");

Result<const Functions*> load() {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return Status(Code::kNotSupported,
                  fmt::format("no CUDA driver: {} cannot be loaded{}", kLibrary, kNoCudaDriver));
  Functions functions;
#define MEMSPAN_CUDA_FIND(name, symbol, parameters) \
  MEMSPAN_PASS(find(library, #symbol, reinterpret_cast<void**>(&functions.name)));
  MEMSPAN_CUDA_DRIVER_FUNCTIONS(MEMSPAN_CUDA_FIND)
#undef MEMSPAN_CUDA_FIND
#define MEMSPAN_CUDA_LOOK(name, symbol, parameters) \
  functions.name = reinterpret_cast<ResultCode(*) parameters>(dlsym(library, #symbol));
  MEMSPAN_CUDA_LATER_FUNCTIONS(MEMSPAN_CUDA_LOOK)
#undef MEMSPAN_CUDA_LOOK
  int devices = 0;
  ResultCode result = functions.init(0);
  if (result == kSuccess) result = functions.device_count(&devices);
  if (result != kSuccess)
    return Status(Code::kUnavailable,
                  failure(functions, "starting the CUDA driver", result).message());
  if (devices == 0)
    return Status(Code::kUnavailable,
                  std::string("the CUDA driver finds no device") + kNoCudaDriver);
  return new Functions(functions);
}

// The device of the caller's context; nullopt without a context.
std::optional<Ordinal> current_device(const Functions& functions) {
  ContextHandle context = nullptr;
  Ordinal ordinal = 0;
  if (functions.context_get_current(&context) != kSuccess || context == nullptr ||
      functions.context_get_device(&ordinal) != kSuccess)
    return std::nullopt;
  return ordinal;
}

Status check_abilities(const Functions& functions, Ordinal ordinal) {
  for (const auto& [attribute, what] :
       {std::pair{kHasUnifiedAddresses, "a unified address space"},
        std::pair{kHasVirtualMemory, "virtual memory management"},
        std::pair{kExportsDescriptors, "memory that descriptors share"}}) {
    int has = 0;
    MEMSPAN_PASS(failure(functions, fmt::format("asking CUDA device {} for its abilities", ordinal),
                         functions.device_attribute(&has, attribute, ordinal)));
    if (has == 0)
      return {Code::kNotSupported, fmt::format("CUDA device {} has no {}", ordinal, what)};
  }
  return Status::ok();
}

// N of MEMSPAN_DEVICE=cuda:N, else the device of the caller's context, else 0.
Result<Ordinal> wanted_device(const Functions& functions, int devices) {
  const std::string text = environment_or("MEMSPAN_DEVICE", "");
  if (!text.starts_with(kNumbered)) return current_device(functions).value_or(0);
  MEMSPAN_TRY_ASSIGN(const std::int64_t number,
                     parse_integer("the number of the GPU in MEMSPAN_DEVICE",
                                   std::string_view(text).substr(kNumbered.size()), 0, devices - 1),
                     "choosing a CUDA device");
  return static_cast<Ordinal>(number);
}

}  // namespace

Result<const Functions*> driver() {
  static const auto& functions = *new Result<const Functions*>(load());
  return functions;
}

Status from_cuda(std::string_view what, ResultCode result) {
  return failure(*driver().value(), what, result);
}

Result<Device> device() {
  MEMSPAN_TRY_ASSIGN(const Functions* functions, driver(), "choosing a CUDA device");
  int devices = 0;
  MEMSPAN_PASS(from_cuda("counting CUDA devices", functions->device_count(&devices)));
  MEMSPAN_PASS_ASSIGN(const Ordinal number, wanted_device(*functions, devices));
  Device device{functions, 0, nullptr};
  MEMSPAN_PASS(from_cuda(fmt::format("finding CUDA device {}", number),
                         functions->device_get(&device.ordinal, number)));
  MEMSPAN_PASS(check_abilities(*functions, device.ordinal));
  MEMSPAN_PASS(from_cuda(fmt::format("taking the context of CUDA device {}", number),
                         functions->primary_context_retain(&device.context, device.ordinal)));
  return device;
}

Result<std::string> describe_devices() {
  MEMSPAN_PASS_ASSIGN(const Functions* const functions, driver());
  const Functions& cuda = *functions;
  int devices = 0, version = 0;
  MEMSPAN_PASS(from_cuda("counting CUDA devices", cuda.device_count(&devices)));
  MEMSPAN_PASS(from_cuda("asking for the CUDA driver's version", cuda.driver_version(&version)));
  MEMSPAN_PASS_ASSIGN(const Ordinal number, wanted_device(cuda, devices));
  char name[128] = "";
  MEMSPAN_PASS(from_cuda(fmt::format("asking CUDA device {} for its name", number),
                         cuda.device_name(name, sizeof name, number)));
  MEMSPAN_PASS(check_abilities(cuda, number));
  return fmt::format("{} (device {} of {}, driver {}.{})", name, number, devices, version / 1000,
                     version % 1000 / 10);
}

Result<CurrentContext> CurrentContext::of(const Device& device) {
  MEMSPAN_PASS(from_cuda(fmt::format("using CUDA device {}", device.ordinal),
                         device.functions->context_push_current(device.context)));
  return CurrentContext(*device.functions);
}

CurrentContext::~CurrentContext() {
  ContextHandle ours = nullptr;
  if (functions_ != nullptr) functions_->context_pop_current(&ours);
}

}  // namespace memspan::cuda
