// SPDX-License-Identifier: Apache-2.0
// A way to reach memory of peers: it exposes regions of this process and makes links to peers.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/status.h"
#include "node/wait.h"
#include "transport/link.h"
#include "transport/region.h"

namespace memspan {

// A value: what a transport can do.
struct Capabilities {
  bool direct = false;    // links give pointers for plain loads and stores
  bool atomics = false;   // Link::atomic works, atomic with the processor's own
  bool ordered = false;   // puts of one link are applied in order without a fence
  bool messages = false;  // Link::send works
};

// Whom a link leads to. A value.
struct PeerAddress {
  int peer = 0;
  std::string name;     // for messages: "PE 3 on host b"
  std::string address;  // what Transport::address() of that process gave
};

// Thread-safe.
class Transport : public ProgressEngine {
 public:
  // "mapped", "cma", "message".
  virtual std::string_view name() const = 0;
  virtual const Capabilities& capabilities() const = 0;
  // What connect() of a peer needs; empty where nothing is.
  virtual std::string address() const = 0;
  virtual Result<std::unique_ptr<ExposedRegion>> expose(const LocalRegion& region) = 0;
  // Cheap: what takes time is done at the first use. The link must not outlive the transport.
  virtual Result<std::unique_ptr<Link>> connect(const PeerAddress& peer) = 0;
  // In a child of fork(): gives up everything that the peers could take for this process. The
  // transport and its links are of no use in the child.
  virtual void forget_in_child() {}
};

}  // namespace memspan
