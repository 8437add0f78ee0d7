// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/registered_memory.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <iterator>
#include <tuple>

#include "memory/budget.h"
#include "net/unix_socket.h"

namespace memspan::transfer {
namespace {

// Space for the sizes of more allocations than a process may have descriptors.
constexpr std::size_t kMostText = std::size_t{16} << 20;

std::string part_name(const std::string& name, std::size_t part) {
  return part == 0 ? name : fmt::format("{}/{}", name, part);
}

// How many descriptors follow, and the text.
Result<Fd> memfd_of(const SharedPointer& shared) {
  FieldWriter writer;
  writer(static_cast<std::uint32_t>(shared.descriptors.size()), shared.text);
  const std::string all = writer.take();
  if (all.size() > kMostText)
    return Status(
        Code::kNotSupported,
        fmt::format("device memory in {} allocations cannot be shared, which are too many",
                    shared.descriptors.size()));
  MEMSPAN_TRY_ASSIGN(Pages pages, Pages::create(all.size(), "memspan-device-memory"),
                     "sharing memory of a device");
  if (::pwrite(pages.descriptor(), all.data(), all.size(), 0) != static_cast<ssize_t>(all.size()))
    return Status::from_errno("sharing memory of a device");
  return pages.duplicate();
}

// How many descriptors follow, and the text.
Result<std::pair<std::uint32_t, std::string>> read_memfd(const Fd& descriptor) {
  const Status bad(Code::kInternal, "something else came than words for memory of a device");
  struct stat about = {};
  if (::fstat(descriptor.get(), &about) != 0 || about.st_size <= 0) return bad;
  std::string all(std::min(static_cast<std::size_t>(about.st_size), kMostText), 0);
  if (::pread(descriptor.get(), all.data(), all.size(), 0) != static_cast<ssize_t>(all.size()))
    return bad;
  FieldReader reader(all);
  std::pair<std::uint32_t, std::string> read;
  reader(read);
  if (!reader.is_ok()) return bad;
  return read;
}

// New memory of the host. Its bytes are given back when it ends, also those that a peer has mapped.
Result<std::pair<std::shared_ptr<std::byte>, Fd>> make_memory(std::size_t bytes) {
  if (bytes > SIZE_MAX - page_size())
    return Status(Code::kOutOfMemory, fmt::format("{} bytes are more than any machine has", bytes));
  MEMSPAN_TRY_ASSIGN(Pages pages, Pages::create(bytes, "memspan-trans"), "making memory");
  MEMSPAN_TRY_ASSIGN(Reservation place, Reservation::of(pages), "mapping memory");
  MEMSPAN_PASS(
      commit_within_budget({pages, 0, place.base(), pages.bytes()}, "memory of an endpoint"));
  MEMSPAN_TRY_ASSIGN(Fd descriptor, pages.duplicate(), "making memory");
  std::byte* const base = place.base();
  std::shared_ptr<std::byte> memory(base, [held = std::move(place)](std::byte* begin) {
    madvise(begin, held.bytes(), MADV_REMOVE);
  });
  return std::pair(std::move(memory), std::move(descriptor));
}

Status adopted_overlap(std::uint64_t base, std::uint64_t bytes, const Range& adopted) {
  return {Code::kInvalidArgument,
          fmt::format("{} bytes at {:#x} overlap the {} at {:#x} that are registered with adopted "
                      "pages: only the very same range may be registered again, by itself",
                      bytes, base, adopted.bytes, adopted.base)};
}

}  // namespace

Result<OpenedPointer> open_registration(Device* device, const std::string& name,
                                        const FetchPublished& fetch) {
  if (device == nullptr)
    return Status(Code::kNotSupported,
                  "it is memory of a device, which this process has not chosen (MEMSPAN_DEVICE)");
  SharedPointer shared;
  std::uint32_t count = 0;
  for (std::size_t part = 0; part == 0 || shared.descriptors.size() < count; ++part) {
    MEMSPAN_PASS_ASSIGN(auto answer, fetch(part_name(name, part)));
    auto came = answer.descriptors.begin();
    if (came == answer.descriptors.end())
      return Status(Code::kInternal, "no memory of a device came");
    if (part == 0) {
      MEMSPAN_PASS_ASSIGN(std::tie(count, shared.text), read_memfd(*came++));
    }
    std::move(came, answer.descriptors.end(), std::back_inserter(shared.descriptors));
  }
  return device->open_pointer(std::move(shared));
}

// The first part is last, so that a peer that finds it finds them all.
Result<Publication> publish_in_parts(DescriptorBroker& broker, const std::string& name,
                                     std::vector<Fd> descriptors) {
  constexpr std::size_t kMostInPart = kMostUnixDescriptors - 1;
  Publication made(new std::vector<std::string>, {&broker});
  for (std::size_t part = (descriptors.size() + kMostInPart - 1) / kMostInPart; part-- > 0;) {
    const auto first = descriptors.begin() + static_cast<std::ptrdiff_t>(part * kMostInPart);
    std::vector<Fd> some(std::make_move_iterator(first),
                         std::make_move_iterator(descriptors.end()));
    descriptors.erase(first, descriptors.end());
    made->push_back(part_name(name, part));
    MEMSPAN_PASS(broker.publish(made->back(), std::move(some)));
  }
  return made;
}

Status RegisteredMemory::add_joined(std::span<const Range> ranges) {
  changes_.fetch_add(1, std::memory_order_relaxed);
  MutexLock registering(registering_);
  for (const Range& range : ranges) {
    MEMSPAN_PASS_ASSIGN(const auto found, find_adopted(range.base, range.bytes));
    if (found != adopted_.end())
      return adopted_overlap(range.base, range.bytes, found->second.range);
  }
  const auto count = static_cast<std::size_t>(std::count_if(
      ranges.begin(), ranges.end(), [&](const Range& range) { return is_of_device(range.base); }));
  MutexLock lock(mutex_);
  if (count == 0) return table_.add_joined(ranges);
  if (count != ranges.size())
    return {Code::kInvalidArgument, "memory of the host and of a device in one registration"};
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    Status added = add_of_device(ranges[i].base, ranges[i].bytes);
    if (added.is_ok()) continue;
    while (i-- > 0) static_cast<void>(remove_plain(ranges[i].base));
    return added;
  }
  return Status::ok();
}

