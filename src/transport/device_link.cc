// SPDX-License-Identifier: Apache-2.0
#include "transport/device_link.h"

#include <fmt/format.h>

#include "device/choice.h"
#include "device/host/copy.h"

namespace memspan {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

// Moves by pieces through a buffer: `move` has the buffer, the bytes before the piece, and its own.
Status move_staged(std::size_t bytes, auto move) {
  std::vector<std::byte> buffer(std::min(bytes, kBufferBytes));
  for (std::size_t done = 0; done < bytes; done += buffer.size())
    MEMSPAN_PASS(move(buffer.data(), done, std::min(buffer.size(), bytes - done)));
  return Status::ok();
}

bool is_on_device(const RemotePlace& place) {
  return place.region.kind == MemoryKind::kDevice;
}

// Ok for those that are copies of the word.
Status check_device_atomic(const AtomicOp& op, const RemotePlace& at) {
  constexpr const char* kNames[] = {"fetch", "set", "swap", "compare-and-swap",
                                    "add",   "and", "or",   "xor"};
  if (op.kind == AtomicKind::kSet || op.kind == AtomicKind::kFetch) return Status::ok();
  return {Code::kNotSupported, fmt::format("an atomic {} on a word at offset {} of the symmetric "
                                           "heap in memory of a device: from the host there are "
                                           "set and fetch, the others are for kernels",
                                           kNames[static_cast<int>(op.kind)], at.offset)};
}

}  // namespace

void DeviceLink::add(const RemoteRegion& region, std::byte* mapped_at) {
  MEMSPAN_CHECK(region.id.number < kMostRegions);
  mapped_[region.id.number] = {mapped_at, region.bytes};
}

Result<std::byte*> DeviceLink::find(const RemotePlace& place, std::size_t bytes) const {
  const std::uint32_t number = place.region.id.number;
  if (number >= kMostRegions || mapped_[number].base == nullptr)
    return Status(Code::kNotFound, fmt::format("region {} is not mapped", number));
  const Mapped& found = mapped_[number];
  if (place.offset > found.bytes || bytes > found.bytes - place.offset)
    return Status(Code::kInvalidArgument,
                  fmt::format("{} bytes at offset {} leave region {} of {} bytes", bytes,
                              place.offset, number, found.bytes));
  return found.base + place.offset;
}

Device* DeviceLink::device() {
  Device* known = device_.load(std::memory_order_acquire);
  if (known == nullptr && (known = other_device()) != nullptr)
    device_.store(known, std::memory_order_release);
  return known;
}

bool DeviceLink::is_device(const void* pointer) {
  Device* const known = device();
  return known != nullptr && known->owns(pointer);
}

// A put returns when its source may be changed, so one buffer suffices.
Status DeviceLink::put_staged(OperationContext& context, const RemotePlace& to,
                              const std::byte* from, std::size_t bytes) {
  return move_staged(bytes, [&](std::byte* buffer, std::size_t done, std::size_t now) -> Status {
    MEMSPAN_PASS(device()->copy(buffer, from + done, now));
    return behind_->put(context, {to.region, to.offset + done}, buffer, now);
  });
}

Status DeviceLink::get_staged(OperationContext& context, std::byte* to, const RemotePlace& from,
                              std::size_t bytes) {
  return move_staged(bytes, [&](std::byte* buffer, std::size_t done, std::size_t now) -> Status {
    MEMSPAN_PASS(behind_->get(context, buffer, {from.region, from.offset + done}, now));
    return device()->copy(to + done, buffer, now);
  });
}

Status DeviceLink::put(OperationContext& context, const RemotePlace& to, const void* from,
                       std::size_t bytes) {
  if (behind_ != nullptr)
    return is_device(from) ? put_staged(context, to, static_cast<const std::byte*>(from), bytes)
                           : behind_->put(context, to, from, bytes);
  MEMSPAN_TRY_ASSIGN(std::byte* const there, find(to, bytes), "put");
  if (bytes == 0) return Status::ok();
  if (is_on_device(to) || is_device(from)) return device()->copy(there, from, bytes);
  copy_bytes(there, from, bytes);
  return Status::ok();
}

Status DeviceLink::put_nbi(OperationContext& context, const RemotePlace& to, const void* from,
                           std::size_t bytes) {
  return behind_ == nullptr || is_device(from) ? put(context, to, from, bytes)
                                               : behind_->put_nbi(context, to, from, bytes);
}

