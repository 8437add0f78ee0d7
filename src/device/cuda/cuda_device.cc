// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cuda_device.h"

#include <fmt/format.h>

#include <iterator>
#include <map>

#include "device/cuda/pinned_memory.h"
#include "device/cuda/virtual_memory.h"
#include "device/host/copy.h"

namespace memspan::cuda {
namespace {

DevicePtr address_of(const void* pointer) {
  return reinterpret_cast<DevicePtr>(pointer);
}

class CudaDevice final : public memspan::Device {
 public:
  explicit CudaDevice(const cuda::Device& device) : device_(device) {}
  std::string_view name() const override { return "cuda"; }
  bool is_host() const override { return false; }

  Result<std::unique_ptr<DeviceRange>> reserve_at(std::size_t bytes, void* wanted) override {
    return cuda::reserve_at(device_, bytes, wanted);
  }
  Result<std::unique_ptr<DeviceMemory>> allocate(std::size_t bytes, const char*) override {
    release_reached();
    return cuda::allocate(device_, bytes);
  }
  Result<std::unique_ptr<DeviceMemory>> adopt(Fd descriptor) override {
    return cuda::adopt(device_, std::move(descriptor));
  }

  bool owns(const void* pointer) const override {
    const auto context = CurrentContext::of(device_);
    return context.is_ok() && kind_of(pointer) == kDeviceMemory;
  }

  Result<std::shared_ptr<std::byte>> allocate_mapped(std::size_t bytes, const char*) override {
    release_reached();
    MEMSPAN_PASS_ASSIGN(auto allocation, cuda::allocate(device_, bytes));
    const std::size_t whole = allocation->bytes();
    MEMSPAN_PASS_ASSIGN(auto made, reserve(device_, whole));
    MEMSPAN_PASS(made->map(0, *allocation, whole));
    const std::shared_ptr<DeviceRange> range(std::move(made));
    MutexLock lock(mutex_);
    // A released range may have had these addresses.
    std::erase_if(mapped_, [](const auto& entry) { return entry.second.range.expired(); });
    mapped_[address_of(range->base())] = {whole, range};
    return std::shared_ptr<std::byte>(range, range->base());
  }
  std::shared_ptr<const void> hold(const void* pointer) override {
    MutexLock lock(mutex_);
    const auto after = mapped_.upper_bound(address_of(pointer));
    if (after == mapped_.begin()) return nullptr;
    const auto& [base, known] = *std::prev(after);
    return address_of(pointer) - base < known.bytes ? known.range.lock() : nullptr;
  }

  Result<SharedPointer> share_pointer(const void* pointer, std::size_t bytes) override {
    return cuda::share_pointer(device_, address_of(pointer), bytes);
  }
  Result<OpenedPointer> open_pointer(SharedPointer shared) override {
    release_reached();
    return cuda::open_pointer(device_, std::move(shared));
  }

