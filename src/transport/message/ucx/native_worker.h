// SPDX-License-Identifier: Apache-2.0
// One-sided access by UCX, with its own context and worker beside those of the streams. The first
// use sets them up: most jobs have no network for it, or no large transfer.
//
// The context has no TCP, so an operation either uses a network that reaches the peer's memory by
// itself or cannot begin. It has no port: an endpoint is made from the address in a key, and keys
// are sent over connections whose ends know each other.
//
// All UCX calls hold the mutex, always briefly. The engine watches an epoll (the gate), which shows
// the worker's descriptor while no thread waits in a call. A waiting thread serves the worker
// itself.
#pragma once

#include <ucp/api/ucp.h>

#include <array>
#include <map>

#include "core/fd.h"
#include "core/mutex.h"
#include "transport/message/carrier.h"

namespace memspan::ucx {

// Thread-safe. Outlives the pieces of memory that it opened.
class NativeWorker final : public NativeAccess {
 public:
  // `streams`: the descriptor of the carrier's other worker.
  explicit NativeWorker(int streams);
  ~NativeWorker() override;
  NativeWorker(const NativeWorker&) = delete;
  NativeWorker& operator=(const NativeWorker&) = delete;

  // For both: an epoll, which the engine watches.
  int descriptor() const { return gate_.get(); }
  NativeAccess* access() { return this; }
  // For the thread that serves that descriptor.
  void progress() MEMSPAN_EXCLUDES(mutex_);

  // The key for a peer: the worker's address, the range's, and UCX's key.
  Result<std::string> key(std::byte* base, std::size_t bytes) override MEMSPAN_EXCLUDES(mutex_);
  void retract(std::byte* base, std::size_t bytes) override MEMSPAN_EXCLUDES(mutex_);
  Result<std::unique_ptr<NativeMemory>> open(std::string_view key) override
      MEMSPAN_EXCLUDES(mutex_);
  std::uint64_t registrations() const override { return registrations_.load(); }

 private:
  class Piece;
  // Leads to one peer. UCX passes its address to callbacks.
  struct Endpoint {
    ucp_ep_h handle = nullptr;  // null when it was closed
    std::string failure;
  };
  struct Registered {
    std::size_t bytes;
    ucp_mem_h memory;
    std::string key;
  };
  using Requests = std::array<ucs_status_ptr_t, 2>;

  bool is_foreign() const;
  // Sets up UCX, unless it was tried.
  Status begin() MEMSPAN_REQUIRES(mutex_);
  Status start() MEMSPAN_REQUIRES(mutex_);
  static void on_failure(void* endpoint, ucp_ep_h handle, ucs_status_t status);
  Result<Endpoint*> connect(const std::string& address) MEMSPAN_REQUIRES(mutex_);
  Status finish(Endpoint& endpoint, Requests requests, const GiveUp& give_up)
      MEMSPAN_EXCLUDES(mutex_);
  void end_early(Endpoint& endpoint, const Requests& requests) MEMSPAN_EXCLUDES(mutex_);
  bool are_done(const Requests& requests) MEMSPAN_REQUIRES(mutex_);
  Status collect(const Endpoint& endpoint, const Requests& requests) MEMSPAN_REQUIRES(mutex_);
  void close(Endpoint& endpoint, const Deadline& limit) MEMSPAN_REQUIRES(mutex_);
  // Makes all possible progress; then the descriptor shows later events.
  void progress_and_arm() MEMSPAN_REQUIRES(mutex_);
  void set_gate(int operation, std::uint32_t events) MEMSPAN_REQUIRES(mutex_);
  void close_gate() MEMSPAN_REQUIRES(mutex_);
  void open_gate() MEMSPAN_REQUIRES(mutex_);

  const int process_;
  Fd gate_;
  std::atomic<bool> is_ready_{false};  // UCX is set up; then these are constant
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int descriptor_ = -1;
  std::string address_;
  std::atomic<std::uint64_t> registrations_{0};

  Mutex mutex_;
  bool has_begun_ MEMSPAN_GUARDED_BY(mutex_) = false;
  Status begun_ MEMSPAN_GUARDED_BY(mutex_);
  int waiting_ MEMSPAN_GUARDED_BY(mutex_) = 0;                                // threads in calls
  std::map<const std::byte*, Registered> ranges_ MEMSPAN_GUARDED_BY(mutex_);  // until retracted
  // By the peer's address. They live as long as the worker.
  std::map<std::string, Endpoint> endpoints_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan::ucx