Status RegisteredMemory::remove_plain(std::uint64_t base) {
  const auto found = allocations_.find(base);
  if (found == allocations_.end() || found->second.count == 0) {
    Status status = table_.remove(base);
    exposed_.retract_removed(base);
    return status;
  }
  if (--found->second.count > 0 || found->second.memory != nullptr) return Status::ok();
  withdraw(found->second);
  allocations_.erase(found);
  return Status::ok();
}

// ---- memory of a device

Status RegisteredMemory::add_of_device(std::uint64_t base, std::uint64_t bytes) {
  MEMSPAN_TRY_ASSIGN(Allocation* const found, find_or_share(base, bytes),
                     fmt::format("registering device memory at {:#x}", base));
  ++found->count;
  return Status::ok();
}

Result<RegisteredMemory::Allocation*> RegisteredMemory::find_or_share(std::uint64_t base,
                                                                      std::uint64_t bytes) {
  MEMSPAN_PASS(check_range(base, bytes));
  if (const auto same = allocations_.find(base);
      same != allocations_.end() && same->second.range.bytes == bytes)
    return &same->second;
  if (const auto other = find_overlap(allocations_, base, bytes); other != allocations_.end())
    return Status(
        Code::kInvalidArgument,
        fmt::format("{} bytes of device memory at {:#x} overlap the {} that are registered at "
                    "{:#x}",
                    bytes, base, other->second.range.bytes, other->first));
  const auto* const pointer = reinterpret_cast<const void*>(base);  // NOLINT: an address
  MEMSPAN_PASS_ASSIGN(auto shared, device_->share_pointer(pointer, bytes));
  MEMSPAN_TRY_ASSIGN(Fd first, memfd_of(shared), "registering device memory");
  shared.descriptors.insert(shared.descriptors.begin(), std::move(first));
  return publish(allocations_, kOfDevice, base, bytes, std::move(shared.descriptors));
}

