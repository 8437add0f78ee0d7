// SPDX-License-Identifier: Apache-2.0
#include "transport/staging_link.h"

#include <algorithm>
#include <vector>

namespace memspan {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

std::vector<std::byte> buffer_for(std::size_t bytes) {
  return std::vector<std::byte>(std::min(bytes, kBufferBytes));
}

bool is_device(const RemotePlace& place) {
  return place.region.kind == MemoryKind::kDevice;
}

}  // namespace

// A put returns when its source may be changed, so one buffer suffices.
Status StagingLink::put_staged(OperationContext& context, const RemotePlace& to,
                               const std::byte* from, std::size_t bytes) {
  std::vector<std::byte> buffer = buffer_for(bytes);
  for (std::size_t done = 0; done < bytes; done += buffer.size()) {
    const std::size_t now = std::min(buffer.size(), bytes - done);
    MEMSPAN_PASS(local_.device()->copy(buffer.data(), from + done, now));
    MEMSPAN_PASS(behind_.put(context, {to.region, to.offset + done}, buffer.data(), now));
  }
  return Status::ok();
}

Status StagingLink::get_staged(OperationContext& context, std::byte* to, const RemotePlace& from,
                               std::size_t bytes) {
  std::vector<std::byte> buffer = buffer_for(bytes);
  for (std::size_t done = 0; done < bytes; done += buffer.size()) {
    const std::size_t now = std::min(buffer.size(), bytes - done);
    MEMSPAN_PASS(behind_.get(context, buffer.data(), {from.region, from.offset + done}, now));
    MEMSPAN_PASS(local_.device()->copy(to + done, buffer.data(), now));
  }
  return Status::ok();
}

Status StagingLink::put(OperationContext& context, const RemotePlace& to, const void* from,
                        std::size_t bytes) {
  if (local_.is_device(from))
    return put_staged(context, to, static_cast<const std::byte*>(from), bytes);
  return behind_.put(context, to, from, bytes);
}

Status StagingLink::put_nbi(OperationContext& context, const RemotePlace& to, const void* from,
                            std::size_t bytes) {
  return local_.is_device(from) ? put(context, to, from, bytes)
                                : behind_.put_nbi(context, to, from, bytes);
}

Status StagingLink::get(OperationContext& context, void* to, const RemotePlace& from,
                        std::size_t bytes) {
  if (local_.is_device(to)) return get_staged(context, static_cast<std::byte*>(to), from, bytes);
  return behind_.get(context, to, from, bytes);
}

Status StagingLink::get_nbi(OperationContext& context, void* to, const RemotePlace& from,
                            std::size_t bytes) {
  return local_.is_device(to) ? get(context, to, from, bytes)
                              : behind_.get_nbi(context, to, from, bytes);
}

Status StagingLink::put_signal(OperationContext& context, const RemotePlace& to, const void* from,
                               std::size_t bytes, const RemotePlace& signal, std::uint64_t value,
                               SignalOp op) {
  if (!is_device(signal) && !(bytes != 0 && local_.is_device(from)))
    return behind_.put_signal(context, to, from, bytes, signal, value, op);
  const AtomicOp update{op == SignalOp::kSet ? AtomicKind::kSet : AtomicKind::kAdd, 8, value};
  if (is_device(signal) && update.kind != AtomicKind::kSet) return no_device_atomic(update, signal);
  if (bytes != 0) MEMSPAN_PASS(put(context, to, from, bytes));
  MEMSPAN_PASS(behind_.fence(context));
  return atomic(context, update, signal, nullptr);
}

Status StagingLink::move(OperationContext& context, MoveDirection direction,
                         std::span<const MovePiece> pieces) {
  const bool is_host = std::none_of(pieces.begin(), pieces.end(), [&](const MovePiece& piece) {
    return local_.is_device(piece.local);
  });
  return is_host ? behind_.move(context, direction, pieces)
                 : Link::move(context, direction, pieces);
}

Status StagingLink::atomic(OperationContext& context, const AtomicOp& op, const RemotePlace& at,
                           std::uint64_t* fetched) {
  if (!is_device(at)) return behind_.atomic(context, op, at, fetched);
  return atomic_by_copies(behind_, context, op, at, fetched);
}

}  // namespace memspan
