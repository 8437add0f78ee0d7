// SPDX-License-Identifier: Apache-2.0
#include "world/introduction.h"

#include "store/fields.h"

namespace memspan {

std::string Introduction::encode() const {
  FieldWriter out;
  out(process, heap_bytes, commit_mode, program, address, heap.encode(),
      data ? data->encode() : std::string());
  return out.take();
}

Result<Introduction> Introduction::decode(std::string_view bytes) {
  FieldReader in(bytes);
  Introduction read;
  std::string heap;
  std::string data;
  in(read.process, read.heap_bytes, read.commit_mode, read.program, read.address, heap, data);
  if (!in.is_finished())
    return Status(Code::kInvalidArgument, "what a process says of itself cannot be read");
  MEMSPAN_TRY_ASSIGN(read.heap, RemoteRegion::decode(heap), "reading where a heap is");
  if (!data.empty()) {
    MEMSPAN_TRY_ASSIGN(read.data, RemoteRegion::decode(data), "reading where variables are");
  }
  return read;
}

}  // namespace memspan