  Status copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes == 0) return Status::ok();
    release_reached();
    MEMSPAN_PASS_ASSIGN(const CurrentContext context, CurrentContext::of(device_));
    MEMSPAN_TRY_ASSIGN(StreamHandle stream, take_stream(), "copying");
    Status status = begin(to, from, bytes, stream);
    if (status.is_ok())
      status = from_cuda("copying by a CUDA device", device_.functions->stream_synchronize(stream));
    MutexLock lock(mutex_);
    idle_.push_back(stream);
    return status;
  }
  Status begin_copy(void* to, const void* from, std::size_t bytes, void* stream) override {
    if (bytes == 0) return Status::ok();
    MEMSPAN_PASS_ASSIGN(const CurrentContext context, CurrentContext::of(device_));
    // The driver takes memory that is not pinned at once.
    const bool is_from_plain = kind_of(from) == kUnknownMemory;
    const bool is_to_plain = kind_of(to) == kUnknownMemory;
    if (is_from_plain && is_to_plain)
      return begin_call([=] { copy_bytes(to, from, bytes); }, stream);
    if (is_from_plain) {
      const auto fill = [=](std::byte* part, std::size_t at, std::size_t count) {
        copy_bytes(part, static_cast<const std::byte*>(from) + at, count);
      };
      return begin_parts(Parts::kWrite, to, bytes, fill, stream);
    }
    if (is_to_plain) {
      const auto use = [=](std::byte* part, std::size_t at, std::size_t count) {
        copy_bytes(static_cast<std::byte*>(to) + at, part, count);
      };
      return begin_parts(Parts::kRead, const_cast<void*>(from), bytes, use, stream);
    }
    return begin(to, from, bytes, static_cast<StreamHandle>(stream));
  }
  // Through one pinned buffer. Its calls share it, so it is free once the stream is past them.
  Status begin_parts(Parts how, void* memory, std::size_t bytes, PartCall call,
                     void* stream) override {
    struct Pass {
      std::shared_ptr<std::byte> buffer;
      PartCall call;
    };
    MEMSPAN_PASS_ASSIGN(const CurrentContext context, CurrentContext::of(device_));
    const auto handle = static_cast<StreamHandle>(stream);
    MEMSPAN_TRY_ASSIGN(std::shared_ptr<std::byte> buffer,
                       pinned_.take(device_, std::min(bytes, PinnedMemory::kMostBytes)), "copying");
    const auto shared = std::make_shared<const Pass>(Pass{std::move(buffer), std::move(call)});
    std::byte* const part = shared->buffer.get();
    auto* const all = static_cast<std::byte*>(memory);
    Status status;
    for (std::size_t at = 0; at < bytes && status.is_ok(); at += PinnedMemory::kMostBytes) {
      const std::size_t count = std::min(PinnedMemory::kMostBytes, bytes - at);
      if (how == Parts::kRead) status = begin(part, all + at, count, handle);
      if (status.is_ok()) status = begin_call([=] { shared->call(part, at, count); }, stream);
      if (how == Parts::kWrite && status.is_ok()) status = begin(all + at, part, count, handle);
    }
    if (how == Parts::kWrite && status.is_ok()) status = begin_call([shared] {}, stream);
    // A copy that was begun may still use the buffer.
    if (!status.is_ok()) static_cast<void>(device_.functions->stream_synchronize(handle));
    return status;
  }
  Status keep(std::shared_ptr<const void> what, void* stream) override {
    release_reached();
    return begin_call(
        [this, what = std::move(what)]() mutable {
          MutexLock lock(mutex_);
          reached_.push_back(std::move(what));
        },
        stream);
  }
  Status begin_wait(const void* word, std::uint32_t value, WaitFor what, void* stream) override {
    if (device_.functions->stream_wait_value == nullptr)
      return {Code::kNotSupported,
              "the CUDA driver here is too old: it has no cuStreamWaitValue32_v2"};
    MEMSPAN_PASS_ASSIGN(const CurrentContext context, CurrentContext::of(device_));
    return from_cuda(fmt::format("waiting for the word at {} by a CUDA stream", word),
                     device_.functions->stream_wait_value(
                         static_cast<StreamHandle>(stream), address_of(word), value,
                         what == WaitFor::kEqual ? kWaitUntilEqual : kWaitUntilAtLeast));
  }
  Status begin_call(std::function<void()> call, void* stream) override {
    MEMSPAN_PASS_ASSIGN(const CurrentContext context, CurrentContext::of(device_));
    using Call = std::function<void()>;
    auto owned = std::make_unique<Call>(std::move(call));
    const auto make = [](void* given) {
      const std::unique_ptr<Call> taken(static_cast<Call*>(given));
      (*taken)();
    };
    MEMSPAN_PASS(from_cuda("giving a call to a CUDA stream",
                           device_.functions->launch_host_function(
                               static_cast<StreamHandle>(stream), make, owned.get())));
    static_cast<void>(owned.release());  // the stream owns it
    return Status::ok();
  }

 private:
  struct Mapped {
    std::size_t bytes = 0;
    std::weak_ptr<const DeviceRange> range;
  };

  // Blocking copies use our own streams: one in the program's stream would wait for its kernels,
  // and one in the default stream for everything. A thread has its stream to itself during a copy.
  Result<StreamHandle> take_stream() MEMSPAN_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (!idle_.empty()) {
        StreamHandle stream = idle_.back();
        idle_.pop_back();
        return stream;
      }
    }
    StreamHandle stream = nullptr;
    MEMSPAN_PASS(from_cuda("making a CUDA stream",
                           device_.functions->stream_create(&stream, kNonBlockingStream)));
    return stream;
  }

  // Call it on a thread that may use the device.
  void release_reached() MEMSPAN_EXCLUDES(mutex_) {
    std::vector<std::shared_ptr<const void>> ended;  // destroyed without the lock
    MutexLock lock(mutex_);
    ended.swap(reached_);
  }

  // The driver does not know memory that it has neither made nor pinned; that is not a failure. The
  // context is current.
  unsigned kind_of(const void* pointer) const {
    unsigned kind = kUnknownMemory;
    const ResultCode known =
        device_.functions->pointer_attribute(&kind, kMemoryType, address_of(pointer));
    return known == kSuccess ? kind : kUnknownMemory;
  }

  Status begin(void* to, const void* from, std::size_t bytes, StreamHandle stream) {
    return from_cuda(
        fmt::format("copying {} bytes from {} to {} by CUDA device {}", bytes, from, to,
                    device_.ordinal),
        device_.functions->copy_async(address_of(to), address_of(from), bytes, stream));
  }

  const cuda::Device device_;
  PinnedMemory pinned_;
  Mutex mutex_;
  std::vector<StreamHandle> idle_ MEMSPAN_GUARDED_BY(mutex_);
  // Objects that streams have finished with. They may own device memory, which must not be released
  // by the thread that calls the functions of a stream.
  std::vector<std::shared_ptr<const void>> reached_ MEMSPAN_GUARDED_BY(mutex_);
  // Memory that is handed out by its address, by base: each allocation in a range of its own. A
  // range must not be unmapped during a copy from or to it, so a copy holds it.
  std::map<DevicePtr, Mapped> mapped_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace

Result<memspan::Device*> open_device() {
  static Mutex mutex;
  static CudaDevice* opened = nullptr;  // never destroyed: exit handlers may still copy
  MutexLock lock(mutex);
  if (opened == nullptr) {
    MEMSPAN_TRY_ASSIGN(const cuda::Device device, device(), "opening a CUDA device");
    MEMSPAN_PASS(check_granularity(device));
    opened = new CudaDevice(device);
  }
  return opened;
}

}  // namespace memspan::cuda