Status DeviceLink::get(OperationContext& context, void* to, const RemotePlace& from,
                       std::size_t bytes) {
  if (behind_ != nullptr)
    return is_device(to) ? get_staged(context, static_cast<std::byte*>(to), from, bytes)
                         : behind_->get(context, to, from, bytes);
  MEMSPAN_TRY_ASSIGN(std::byte* const there, find(from, bytes), "get");
  if (bytes == 0) return Status::ok();
  if (is_on_device(from) || is_device(to)) return device()->copy(to, there, bytes);
  copy_bytes(to, there, bytes);
  std::atomic_thread_fence(std::memory_order_acquire);
  return Status::ok();
}

Status DeviceLink::get_nbi(OperationContext& context, void* to, const RemotePlace& from,
                           std::size_t bytes) {
  return behind_ == nullptr || is_device(to) ? get(context, to, from, bytes)
                                             : behind_->get_nbi(context, to, from, bytes);
}

Status DeviceLink::put_signal(OperationContext& context, const RemotePlace& to, const void* from,
                              std::size_t bytes, const RemotePlace& signal, std::uint64_t value,
                              SignalOp op) {
  if (behind_ != nullptr && !is_on_device(signal) && !(bytes != 0 && is_device(from)))
    return behind_->put_signal(context, to, from, bytes, signal, value, op);
  const AtomicOp update{op == SignalOp::kSet ? AtomicKind::kSet : AtomicKind::kAdd, 8, value};
  // Refuses before the data.
  if (behind_ == nullptr) MEMSPAN_TRY(find(signal, update.width).status(), "put_signal");
  if (is_on_device(signal)) MEMSPAN_PASS(check_device_atomic(update, signal));
  if (bytes != 0) MEMSPAN_PASS(put(context, to, from, bytes));
  if (behind_ != nullptr) MEMSPAN_PASS(behind_->fence(context));
  return atomic(context, update, signal, nullptr);
}

Status DeviceLink::move(OperationContext& context, MoveDirection direction,
                        std::span<const MovePiece> pieces) {
  const bool is_behind =
      behind_ != nullptr && std::none_of(pieces.begin(), pieces.end(), [&](const MovePiece& piece) {
        return is_device(piece.local);
      });
  return is_behind ? behind_->move(context, direction, pieces)
                   : Link::move(context, direction, pieces);
}

// On a word in device memory, set is a put: it may still be in flight on return, and gives 0 as the
// previous value. Fetch is a get.
Status DeviceLink::atomic(OperationContext& context, const AtomicOp& op, const RemotePlace& at,
                          std::uint64_t* fetched) {
  if (behind_ == nullptr) {
    MEMSPAN_TRY_ASSIGN(std::byte* const there, find(at, op.width), "an atomic");
    if (!is_on_device(at)) return checked_atomic(there, op, fetched);
  }
  if (!is_on_device(at)) return behind_->atomic(context, op, at, fetched);
  MEMSPAN_PASS(check_device_atomic(op, at));
  std::uint64_t value = op.operand;
  auto low = static_cast<std::uint32_t>(op.operand);
  void* const here = op.width == sizeof low ? static_cast<void*>(&low) : &value;
  // The word here is host memory.
  Link& link = behind_ == nullptr ? *this : *behind_;
  if (op.kind == AtomicKind::kSet) {
    if (fetched != nullptr) *fetched = 0;
    return link.put(context, at, here, op.width);
  }
  MEMSPAN_PASS(link.get(context, here, at, op.width));
  if (fetched != nullptr) *fetched = op.width == sizeof low ? low : value;
  return Status::ok();
}

Status DeviceLink::fence(OperationContext& context) {
  if (behind_ != nullptr) return behind_->fence(context);
  std::atomic_thread_fence(std::memory_order_release);
  return Status::ok();
}

std::uint64_t DeviceLink::start_quiet(OperationContext& context) {
  return behind_ == nullptr ? 0 : behind_->start_quiet(context);
}

Status DeviceLink::finish_quiet(OperationContext& context, std::uint64_t ticket) {
  if (behind_ != nullptr) return behind_->finish_quiet(context, ticket);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return Status::ok();
}

}  // namespace memspan
