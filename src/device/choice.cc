// SPDX-License-Identifier: Apache-2.0
#include "device/choice.h"

#include <fmt/format.h>

#include "core/environment.h"
#include "device/cuda/cuda_device.h"
#include "device/host/copy.h"
#include "device/reservation.h"

namespace memspan::inline device {
namespace {

// Its memory is pages (core/pages.h) in a reservation.
class HostDevice final : public Device {
 public:
  std::string_view name() const override { return "host"; }
  bool is_host() const override { return true; }

  Result<std::unique_ptr<DeviceRange>> reserve_at(std::size_t bytes, void* wanted) override {
    MEMSPAN_PASS_ASSIGN(auto made, Reservation::make_at(bytes, wanted));
    return std::unique_ptr<DeviceRange>(new Reservation(std::move(made)));
  }
  Result<std::unique_ptr<DeviceMemory>> allocate(std::size_t bytes, const char* label) override {
    return memory_of(Pages::create(bytes, label));
  }
  Result<std::unique_ptr<DeviceMemory>> adopt(Fd descriptor) override {
    return memory_of(Pages::adopt(std::move(descriptor)));
  }

  Status copy(void* to, const void* from, std::size_t bytes) override {
    copy_bytes(to, from, bytes);
    return Status::ok();
  }

 private:
  static Result<std::unique_ptr<DeviceMemory>> memory_of(Result<Pages> pages) {
    if (!pages.is_ok()) return pages.status();
    return std::unique_ptr<DeviceMemory>(new HostMemory(std::move(pages).value()));
  }
};

constexpr const char* kHost = "host";

std::string chosen_word() {
  return environment_or("MEMSPAN_DEVICE", kHost);
}

}  // namespace

Device& host_device() {
  static HostDevice& device = *new HostDevice;
  return device;
}

Result<Device*> chosen_device() {
  const std::string word = chosen_word();
  if (word == kHost) return &host_device();
  if (word == "cuda" || word.starts_with("cuda:")) {
    MEMSPAN_TRY_ASSIGN(auto device, cuda::open_device(), "MEMSPAN_DEVICE=cuda");
    return device;
  }
  return Status(Code::kInvalidArgument,
                fmt::format("MEMSPAN_DEVICE is \"{}\", allowed are host, cuda and cuda:N", word));
}

Device* other_device() {
  const Result<Device*> chosen = chosen_device();
  return chosen.is_ok() && !(*chosen)->is_host() ? *chosen : nullptr;
}

bool wants_other_device() {
  return chosen_word() != kHost;
}

}  // namespace memspan::inline device
