// SPDX-License-Identifier: Apache-2.0
// A way to move bytes between processes. Two processes can use one when their domains are equal.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "core/status.h"
#include "device/pages.h"
#include "transport/link.h"

namespace memspan {

// A value: what a transport can do.
struct Capabilities {
  bool direct = false;          // links give pointers for plain loads and stores
  bool native_atomics = false;  // its atomics are atomic with the processor's own
  bool ordered = false;         // puts of one link arrive in order without a fence
};

// A peer's segment as this process knows it: bytes [offset, offset + bytes) of `pages`, to be seen
// at byte `at` of the transport's address range. `pages` must outlive the links.
struct PeerSegment {
  int peer = 0;
  const Pages* pages = nullptr;
  std::size_t offset = 0;
  std::size_t bytes = 0;
  std::size_t at = 0;
};

// Control calls come from one thread at a time.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::string_view name() const = 0;
  // Why it cannot work here, or ok.
  virtual Status viable() const = 0;
  // Peers with the same string can talk.
  virtual std::string domain() const = 0;
  virtual const Capabilities& capabilities() const = 0;
  // The link must not outlive the transport.
  virtual Result<std::unique_ptr<Link>> connect(const PeerSegment& segment) = 0;
};

}  // namespace memspan
