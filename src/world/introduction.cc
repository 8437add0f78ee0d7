// SPDX-License-Identifier: Apache-2.0
#include "world/introduction.h"

#include "core/bytes.h"

namespace memspan {

std::string Introduction::encode() const {
  ByteWriter out;
  out.u32(static_cast<std::uint32_t>(process));
  out.u64(heap_bytes);
  out.u32(commit_mode);
  out.u64(program);
  out.text(address);
  out.text(heap ? heap->encode() : std::string());
  out.text(data ? data->encode() : std::string());
  return out.take();
}

Result<Introduction> Introduction::decode(std::string_view bytes) {
  ByteReader in(bytes);
  Introduction read;
  read.process = static_cast<std::int32_t>(in.u32());
  read.heap_bytes = in.u64();
  read.commit_mode = in.u32();
  read.program = in.u64();
  read.address = in.text();
  const std::string_view heap = in.text();
  const std::string_view data = in.text();
  if (!in.is_finished())
    return Status(Code::kInvalidArgument, "what a process says of itself cannot be read");
  if (!heap.empty()) {
    MEMSPAN_TRY_ASSIGN(read.heap, RemoteRegion::decode(heap), "reading where a heap is");
  }
  if (!data.empty()) {
    MEMSPAN_TRY_ASSIGN(read.data, RemoteRegion::decode(data), "reading where variables are");
  }
  return read;
}

}  // namespace memspan
