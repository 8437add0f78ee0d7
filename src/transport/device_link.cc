// SPDX-License-Identifier: Apache-2.0
#include "transport/device_link.h"

#include <fmt/format.h>

#include <atomic>

#include "core/check.h"
#include "device/host/copy.h"

namespace memspan {

void DeviceLink::add(const RemoteRegion& region, std::byte* mapped_at) {
  MEMSPAN_CHECK(region.id.number < kMostRegions);
  mapped_[region.id.number] = {mapped_at, region.bytes, region.kind == MemoryKind::kDevice};
}

Result<DeviceLink::Mapped> DeviceLink::find(const RemotePlace& place, std::size_t bytes) const {
  const std::uint32_t number = place.region.id.number;
  if (number >= kMostRegions || mapped_[number].base == nullptr)
    return Status(Code::kNotFound, fmt::format("region {} is not mapped", number));
  Mapped found = mapped_[number];
  if (place.offset > found.bytes || bytes > found.bytes - place.offset)
    return Status(Code::kInvalidArgument,
                  fmt::format("{} bytes at offset {} leave region {} of {} bytes", bytes,
                              place.offset, number, found.bytes));
  found.base += place.offset;
  return found;
}

Status DeviceLink::attach(const RemoteRegion&) {
  return {Code::kNotSupported, "the maker of this link maps its regions"};
}

Status DeviceLink::put(OperationContext&, const RemotePlace& to, const void* from,
                       std::size_t bytes) {
  MEMSPAN_TRY_ASSIGN(const Mapped there, find(to, bytes), "put");
  if (bytes == 0) return Status::ok();
  if (there.is_device || local_.is_device(from))
    return local_.device()->copy(there.base, from, bytes);
  copy_bytes(there.base, from, bytes);
  return Status::ok();
}

Status DeviceLink::get(OperationContext&, void* to, const RemotePlace& from, std::size_t bytes) {
  MEMSPAN_TRY_ASSIGN(const Mapped there, find(from, bytes), "get");
  if (bytes == 0) return Status::ok();
  if (there.is_device || local_.is_device(to)) return local_.device()->copy(to, there.base, bytes);
  copy_bytes(to, there.base, bytes);
  std::atomic_thread_fence(std::memory_order_acquire);
  return Status::ok();
}

Status DeviceLink::put_signal(OperationContext& context, const RemotePlace& to, const void* from,
                              std::size_t bytes, const RemotePlace& signal, std::uint64_t value,
                              SignalOp op) {
  const AtomicOp update{op == SignalOp::kSet ? AtomicKind::kSet : AtomicKind::kAdd, 8, value};
  // Refuses before the data.
  MEMSPAN_TRY_ASSIGN(const Mapped word, find(signal, update.width), "put_signal");
  if (word.is_device && update.kind != AtomicKind::kSet) return no_device_atomic(update, signal);
  if (bytes != 0) MEMSPAN_PASS(put(context, to, from, bytes));
  return atomic(context, update, signal, nullptr);
}

Status DeviceLink::atomic(OperationContext& context, const AtomicOp& op, const RemotePlace& at,
                          std::uint64_t* fetched) {
  MEMSPAN_TRY_ASSIGN(const Mapped there, find(at, op.width), "an atomic");
  if (!there.is_device) return checked_atomic(there.base, op, fetched);
  return atomic_by_copies(*this, context, op, at, fetched);
}

Status DeviceLink::fence(OperationContext&) {
  std::atomic_thread_fence(std::memory_order_release);
  return Status::ok();
}

std::uint64_t DeviceLink::start_quiet(OperationContext&) {
  return 0;
}

Status DeviceLink::finish_quiet(OperationContext&, std::uint64_t) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return Status::ok();
}

}  // namespace memspan
