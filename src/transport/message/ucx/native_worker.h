// SPDX-License-Identifier: Apache-2.0
// One-sided access by UCX, with its own context and worker beside those of the streams.
//
// The context has no TCP, so an operation either uses a network that reaches the peer's memory by
// itself or cannot begin. It has no port: an endpoint is made from the address in a key, and keys
// are sent over connections whose ends know each other.
//
// All UCX calls hold the mutex, always briefly. The gate, which the engine watches, shows
// the worker's descriptor while no thread waits in a call.
#pragma once

#include <ucp/api/ucp.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/clock.h"
#include "core/mutex.h"
#include "core/status.h"
#include "transport/message/native_access.h"
#include "transport/message/ucx/gate.h"
#include "transport/message/ucx/native_registrations.h"

namespace memspan::ucx {

// Thread-safe. Shared by the carrier and the pieces of memory that it opened.
class NativeWorker final : public std::enable_shared_from_this<NativeWorker> {
 public:
  // `gate`: an epoll, which must outlive it.
  static Result<std::shared_ptr<NativeWorker>> create(int gate);
  ~NativeWorker();
  NativeWorker(const NativeWorker&) = delete;
  NativeWorker& operator=(const NativeWorker&) = delete;

  // As in NativeAccess.
  Result<std::string> key(std::byte* base, std::size_t bytes) MEMSPAN_EXCLUDES(mutex_);
  void retract(const std::byte* base, std::size_t bytes) MEMSPAN_EXCLUDES(mutex_);
  Result<std::unique_ptr<NativeMemory>> open(std::string_view key) MEMSPAN_EXCLUDES(mutex_);
  std::uint64_t registrations() MEMSPAN_EXCLUDES(mutex_);
  // Handles what the gate shows.
  void progress() MEMSPAN_EXCLUDES(mutex_);

 private:
  class Piece;
  // Leads to one peer. UCX passes its address to callbacks.
  struct Endpoint {
    ucp_ep_h handle = nullptr;  // null when it was closed
    std::string failure;
  };
  using Requests = std::array<ucs_status_ptr_t, 2>;

  NativeWorker();
  Status start(int gate);
  static void on_failure(void* endpoint, ucp_ep_h handle, ucs_status_t status);
  Result<std::shared_ptr<Endpoint>> connect(const std::string& address) MEMSPAN_REQUIRES(mutex_);
  template <typename Begin>
  Status run(Endpoint& endpoint, const GiveUp& give_up, Begin begin) MEMSPAN_EXCLUDES(mutex_);
  Status put(Endpoint& endpoint, ucp_rkey_h key, std::uint64_t to, const void* from,
             std::size_t bytes, const GiveUp& give_up) MEMSPAN_EXCLUDES(mutex_);
  Status get(Endpoint& endpoint, ucp_rkey_h key, void* to, std::uint64_t from, std::size_t bytes,
             const GiveUp& give_up) MEMSPAN_EXCLUDES(mutex_);
  void release(const Endpoint& endpoint, ucp_rkey_h key) MEMSPAN_EXCLUDES(mutex_);
  Status finish(Endpoint& endpoint, Requests requests, const GiveUp& give_up)
      MEMSPAN_EXCLUDES(mutex_);
  void end_early(Endpoint& endpoint, const Requests& requests) MEMSPAN_EXCLUDES(mutex_);
  bool are_done(const Requests& requests) MEMSPAN_REQUIRES(mutex_);
  Status collect(const Endpoint& endpoint, const Requests& requests) MEMSPAN_REQUIRES(mutex_);
  void close(Endpoint& endpoint, const Deadline& limit) MEMSPAN_REQUIRES(mutex_);
  bool is_foreign() const;
  // Makes all possible progress; then the descriptor shows later events.
  void progress_and_arm() MEMSPAN_REQUIRES(mutex_);
  void open_gate() MEMSPAN_REQUIRES(mutex_);

  const int process_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int descriptor_ = -1;
  std::string address_;

  Mutex mutex_;
  Gate gate_ MEMSPAN_GUARDED_BY(mutex_);
  NativeRegistrations registrations_ MEMSPAN_GUARDED_BY(mutex_);
  // By the peer's address. Shared with the pieces that use them; live as long as the worker.
  std::map<std::string, std::shared_ptr<Endpoint>> endpoints_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan::ucx
