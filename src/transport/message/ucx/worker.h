// SPDX-License-Identifier: Apache-2.0
// UCX of one carrier: a context, a worker, and the channels of its connections.
//
// All UCX calls hold the mutex, always briefly. Whenever it is free the worker is armed: its
// descriptor becomes readable when there is work.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/fd.h"
#include "core/mutex.h"
#include "core/status.h"
#include "transport/message/ucx/buffer_pool.h"
#include "transport/message/ucx/channel.h"
#include "transport/message/ucx/rendezvous.h"
#include "transport/message/ucx/socket_address.h"
#include "transport/message/ucx/ucx_carrier.h"

namespace memspan::ucx {

// Thread-safe. Shared by a carrier, its listener and its streams.
class Worker final : public ChannelWorker {
 public:
  static Result<std::shared_ptr<Worker>> create(const UcxOptions& options);
  // Waits, for a bounded time, until the peers have received all.
  ~Worker() override;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Readable when accept() has work.
  int descriptor() const { return epoll_.get(); }
  // True in a child of fork(), which must touch nothing.
  bool is_foreign() const;

  // Call it once. Returns the port.
  Result<int> listen(const SocketAddress& at) MEMSPAN_EXCLUDES(mutex_);
  // Null if no connection waits.
  std::shared_ptr<Channel> accept() MEMSPAN_EXCLUDES(mutex_);
  Result<std::shared_ptr<Channel>> connect(const SocketAddress& to) MEMSPAN_EXCLUDES(mutex_);
  // Whether the peer has answered. kUnreachable: it never will.
  Result<bool> opens(Channel& channel) MEMSPAN_EXCLUDES(mutex_);

  ssize_t receive(Channel& channel, std::span<const iovec> to) MEMSPAN_EXCLUDES(mutex_);
  ssize_t send(Channel& channel, std::span<const iovec> from) MEMSPAN_EXCLUDES(mutex_);
  void cut(Channel& channel) MEMSPAN_EXCLUDES(mutex_);

  // For its channels, with the mutex held.
  bool post(ucp_ep_h endpoint, Chunk chunk, std::span<const iovec> payload) override;
  void release(ucp_ep_h endpoint, void* buffer) override;
  bool post_large(ucp_ep_h endpoint, std::uint64_t number,
                  std::span<const iovec> payload) override {
    return rendezvous_.send(endpoint, number, payload);
  }
  void fetch(void* message, Landing& landing) override { rendezvous_.fetch(message, landing); }
  void drop(void* message) override { rendezvous_.drop(message); }

 private:
  // A channel that was cut or has failed, and the closing of its endpoint, once it has begun.
  struct Closing {
    std::shared_ptr<Channel> channel;
    Deadline until;
    bool has_begun = false;
    ucs_status_ptr_t request = nullptr;
  };

  explicit Worker(UcxOptions::Rendezvous rendezvous);
  Status start(const std::string& device);

  static void on_sent(void* request, ucs_status_t status, void* buffer);
  static void on_connection(ucp_conn_request_h request, void* worker);
  static void on_failure(void* channel, ucp_ep_h endpoint, ucs_status_t status);

  void progress() MEMSPAN_REQUIRES(mutex_);
  void take_received() MEMSPAN_REQUIRES(mutex_);
  void accept_requests() MEMSPAN_REQUIRES(mutex_);
  void close_ended() MEMSPAN_REQUIRES(mutex_);
  void cut_locked(Channel& channel) MEMSPAN_REQUIRES(mutex_);
  void close_later(Channel& channel);
  void choose_rendezvous(Channel& channel) const;
  Result<std::shared_ptr<Channel>> make_channel(ucp_ep_params_t& params) MEMSPAN_REQUIRES(mutex_);
  template <typename Try>
  ssize_t retry(Try attempt) MEMSPAN_EXCLUDES(mutex_);

  const int process_;
  const UcxOptions::Rendezvous wanted_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int descriptor_ = -1;  // of UCX
  Fd epoll_;             // with it

  Mutex mutex_;
  ucp_listener_h listener_ MEMSPAN_GUARDED_BY(mutex_) = nullptr;
  std::deque<std::shared_ptr<Channel>> accepted_ MEMSPAN_GUARDED_BY(mutex_);
  // The rest is also guarded. UCX's callbacks use it while the mutex is held.
  std::vector<ucp_conn_request_h> requests_;
  // The channels of all open endpoints: UCX passes a channel's address to callbacks.
  std::unordered_map<Channel*, std::shared_ptr<Channel>> channels_;
  std::unordered_map<ucp_ep_h, Channel*> by_endpoint_;
  std::vector<Closing> closing_;
  BufferPool buffers_;
  Rendezvous rendezvous_;
};

}  // namespace memspan::ucx
