// SPDX-License-Identifier: Apache-2.0
// The link to one peer in a job with device memory: either end of a copy may be host or device
// memory.
//
// Regions of the peer that are mapped here are copied by the processor, or by the device if an end
// is device memory; the copy is complete when the call returns. Without mapped memory, another link
// reaches the peer, a local end in device memory uses a host buffer, and the owner stages its own
// device memory. Device memory supports only the atomics set and fetch, as copies of the word; the
// others return kNotSupported.
//
// It carries no messages. Thread-safe like any Link; sizes are in bytes.
#pragma once

#include <fmt/format.h>

#include <array>

#include "device/choice.h"
#include "device/host/copy.h"
#include "transport/link.h"

namespace memspan::inline transport {

class DeviceLink final : public Link {
 public:
  // `behind` reaches the peer, tracks the outstanding operations, and must outlive this link. Null:
  // the peer's memory is mapped here.
  explicit DeviceLink(Link* behind) : behind_(behind) {}

  // Without `behind`: adds a region of the peer, mapped at `mapped_at`. Call it before the first
  // use.
  void add(const RemoteRegion& region, std::byte* mapped_at) {
    MEMSPAN_CHECK(region.id.number < kMostRegions);
    mapped_[region.id.number] = {mapped_at, region.bytes};
  }

  Status move(OperationContext& context, MoveDirection direction,
              std::span<const MovePiece> pieces) override {
    const auto is_device_piece = [&](const MovePiece& piece) { return is_device(piece.local); };
    if (behind_ != nullptr && std::none_of(pieces.begin(), pieces.end(), is_device_piece))
      return behind_->move(context, direction, pieces);
    for (const MovePiece& piece : pieces) {
      if (behind_ == nullptr)
        MEMSPAN_PASS(move_mapped(direction, piece));
      else if (is_device(piece.local))
        MEMSPAN_PASS(move_staged(context, direction, piece));
      else
        MEMSPAN_PASS(behind_->move(context, direction, {&piece, 1}));
    }
    return Status::ok();
  }

  Status put_signal(OperationContext& context, const RemotePlace& to, const void* from,
                    std::size_t bytes, const RemotePlace& signal, std::uint64_t value,
                    SignalOp op) override {
    if (behind_ != nullptr && !is_on_device(signal) && !(bytes != 0 && is_device(from)))
      return behind_->put_signal(context, to, from, bytes, signal, value, op);
    const AtomicOp update{op == SignalOp::kSet ? AtomicKind::kSet : AtomicKind::kAdd, 8, value};
    // Refuses before the data.
    if (behind_ == nullptr) MEMSPAN_TRY(find(signal, update.width).status(), "put_signal");
    if (is_on_device(signal)) MEMSPAN_PASS(check_device_atomic(update, signal));
    if (bytes != 0) MEMSPAN_PASS(put(context, to, from, bytes));
    return atomic(context, update, signal, nullptr);
  }

  // On a word in device memory, set is a put: it may still be in flight on return, and gives 0 as
  // the previous value. Fetch is a get.
  Status atomic(OperationContext& context, const AtomicOp& op, const RemotePlace& at,
                std::uint64_t* fetched) override {
    if (behind_ == nullptr) {
      MEMSPAN_TRY_ASSIGN(std::byte* const there, find(at, op.width), "an atomic");
      if (!is_on_device(at)) return checked_atomic(there, op, fetched);
    }
    if (!is_on_device(at)) return behind_->atomic(context, op, at, fetched);
    MEMSPAN_PASS(check_device_atomic(op, at));
    // The word here is host memory. Both processors that we build for are little-endian.
    std::uint64_t value = 0;
    Link& link = behind_ == nullptr ? *this : *behind_;
    if (op.kind == AtomicKind::kFetch)
      MEMSPAN_PASS(link.get(context, &value, at, op.width));
    else
      MEMSPAN_PASS(link.put(context, at, &op.operand, op.width));
    if (fetched != nullptr) *fetched = value;
    return Status::ok();
  }

 private:
  static constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
  // Region numbers are below this.
  static constexpr std::size_t kMostRegions = 4;
  struct Mapped {
    std::byte* base = nullptr;
    std::uint64_t bytes = 0;
  };

  static bool is_on_device(const RemotePlace& place) {
    return place.region.kind == MemoryKind::kDevice;
  }

  // Ok for those that are copies of the word.
  static Status check_device_atomic(const AtomicOp& op, const RemotePlace& at) {
    constexpr const char* kNames[] = {"fetch", "set", "swap", "compare-and-swap",
                                      "add",   "and", "or",   "xor"};
    if (op.kind == AtomicKind::kSet || op.kind == AtomicKind::kFetch) return Status::ok();
    return {Code::kNotSupported, fmt::format("an atomic {} on a word at offset {} of the symmetric "
                                             "heap in memory of a device: from the host there are "
                                             "set and fetch, the others are for kernels",
                                             kNames[static_cast<int>(op.kind)], at.offset)};
  }

  // The address of a mapped place.
  Result<std::byte*> find(const RemotePlace& place, std::size_t bytes) const {
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

  // The first use opens the device. Null if there is no device. Then no memory is device memory.
  Device* device() {
    Device* known = device_.load(std::memory_order_acquire);
    if (known == nullptr && (known = other_device()) != nullptr)
      device_.store(known, std::memory_order_release);
    return known;
  }

  bool is_device(const void* pointer) {
    Device* const known = device();
    return known != nullptr && known->owns(pointer);
  }
  // The local end is device memory. A put returns when its source may be changed, so one buffer
  // suffices.
  Status move_staged(OperationContext& context, MoveDirection direction, const MovePiece& piece) {
    const bool is_put = direction == MoveDirection::kPut;
    std::vector<std::byte> buffer(std::min(piece.bytes, kBufferBytes));
    for (std::size_t done = 0; done < piece.bytes; done += buffer.size()) {
      const std::size_t now = std::min(buffer.size(), piece.bytes - done);
      const MovePiece part{buffer.data(), piece.region, piece.offset + done, now};
      if (is_put) MEMSPAN_PASS(device()->copy(buffer.data(), piece.local + done, now));
      MEMSPAN_PASS(behind_->move(context, direction, {&part, 1}));
      if (!is_put) MEMSPAN_PASS(device()->copy(piece.local + done, buffer.data(), now));
    }
    return Status::ok();
  }

  Status move_mapped(MoveDirection direction, const MovePiece& piece) {
    const bool is_put = direction == MoveDirection::kPut;
    const RemotePlace place{*piece.region, piece.offset};
    MEMSPAN_TRY_ASSIGN(std::byte* const there, find(place, piece.bytes), is_put ? "put" : "get");
    if (piece.bytes == 0) return Status::ok();
    std::byte* const to = is_put ? there : piece.local;
    const std::byte* const from = is_put ? piece.local : there;
    if (is_on_device(place) || is_device(piece.local)) return device()->copy(to, from, piece.bytes);
    copy_bytes(to, from, piece.bytes);
    if (!is_put) std::atomic_thread_fence(std::memory_order_acquire);
    return Status::ok();
  }

  Link* const behind_;
  std::array<Mapped, kMostRegions> mapped_;  // by number
  std::atomic<Device*> device_{nullptr};
};

}  // namespace memspan::inline transport
