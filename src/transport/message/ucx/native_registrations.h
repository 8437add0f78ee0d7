// SPDX-License-Identifier: Apache-2.0
// Memory of this process that peers reach by themselves. The first request for a range's key
// registers it with UCX, once, until it is retracted.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>
#include <map>
#include <string>

#include "core/status.h"

namespace memspan::ucx {

// For one worker; the caller holds its mutex.
class NativeRegistrations {
 public:
  // The key for a peer: the worker's address, the range's, and UCX's key.
  Result<std::string> key(ucp_context_h context, const std::string& address, std::byte* base,
                          std::size_t bytes);
  // Ends those that begin in the range.
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
