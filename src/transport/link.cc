// SPDX-License-Identifier: Apache-2.0
#include "transport/link.h"

#include <fmt/format.h>

#include "core/check.h"

namespace memspan {
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

}  // namespace memspan
