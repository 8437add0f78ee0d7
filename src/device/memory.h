// SPDX-License-Identifier: Apache-2.0
// Memory of one kind of device: made, given to other processes of this host by a descriptor, and
// mapped at addresses that were reserved before.
//
//   Device::allocate()  ─► DeviceMemory ── duplicate() ─► a descriptor ─► Device::adopt() of a peer
//   Device::reserve_at() ─► DeviceRange ── map(memory) at the same address in both
//
// There are two: the host, whose device memory is DRAM in a range of its own, and a GPU by the CUDA
// driver. What a program may do with an address depends on it: host memory is loaded and stored,
// that of a GPU is only named in copies and kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/fd.h"
#include "core/status.h"

namespace memspan {

// Holds the memory; it is given back when nobody holds or maps it any more, in any process. Const
// use is thread-safe.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual std::size_t bytes() const = 0;
  virtual Result<Fd> duplicate() const = 0;
};

// Addresses of this process, reserved for memory of one device. Gives them back when it ends, with
// what is mapped there. One thread at a time.
class DeviceRange {
 public:
  virtual ~DeviceRange() = default;
  virtual std::byte* base() const = 0;
  virtual std::size_t bytes() const = 0;
  // Maps the first `bytes` of memory of the same device at base() + `at`, for reading and writing;
  // both are multiples of kDeviceGranularity, but that the host's may end with any page.
  virtual Status map(std::size_t at, const DeviceMemory& memory, std::size_t bytes) = 0;
  // Takes away all that is mapped in these bytes, whose ends lie in no mapping.
  virtual Status unmap(std::size_t at, std::size_t bytes) = 0;
};

// What another process of this host needs for memory that the program has allocated. Move-only
// value.
struct SharedPointer {
  std::string text;             // the device's own
  std::vector<Fd> descriptors;  // as many as the text says
};
// Such memory, mapped here. A value.
struct OpenedPointer {
  std::shared_ptr<std::byte> base;  // closes it with the last owner: who copies, and who keeps it
  std::size_t bytes = 0;            // SIZE_MAX: only the device knows
};

// Windows of pools and spaces begin at multiples of it, so that all processes lay them out alike
// without asking their devices; a device whose pages are larger is refused.
inline constexpr std::size_t kDeviceGranularity = std::size_t{2} << 20;
// Places at which a device other than the host reserves addresses, and the steps in which it does.
// CUDA's driver 580 reserves whole pieces of 32 MiB, and chooses the addresses of smaller ranges
// itself.
inline constexpr std::size_t kDeviceAddressStep = std::size_t{1} << 30;

// Thread-safe. Lives as long as the process.
class Device {
 public:
  virtual ~Device() = default;
  // "host", "cuda". Processes that share memory have devices of one name.
  virtual std::string_view name() const = 0;
  // What it allocates can be loaded and stored, and copies need none of this.
  virtual bool is_host() const = 0;

  // Reserves `bytes` at `wanted` and nowhere else: kUnavailable when the place is taken. Other
  // devices than the host need a multiple of kDeviceAddressStep, and take whole steps.
  virtual Result<std::unique_ptr<DeviceRange>> reserve_at(std::size_t bytes, void* wanted) = 0;
  // New memory of zeros. That of the host is not taken yet (Pages::commit). kOutOfMemory says how
  // much there is.
  virtual Result<std::unique_ptr<DeviceMemory>> allocate(std::size_t bytes, const char* label) = 0;
  // What duplicate() of another process gave. kInvalidArgument: it is something else.
  virtual Result<std::unique_ptr<DeviceMemory>> adopt(Fd descriptor) = 0;

  // The same, mapped at an address of its own until the last owner gives it up.
  virtual Result<std::shared_ptr<std::byte>> allocate_mapped(std::size_t bytes,
                                                             const char* label) = 0;
  // An owner of what allocate_mapped() gave and the address is in; null where it is in none.
  virtual std::shared_ptr<const void> hold(const void* pointer) = 0;

  // Whether the address is of memory that is not the host's.
  virtual bool owns(const void* pointer) const = 0;
  // For open_pointer() of another process of this host: memory that the program has allocated on
  // the device. kInvalidArgument when it has fewer bytes there, kNotSupported, with the reason,
  // when it cannot be shared.
  virtual Result<SharedPointer> share_pointer(const void* pointer, std::size_t bytes) = 0;
  // The same bytes, as they are named here; they must be closed before who shared them frees them.
  // kInvalidArgument for what share_pointer() does not make.
  virtual Result<OpenedPointer> open_pointer(SharedPointer shared) = 0;
  // Copies between any two addresses of this process; the bytes are there when it returns. The
  // ranges must not overlap.
  virtual Status copy(void* to, const void* from, std::size_t bytes) = 0;
  // The same behind what was given to a stream of the device before: a cudaStream_t. Its result
  // says only whether the copy was begun; host memory must stay until the stream is there.
  virtual Status begin_copy(void* to, const void* from, std::size_t bytes, void* stream) = 0;
  // Such a stream goes on once a word in memory of the device is `value`, or at least that as a
  // signed number.
  enum class WaitFor { kEqual, kAtLeast };
  virtual Status begin_wait(const void* word, std::uint32_t value, WaitFor what, void* stream) = 0;
  // A call that is made when such a stream comes to it. It may not use the device, nor may what it
  // owns when it ends.
  virtual Status begin_call(std::function<void()> call, void* stream) = 0;
  // Keeps it until the stream is there. It ends, some time after, where the device may be used.
  virtual Status keep(std::shared_ptr<const void> what, void* stream) = 0;
};

}  // namespace memspan
