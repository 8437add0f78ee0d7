// SPDX-License-Identifier: Apache-2.0
#include "transport/link.h"

#include <fmt/format.h>

#include "core/bytes.h"

namespace memspan::inline transport {
namespace {

template <typename T>
T apply(T* word, const AtomicOp& op) {
  T operand = static_cast<T>(op.operand);
  switch (op.kind) {
    case AtomicKind::kFetch:
      return __atomic_load_n(word, __ATOMIC_SEQ_CST);
    case AtomicKind::kSet:
    case AtomicKind::kSwap:
      return __atomic_exchange_n(word, operand, __ATOMIC_SEQ_CST);
    case AtomicKind::kCompareSwap: {
      T expected = static_cast<T>(op.compare);
      __atomic_compare_exchange_n(word, &expected, operand, false, __ATOMIC_SEQ_CST,
                                  __ATOMIC_SEQ_CST);
      return expected;
    }
    case AtomicKind::kAdd:
      return __atomic_fetch_add(word, operand, __ATOMIC_SEQ_CST);
    case AtomicKind::kAnd:
      return __atomic_fetch_and(word, operand, __ATOMIC_SEQ_CST);
    case AtomicKind::kOr:
      return __atomic_fetch_or(word, operand, __ATOMIC_SEQ_CST);
    case AtomicKind::kXor:
      return __atomic_fetch_xor(word, operand, __ATOMIC_SEQ_CST);
  }
  MEMSPAN_CHECK(!"an AtomicKind that the switch does not know");
  return 0;
}

}  // namespace

std::uint64_t apply_atomic(void* word, const AtomicOp& op) {
  if (op.width == 4) return apply(static_cast<std::uint32_t*>(word), op);
  return apply(static_cast<std::uint64_t*>(word), op);
}

Status checked_atomic(void* word, const AtomicOp& op, std::uint64_t* fetched) {
  if ((op.width != 4 && op.width != 8) || reinterpret_cast<std::uintptr_t>(word) % op.width != 0)
    return {Code::kInvalidArgument,
            fmt::format("an atomic of {} bytes at {}; allowed are aligned words of 4 and 8 bytes",
                        op.width, word)};
  const std::uint64_t before = apply_atomic(word, op);
  if (fetched != nullptr) *fetched = before;
  return Status::ok();
}

std::string RemoteRegion::encode() const {
  ByteWriter out;
  out.u32(id.number);
  out.u32(id.generation);
  out.u64(bytes);
  out.u8(static_cast<std::uint8_t>(kind));
  out.text(transport_key);
  return out.take();
}

Result<RemoteRegion> RemoteRegion::decode(std::string_view text) {
  ByteReader in(text);
  RemoteRegion region;
  region.id.number = in.u32();
  region.id.generation = in.u32();
  region.bytes = in.u64();
  const std::uint8_t kind = in.u8();
  region.kind = static_cast<MemoryKind>(kind);
  region.transport_key = in.text();
  if (!in.is_finished() || kind > static_cast<std::uint8_t>(MemoryKind::kDevice) ||
      region.id.number == 0 || region.id.generation == 0)
    return Status(Code::kInvalidArgument, "a peer's description of a region cannot be read");
  return region;
}

void OperationContext::use(Link& link) {
  MutexLock lock(mutex_);
  for (Use& use : used_)
    if (use.link == &link) return static_cast<void>(++use.count);
  used_.push_back({&link, 1});
}

// Another thread's quiet at the same time asks the same links, whose operations are not complete
// yet.
Status OperationContext::quiet() {
  std::vector<Use> used;
  {
    MutexLock lock(mutex_);
    used = used_;
  }
  std::vector<std::uint64_t> tickets(used.size());
  for (std::size_t i = 0; i < used.size(); ++i) tickets[i] = used[i].link->start_quiet(*this);
  Status first;
  for (std::size_t i = 0; i < used.size(); ++i) {
    Status status = used[i].link->finish_quiet(*this, tickets[i]);
    // Timed out or interrupted: it is still outstanding.
    if (status.code() != Code::kTimeout && status.code() != Code::kSystem) {
      MutexLock lock(mutex_);
      std::erase(used_, used[i]);  // unless it was used again
    }
    if (first.is_ok()) first = std::move(status);
  }
  return first;
}

}  // namespace memspan::inline transport
