// SPDX-License-Identifier: Apache-2.0
// A PE's message to all others at join, if some of them are reached by links: its address, its
// regions, and the values that must be equal everywhere.
#pragma once

#include <optional>

#include "store/fields.h"
#include "transport/link.h"

namespace memspan::inline world {

// A value.
struct Introduction {
  std::int32_t process = 0;
  std::uint64_t heap_bytes = 0;
  std::uint32_t commit_mode = 0;
  std::uint64_t program = 0;  // StaticSegment::identity; 0: its variables are not symmetric
  std::string address;        // MessageTransport::address()
  RemoteRegion heap;
  std::optional<RemoteRegion> data;  // the static symmetric segment

  std::string encode() const {
    FieldWriter out;
    out(process, heap_bytes, commit_mode, program, address, heap.encode(),
        data ? data->encode() : std::string());
    return out.take();
  }
  static Result<Introduction> decode(std::string_view bytes) {
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
};

}  // namespace memspan::inline world
