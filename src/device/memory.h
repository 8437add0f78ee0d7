// SPDX-License-Identifier: Apache-2.0
// Memory of one kind of device. It is allocated, passed to other processes of this host by a
// descriptor, and mapped at addresses that were reserved before.
//
//   Device::allocate()  ─► DeviceMemory ── duplicate() ─► a descriptor ─► Device::adopt() of a peer
//   Device::reserve_at() ─► DeviceRange ── map(memory) at the same address in both
//
// Two kinds exist: the host, whose device memory is DRAM in a range of its own, and a GPU by the
// CUDA driver. Programs load and store host memory. They only name GPU memory in copies and
// kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/fd.h"
#include "core/status.h"

namespace memspan::inline device {

// Holds the memory, which is released when no process holds or maps it any more. Const use is
// thread-safe.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual std::size_t bytes() const = 0;
  virtual Result<Fd> duplicate() const = 0;
};

// Addresses of this process, reserved for memory of one device. The destructor releases them with
// the mappings in them. One thread at a time.
class DeviceRange {
 public:
  virtual ~DeviceRange() = default;
  virtual std::byte* base() const = 0;
  virtual std::size_t bytes() const = 0;
  // Maps the first `bytes` of memory of the same device at base() + `at`, for reading and writing.
  // Both are multiples of kDeviceGranularity, but host memory may end with any page.
  virtual Status map(std::size_t at, const DeviceMemory& memory, std::size_t bytes) = 0;
  // Unmaps all mappings in these bytes. Neither end of the bytes is inside a mapping.
  virtual Status unmap(std::size_t at, std::size_t bytes) = 0;
};

// The data by which another process of this host opens memory that the program has allocated.
// Move-only value.
struct SharedPointer {
  std::string text;             // in the device's own format
  std::vector<Fd> descriptors;  // as many as the text says
};
// Such memory, mapped here. A value.
struct OpenedPointer {
  std::shared_ptr<std::byte> base;  // owners: copies and the caller; the last one closes it
  std::size_t bytes = 0;            // SIZE_MAX: only the device knows
};

// Windows of pools and spaces begin at multiples of it, so that all processes lay them out equally
// without asking their devices. A device with larger pages is refused.
inline constexpr std::size_t kDeviceGranularity = std::size_t{2} << 20;
// A device other than the host reserves addresses at multiples of this, in steps of this. CUDA's
// driver 580 reserves whole pieces of 32 MiB, and chooses the addresses of smaller ranges itself.
inline constexpr std::size_t kDeviceAddressStep = std::size_t{1} << 30;

// Thread-safe. Lives as long as the process.
class Device {
 public:
  virtual ~Device() = default;
  // "host", "cuda". Processes that share memory have devices of one name.
  virtual std::string_view name() const = 0;
  // Programs can load and store what it allocates, and copies do not need this interface.
  virtual bool is_host() const = 0;

  // Reserves `bytes` at `wanted` and nowhere else: kUnavailable if the place is taken. Devices
  // other than the host need a multiple of kDeviceAddressStep, and take whole steps.
  virtual Result<std::unique_ptr<DeviceRange>> reserve_at(std::size_t bytes, void* wanted) = 0;
  // Allocates zeroed memory. Host memory is not taken yet (Pages::commit). kOutOfMemory names the
  // available amount.
  virtual Result<std::unique_ptr<DeviceMemory>> allocate(std::size_t bytes, const char* label) = 0;
  // Takes over another process's duplicate(). kInvalidArgument or kSystem for anything else.
  virtual Result<std::unique_ptr<DeviceMemory>> adopt(Fd descriptor) = 0;

  // Copies between any two addresses of this process; the bytes have arrived when it returns. The
  // ranges must not overlap.
  virtual Status copy(void* to, const void* from, std::size_t bytes) = 0;
  // Whether the address is in memory other than the host's.
  virtual bool owns(const void* /*pointer*/) const { return false; }

  // ---- only of devices other than the host
  // NOLINTBEGIN(performance-unnecessary-value-param): because those keep what they get

  // Allocates memory that is mapped at an address of its own until the last owner releases it.
  virtual Result<std::shared_ptr<std::byte>> allocate_mapped(std::size_t /*bytes*/,
                                                             const char* /*label*/) {
    return not_of_host();
  }
  // An owner of the allocate_mapped() memory that contains the address; null if none does.
  virtual std::shared_ptr<const void> hold(const void* /*pointer*/) { return nullptr; }
  // Shares memory that the program has allocated on the device, for open_pointer() of another
  // process of this host. kInvalidArgument if the memory has fewer bytes there; kNotSupported, with
  // the reason, if it cannot be shared.
  virtual Result<SharedPointer> share_pointer(const void* /*pointer*/, std::size_t /*bytes*/) {
    return not_of_host();
  }
  // Maps the same bytes into this process. Close them before the process that shared them frees
  // them. kInvalidArgument for anything that share_pointer() does not make.
  virtual Result<OpenedPointer> open_pointer(SharedPointer /*shared*/) { return not_of_host(); }
  // Copies behind the work already given to a stream of the device, a cudaStream_t, and does not
  // wait for it. The result only reports whether the copy was begun. Host memory must stay until
  // the stream has copied it.
  virtual Status begin_copy(void* /*to*/, const void* /*from*/, std::size_t /*bytes*/,
                            void* /*stream*/) {
    return not_of_host();
  }
  // Called with bytes [at, at + bytes) of a copy, in memory of the host that is valid until it
  // returns. As begin_call()'s calls, it may not use the device.
  using PartCall = std::function<void(std::byte* part, std::size_t at, std::size_t bytes)>;
  // Copies as begin_copy(), in parts of a few MiB: the call reads each part of the memory's bytes,
  // or writes each part before it is copied to the memory.
  enum class Parts { kRead, kWrite };
  virtual Status begin_parts(Parts /*how*/, void* /*memory*/, std::size_t /*bytes*/,
                             PartCall /*call*/, void* /*stream*/) {
    return not_of_host();
  }
  // Makes such a stream wait until a word in memory of the device is `value`, or is at least
  // `value` as a signed number.
  enum class WaitFor { kEqual, kAtLeast };
  virtual Status begin_wait(const void* /*word*/, std::uint32_t /*value*/, WaitFor /*what*/,
                            void* /*stream*/) {
    return not_of_host();
  }
  // Makes the call when such a stream reaches it. Neither the call nor the destructors of what it
  // owns may use the device.
  virtual Status begin_call(std::function<void()> /*call*/, void* /*stream*/) {
    return not_of_host();
  }
  // Keeps it until the stream is past this; a thread that may use the device releases it later.
  virtual Status keep(std::shared_ptr<const void> /*what*/, void* /*stream*/) {
    return not_of_host();
  }
  // NOLINTEND(performance-unnecessary-value-param)

 private:
  static Status not_of_host() { return {Code::kNotSupported, "the host is a device without it"}; }
};

// The device of a process that has chosen no other.
Device& host_device();

}  // namespace memspan::inline device
