// SPDX-License-Identifier: Apache-2.0
// Memory of this process that peers reach by themselves: each range is registered with UCX once,
// when its key is first asked for, and until it is retracted.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>
#include <map>
#include <string>

#include "core/status.h"

namespace memspan::ucx {

// Of one worker, with its mutex held.
class NativeRegistrations {
 public:
  // What a peer needs to open the memory: the worker's address, the range's, and UCX's key.
  Result<std::string> key(ucp_context_h context, const std::string& address, std::byte* base,
                          std::size_t bytes);
  // Those that begin in the range.
  void retract(ucp_context_h context, const std::byte* base, std::size_t bytes);
  void retract_all(ucp_context_h context);
  // Made so far.
  std::uint64_t count() const { return count_; }

 private:
  struct Registered {
    std::size_t bytes;
    ucp_mem_h memory;
    std::string key;
  };
  std::uint64_t count_ = 0;
  std::map<const std::byte*, Registered> ranges_;
};

}  // namespace memspan::ucx
