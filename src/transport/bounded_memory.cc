// SPDX-License-Identifier: Apache-2.0
#include "transport/bounded_memory.h"

#include <fmt/format.h>

#include "device/host/copy.h"

namespace memspan {
namespace {

Status outside(const char* what, std::uint64_t offset, std::size_t bytes, std::size_t have) {
  return {Code::kInvalidArgument,
          fmt::format("{} of {} bytes at offset {} leaves the segment of {} bytes", what, bytes,
                      offset, have)};
}

}  // namespace

Status BoundedMemory::write(std::uint64_t offset, const void* from, std::size_t bytes) const {
  if (!contains(offset, bytes)) return outside("a put", offset, bytes, bytes_);
  if (bytes != 0) copy_bytes(at(offset), from, bytes);
  return Status::ok();
}

Status BoundedMemory::read(void* to, std::uint64_t offset, std::size_t bytes) const {
  if (!contains(offset, bytes)) return outside("a get", offset, bytes, bytes_);
  if (bytes != 0) copy_bytes(to, at(offset), bytes);
  return Status::ok();
}

Status BoundedMemory::atomic(const AtomicOp& op, std::uint64_t offset,
                             std::uint64_t* fetched) const {
  if (!contains(offset, op.width)) return outside("an atomic", offset, op.width, bytes_);
  if ((op.width != 4 && op.width != 8) || offset % op.width != 0)
    return {Code::kInvalidArgument,
            fmt::format("an atomic of {} bytes at offset {}; allowed are aligned words "
                        "of 4 and 8 bytes",
                        op.width, offset)};
  std::uint64_t before = apply_atomic(at(offset), op);
  if (fetched != nullptr) *fetched = before;
  return Status::ok();
}

}  // namespace memspan