// ---- memory of the endpoint

Result<void*> RegisteredMemory::allocate(std::size_t bytes, Place place) {
  if (bytes == 0) return Status(Code::kInvalidArgument, "invalid capacity, which is 0");
  std::shared_ptr<std::byte> memory;
  if (place == Place::kDevice && device_ != nullptr) {
    MEMSPAN_TRY_ASSIGN(memory, device_->allocate_mapped(bytes, "memspan-trans"),
                       "making device memory");
    MutexLock lock(mutex_);
    MEMSPAN_TRY_ASSIGN(Allocation* const made,
                       find_or_share(reinterpret_cast<std::uint64_t>(memory.get()), bytes),
                       "registering new device memory");
    made->memory = memory;
  } else {
    std::vector<Fd> descriptors(1);
    MEMSPAN_PASS_ASSIGN(std::tie(memory, descriptors[0]), make_memory(bytes));
    const auto base = reinterpret_cast<std::uint64_t>(memory.get());
    MutexLock lock(mutex_);
    // The program has freed memory that it registered here.
    for (auto old = find_overlap(allocations_, base, bytes); old != allocations_.end();
         old = find_overlap(allocations_, base, bytes)) {
      withdraw(old->second);
      allocations_.erase(old);
    }
    MEMSPAN_PASS_ASSIGN(Allocation* const made,
                        publish(allocations_, 0, base, bytes, std::move(descriptors)));
    made->memory = memory;
  }
  changes_.fetch_add(1, std::memory_order_relaxed);
  return static_cast<void*>(memory.get());
}

Status RegisteredMemory::release(const void* address) {
  ByBase::node_type ended;  // ends without the lock
  MutexLock lock(mutex_);
  const auto found = allocations_.find(reinterpret_cast<std::uint64_t>(address));
  if (found == allocations_.end() || found->second.memory == nullptr)
    return {Code::kInvalidArgument,
            fmt::format("invalid address, which is {}: no memory of this endpoint begins there",
                        address)};
  withdraw(found->second);
  ended = allocations_.extract(found);
  return Status::ok();
}

// ---- adopted memory

Result<bool> RegisteredMemory::count_adopted(std::uint64_t base, std::uint64_t bytes) {
  MEMSPAN_PASS_ASSIGN(const auto found, find_adopted(base, bytes));
  if (found == adopted_.end()) return false;
  const Range& range = found->second.range;
  if (range.base != base || range.bytes != bytes) return adopted_overlap(base, bytes, range);
  ++found->second.count;
  return true;
}

Status RegisteredMemory::add_adopted(std::uint64_t base, std::uint64_t bytes) {
  MEMSPAN_PASS(check_range(base, bytes));
  changes_.fetch_add(1, std::memory_order_relaxed);
  MutexLock registering(registering_);
  MEMSPAN_PASS_ASSIGN(const bool is_counted, count_adopted(base, bytes));
  if (is_counted) return Status::ok();
  if (is_of_device(base))
    return {Code::kNotSupported,
            "memory of a device has no pages to adopt, and needs none: register it as it is"};
  {
    MutexLock lock(mutex_);
    MEMSPAN_PASS(table_.check_apart(base, bytes));
  }
  MEMSPAN_PASS_ASSIGN(auto memory, AdoptedMemory::adopt(reinterpret_cast<std::byte*>(base), bytes));
  std::vector<Fd> descriptors(1);
  MEMSPAN_TRY_ASSIGN(descriptors[0], memory.duplicate(), "adopting memory");
  MutexLock lock(mutex_);
  MEMSPAN_PASS_ASSIGN(Allocation* const made,
                      publish(adopted_, kAdopted, base, bytes, std::move(descriptors)));
  made->count = 1;
  made->adopted.emplace(std::move(memory));
  return Status::ok();
}

}  // namespace memspan::transfer
