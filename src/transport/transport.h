// SPDX-License-Identifier: Apache-2.0
// Reaches memory of peers: it exposes regions of this process and makes links to peers.
#pragma once

#include <memory>
#include <string>

#include "core/status.h"
#include "node/wait.h"
#include "transport/link.h"
#include "transport/region.h"

namespace memspan {

// The peer of a link. A value.
struct PeerAddress {
  int peer = 0;
  std::string name;     // for messages: "PE 3 on host b"
  std::string address;  // result of Transport::address() in that process
};

// Thread-safe.
class Transport : public ProgressEngine {
 public:
  // The address for connect() of a peer; may be empty.
  virtual std::string address() const = 0;
  virtual Result<std::unique_ptr<ExposedRegion>> expose(const LocalRegion& region) = 0;
  // Cheap: the first use does the slow work. The link must not outlive the transport.
  virtual Result<std::unique_ptr<Link>> connect(const PeerAddress& peer) = 0;
  // In a child of fork(): gives up everything by which peers could mistake the child for this
  // process. The transport and its links are unusable in the child.
  virtual void forget_in_child() {}
};

}  // namespace memspan
