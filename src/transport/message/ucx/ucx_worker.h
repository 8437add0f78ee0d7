// SPDX-License-Identifier: Apache-2.0
// UCX of one carrier: a context, a worker, and the channels of its connections. UCX's active
// messages carry everything; UCX chooses how (eager or rendezvous, and over which networks).
#pragma once

#include <unordered_map>

#include "net/socket_address.h"
#include "transport/message/ucx/channel.h"
#include "transport/message/ucx/ucx_carrier.h"

namespace memspan::ucx {

// One thread at a time. Shared by a carrier, its listener and its streams.
class Worker final : public ChannelWorker, NotCopyable {
 public:
  static Result<std::shared_ptr<Worker>> create(const UcxOptions& options);
  // Waits, for a bounded time, until the peers have received all.
  ~Worker() override;

  // Readable when there is work, after prepare_sleep() has returned true.
  int descriptor() const { return descriptor_; }
  // False: there is work now.
  bool prepare_sleep();
  // True in a child of fork(), which must touch nothing.
  bool is_foreign() const;

  // Call it once. Returns the port.
  Result<int> listen(const SocketAddress& at);
  // Null if no connection waits.
  std::shared_ptr<Channel> accept();
  Result<std::shared_ptr<Channel>> connect(const SocketAddress& to);
  // Whether the peer has answered. kUnreachable: it never will.
  Result<bool> opens(const Channel& channel);

  ssize_t receive(Channel& channel, std::span<const iovec> to);
  ssize_t send(Channel& channel, std::span<const iovec> from);
  void cut(Channel& channel);

  // For its channels.
  bool post(Channel& channel, const MessageHeader& header, std::span<const iovec> data) override;
  void fetch(void* offer, Arrival& arrival) override;
  void release(void* held) override;

 private:
  // A channel that was cut or has failed, and the closing of its endpoint, once it has begun.
  struct Closing {
    std::shared_ptr<Channel> channel;
    Deadline until;
    bool has_begun = false;
    ucs_status_ptr_t request = nullptr;
  };

  explicit Worker(const std::string& device);
  Status start(const std::string& device);

  static ucs_status_t on_message(void* worker, const void* header, std::size_t header_bytes,
                                 void* data, std::size_t bytes, const ucp_am_recv_param_t* how);
  static void on_sent(void* request, ucs_status_t status, void* buffer);
  static void on_fetched(void* request, ucs_status_t status, std::size_t bytes, void* arrival);
  static void on_connection(ucp_conn_request_h request, void* worker);
  static void on_failure(void* channel, ucp_ep_h endpoint, ucs_status_t status);

  // Until nothing moves, or `reader` has something to read.
  void progress(const Channel* reader = nullptr);
  void accept_requests();
  void close_ended();
  void close_later(Channel& channel);
  Result<std::shared_ptr<Channel>> make_channel(ucp_ep_params_t& params);

  const int process_;
  const std::size_t most_;  // bytes of a message
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_listener_h listener_ = nullptr;
  ucp_datatype_t packed_ = 0;
  int descriptor_ = -1;     // of UCX
  bool may_sleep_ = false;  // since prepare_sleep(); the descriptor shows what comes
  std::deque<std::shared_ptr<Channel>> accepted_;
  std::vector<ucp_conn_request_h> requests_;
  // The channels of all open endpoints: UCX passes a channel's address to callbacks.
  std::unordered_map<Channel*, std::shared_ptr<Channel>> channels_;
  std::unordered_map<ucp_ep_h, Channel*> by_endpoint_;
  std::vector<Closing> closing_;
  BufferPool sends_;
  BufferPool fetches_;
};

}  // namespace memspan::ucx
