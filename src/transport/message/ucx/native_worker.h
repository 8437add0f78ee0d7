// SPDX-License-Identifier: Apache-2.0
// One-sided access by UCX, with its own context and worker beside those of the streams. The first
// use sets them up: most jobs have no network for it, or no large transfer.
//
// The context has no TCP, so an operation either uses a network that reaches the peer's memory by
// itself or cannot begin. It has no port: an endpoint is made from the address in a key, and keys
// are sent over connections whose ends know each other.
//
// The engine watches an epoll (the gate), which shows the worker's descriptor while no thread waits
// in a call. A waiting thread serves the worker itself.
#pragma once

#include "transport/message/carrier.h"

namespace memspan::ucx {

// Thread-safe. Outlives the pieces of memory that it opened. A key for a peer is the worker's
// address, the range's, and UCX's key.
class NativeWorker : public NativeAccess {
 public:
  // For both workers: an epoll, which the engine watches.
  virtual int descriptor() const = 0;
  // For the thread that serves that descriptor.
  virtual void progress() = 0;
};

// `streams`: the descriptor of the carrier's other worker.
std::shared_ptr<NativeWorker> make_native_worker(int streams);

}  // namespace memspan::ucx
