// SPDX-License-Identifier: Apache-2.0
#include "transport/local_end.h"

#include <fmt/format.h>

namespace memspan {
namespace {

const char* name_of(AtomicKind kind) {
  switch (kind) {
    case AtomicKind::kFetch:
      return "fetch";
    case AtomicKind::kSet:
      return "set";
    case AtomicKind::kSwap:
      return "swap";
    case AtomicKind::kCompareSwap:
      return "compare-and-swap";
    case AtomicKind::kAdd:
      return "add";
    case AtomicKind::kAnd:
      return "and";
    case AtomicKind::kOr:
      return "or";
    case AtomicKind::kXor:
      return "xor";
  }
  return "atomic";
}

}  // namespace

Status atomic_by_copies(Link& link, OperationContext& context, const AtomicOp& op,
                        const RemotePlace& at, std::uint64_t* fetched) {
  if (op.kind != AtomicKind::kSet && op.kind != AtomicKind::kFetch) return no_device_atomic(op, at);
  std::uint64_t value = op.operand;
  auto low = static_cast<std::uint32_t>(op.operand);
  void* const here = op.width == sizeof low ? static_cast<void*>(&low) : &value;
  if (op.kind == AtomicKind::kSet) {
    if (fetched != nullptr) *fetched = 0;
    return link.put(context, at, here, op.width);
  }
  MEMSPAN_PASS(link.get(context, here, at, op.width));
  if (fetched != nullptr) *fetched = op.width == sizeof low ? low : value;
  return Status::ok();
}

Status no_device_atomic(const AtomicOp& op, const RemotePlace& at) {
  return {Code::kNotSupported, fmt::format("an atomic {} on a word at offset {} of the symmetric "
                                           "heap in memory of a device: from the host there are "
                                           "set and fetch, the others are for kernels",
                                           name_of(op.kind), at.offset)};
}

}  // namespace memspan
