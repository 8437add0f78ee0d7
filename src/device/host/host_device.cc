// SPDX-License-Identifier: Apache-2.0
// The host as a device: its memory is pages (core/pages.h) in a reservation.
#include "device/host/copy.h"
#include "device/reservation.h"

namespace memspan {
namespace {

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

}  // namespace

Device& host_device() {
  static HostDevice& device = *new HostDevice;
  return device;
}

}  // namespace memspan
