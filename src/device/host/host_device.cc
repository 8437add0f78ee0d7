// SPDX-License-Identifier: Apache-2.0
#include "device/host/host_device.h"

#include "device/host/copy.h"

namespace memspan {
namespace {

class HostDevice final : public Device {
 public:
  std::string_view name() const override { return "host"; }
  bool is_host() const override { return true; }

  Result<std::unique_ptr<DeviceRange>> reserve_at(std::size_t bytes, void* wanted) override {
    auto made = Reservation::make_at(bytes, wanted);
    if (!made.is_ok()) return made.status();
    return std::unique_ptr<DeviceRange>(new HostRange(std::move(made).value()));
  }
  Result<std::unique_ptr<DeviceMemory>> allocate(std::size_t bytes, const char* label) override {
    return memory_of(Pages::create(bytes, label));
  }
  Result<std::unique_ptr<DeviceMemory>> adopt(Fd descriptor) override {
    return memory_of(Pages::adopt(std::move(descriptor)));
  }

  Result<std::shared_ptr<std::byte>> allocate_mapped(std::size_t /*bytes*/,
                                                     const char* /*label*/) override {
    return Status(Code::kNotSupported, "memory of the host is mapped by reservations");
  }
  std::shared_ptr<const void> hold(const void* /*pointer*/) override { return nullptr; }

  bool owns(const void* /*pointer*/) const override { return false; }
  Result<SharedPointer> share_pointer(const void* /*pointer*/, std::size_t /*bytes*/) override {
    return Status(Code::kNotSupported, "memory of the host is shared by pages");
  }
  Result<OpenedPointer> open_pointer(SharedPointer /*shared*/) override {
    return Status(Code::kNotSupported, "memory of the host is shared by pages");
  }
  Status copy(void* to, const void* from, std::size_t bytes) override {
    copy_bytes(to, from, bytes);
    return Status::ok();
  }
  Status begin_copy(void* /*to*/, const void* /*from*/, std::size_t /*bytes*/,
                    void* /*stream*/) override {
    return {Code::kNotSupported, "the streams of the host are device/stream.h"};
  }
  Status begin_read(const void* /*from*/, std::size_t /*bytes*/, PartCall /*use*/,
                    void* /*stream*/) override {
    return {Code::kNotSupported, "the streams of the host are device/stream.h"};
  }
  Status begin_write(void* /*to*/, std::size_t /*bytes*/, PartCall /*fill*/,
                     void* /*stream*/) override {
    return {Code::kNotSupported, "the streams of the host are device/stream.h"};
  }
  Status begin_wait(const void* /*word*/, std::uint32_t /*value*/, WaitFor /*what*/,
                    void* /*stream*/) override {
    return {Code::kNotSupported, "the streams of the host are device/stream.h"};
  }
  Status begin_call(std::function<void()> /*call*/, void* /*stream*/) override {
    return {Code::kNotSupported, "the streams of the host are device/stream.h"};
  }
  Status keep(std::shared_ptr<const void> /*what*/, void* /*stream*/) override {
    return {Code::kNotSupported, "the streams of the host are device/stream.h"};
  }

 private:
  static Result<std::unique_ptr<DeviceMemory>> memory_of(Result<Pages> pages) {
    if (!pages.is_ok()) return pages.status();
    return std::unique_ptr<DeviceMemory>(new HostMemory(std::move(pages).value()));
  }
};

}  // namespace

Status HostRange::map(std::size_t at, const DeviceMemory& memory, std::size_t bytes) {
  return reservation_.map(at, static_cast<const HostMemory&>(memory).pages(), 0, bytes);
}

Device& host_device() {
  static HostDevice& device = *new HostDevice;
  return device;
}

}  // namespace memspan
