// SPDX-License-Identifier: Apache-2.0
// UCX of one carrier: a context, a worker, and the channels of its connections. UCX's active
// messages carry everything; UCX chooses how (eager or rendezvous, and over which networks).
#pragma once

#include <fmt/format.h>
#include <poll.h>

#include <cstring>
#include <new>
#include <unordered_map>

#include "net/socket_address.h"
#include "transport/message/ucx/channel.h"
#include "transport/message/ucx/configuration.h"
#include "transport/message/ucx/ucx_carrier.h"

namespace memspan::ucx {

// Packs the data of a BufferPool::Buffer.
inline constexpr ucp_generic_dt_ops_t kPacks = {
    .start_pack = [](void*, const void* buffer, std::size_t) { return const_cast<void*>(buffer); },
    .start_unpack = [](void*, void* buffer, std::size_t) { return buffer; },
    .packed_size =
        [](void* buffer) { return static_cast<BufferPool::Buffer*>(buffer)->data.size(); },
    .pack = [](void* buffer, std::size_t offset, void* to, std::size_t most) -> std::size_t {
      const auto rest = static_cast<BufferPool::Buffer*>(buffer)->data.subspan(offset);
      const std::size_t bytes = std::min(most, rest.size());
      std::memcpy(to, rest.data(), bytes);
      return bytes;
    },
    // UCX only sends it.
    .unpack = [](void*, std::size_t, const void*, std::size_t) { return UCS_ERR_UNSUPPORTED; },
    .finish = [](void*) {}};

// One thread at a time. Shared by a carrier, its listener and its streams.
class Worker final : public ChannelWorker, NotCopyable {
 public:
  static Result<std::shared_ptr<Worker>> create(const UcxOptions& options) {
    std::shared_ptr<Worker> worker(new Worker(options.device));
    MEMSPAN_PASS(worker->start(options.device));
    return worker;
  }

  // Waits, for a bounded time, until the peers have received all.
  ~Worker() override {
    if (is_foreign()) {
      // Leaks the channels: their memory is the child's, their connections are the parent's.
      for (auto& [address, channel] : channels_)
        static_cast<void>(new (std::nothrow) std::shared_ptr<Channel>(channel));
      return;
    }
    for (const auto& channel : std::exchange(accepted_, {})) cut(*channel);
    const Deadline deadline = Deadline::after(2 * kCloseLimit);
    while (worker_ != nullptr && !channels_.empty() && !deadline.has_passed()) {
      progress();
      pollfd one{descriptor_, POLLIN, 0};
      constexpr int kLookMs = 50;  // for the deadlines of closing channels
      if (!channels_.empty() && prepare_sleep()) ::poll(&one, 1, kLookMs);
    }
    // UCX returns buffers of a closed endpoint in a later call.
    const Deadline given = Deadline::after(kGiveLimit);
    while (sends_.in_use() + fetches_.in_use() > 0 && !given.has_passed()) progress();
    if (listener_ != nullptr) ucp_listener_destroy(listener_);
    if (worker_ != nullptr) ucp_worker_destroy(worker_);
    if (packed_ != 0) ucp_dt_destroy(packed_);
    if (context_ != nullptr) ucp_cleanup(context_);
  }

  // Readable when there is work, after prepare_sleep() has returned true.
  int descriptor() const { return descriptor_; }

  // False: there is work now.
  bool prepare_sleep() {
    if (is_foreign()) return true;
    for (int round = 0; round < kRounds && accepted_.empty(); ++round) {
      if (ucp_worker_progress(worker_) != 0) continue;
      progress();
      if (has_arrived_) continue;
      // Busy also while UCX could not send all: over shared memory nothing shows that the peer has
      // freed space.
      may_sleep_ = ucp_worker_arm(worker_) == UCS_OK;
      if (may_sleep_) return accepted_.empty();
    }
    return false;
  }

  // True in a child of fork(), which must touch nothing.
  bool is_foreign() const { return process_.is_foreign(); }

  // Call it once. Returns the port.
  Result<int> listen(const SocketAddress& at) {
    ucp_listener_params_t params{};
    params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
    params.sockaddr = {at.get(), at.length};
    params.conn_handler = {on_connection, this};
    MEMSPAN_PASS(
        from_ucs("ucp_listener_create", ucp_listener_create(worker_, &params, &listener_)));
    ucp_listener_attr_t attributes{};
    attributes.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
    MEMSPAN_PASS(from_ucs("ucp_listener_query", ucp_listener_query(listener_, &attributes)));
    return SocketAddress::of(reinterpret_cast<const sockaddr&>(attributes.sockaddr)).port();
  }

  // Null if no connection waits.
  std::shared_ptr<Channel> accept() {
    if (is_foreign()) return nullptr;
    if (accepted_.empty()) progress();
    if (accepted_.empty()) return nullptr;
    auto channel = std::move(accepted_.front());
    accepted_.pop_front();
    return channel;
  }

  Result<std::shared_ptr<Channel>> connect(const SocketAddress& to) {
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
    params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    params.sockaddr = {to.get(), to.length};
    auto made = make_channel(params);
    if (!made.is_ok()) return Status(Code::kUnreachable, made.status().message());
    return made;
  }

  // Whether the peer has answered. kUnreachable: it never will.
  Result<bool> opens(const Channel& channel) {
    if (is_foreign()) return Status(Code::kUnreachable, "this process is a child");
    progress();
    if (!channel.failure().empty()) return Status(Code::kUnreachable, channel.failure());
    return channel.is_open();
  }

  ssize_t receive(Channel& channel, std::span<const iovec> to) {
    if (is_foreign()) return -1;
    if (!channel.is_readable() && !channel.is_cut()) {
      channel.set_reading(true);
      progress();
      channel.set_reading(false);
    }
    return channel.read(to);
  }

  ssize_t send(Channel& channel, std::span<const iovec> from) {
    if (is_foreign()) return -1;
    ssize_t done = channel.write(from);
    if (done == 0) {
      progress();
      done = channel.write(from);
    }
    // UCX could not send all: a thread that sleeps is to make progress.
    if (sends_.in_use() > 0 && std::exchange(may_sleep_, false)) ucp_worker_signal(worker_);
    return done;
  }

  void cut(Channel& channel) {
    if (is_foreign() || channel.is_cut()) return;
    channel.cut();
    close_later(channel);
    progress();
  }

  // For its channels.
  bool post(Channel& channel, const MessageHeader& header, std::span<const iovec> data) override {
    const std::size_t bytes = sizeof header + bytes_of(data);
    // UCX needs both until the message is sent.
    BufferPool::Buffer* const buffer = sends_.take(bytes);
    std::byte* const first = buffer->bytes.get();
    std::memcpy(first, &header, sizeof header);
    std::byte* at = first + sizeof header;
    for (const iovec& part : data) {
      std::memcpy(at, part.iov_base, part.iov_len);
      at += part.iov_len;
    }
    buffer->channel = &channel;
    buffer->data = {first + sizeof header, at};
    const bool is_packed = !buffer->data.empty() && bytes < kLeastContiguous;
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                       UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_DATATYPE;
    how.flags = UCP_AM_SEND_FLAG_REPLY;
    how.cb.send = on_sent;
    how.user_data = buffer;
    how.datatype = is_packed ? packed_ : ucp_dt_make_contig(1);
    const void* const from = is_packed ? static_cast<const void*>(buffer) : buffer->data.data();
    ucs_status_ptr_t request = ucp_am_send_nbx(channel.endpoint(), kMessageId, first, sizeof header,
                                               from, is_packed ? 1 : buffer->data.size(), &how);
    if (UCS_PTR_IS_PTR(request)) {  // on_sent() follows
      channel.begin_sending();
      return true;
    }
    buffer->give_back();
    return !UCS_PTR_IS_ERR(request);
  }

  void fetch(void* offer, Arrival& arrival) override {
    arrival.buffer = fetches_.take(arrival.bytes);
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    how.cb.recv_am = on_fetched;
    how.user_data = &arrival;
    ucs_status_ptr_t request =
        ucp_am_recv_data_nbx(worker_, offer, arrival.buffer->bytes.get(), arrival.bytes, &how);
    if (!UCS_PTR_IS_PTR(request))
      on_fetched(nullptr, UCS_PTR_STATUS(request), arrival.bytes, &arrival);
  }

  void release(void* held) override { ucp_am_data_release(worker_, held); }

 private:
  // A peer answers an end at once; one that does not is lost.
  static constexpr auto kCloseLimit = std::chrono::seconds(2);
  static constexpr auto kGiveLimit = std::chrono::milliseconds(100);
  // Progress of one call before other sources are served.
  static constexpr int kRounds = 64;
  static constexpr unsigned kMessageId = 0;
  // UCX 1.13 forgets eight bytes of a reply's address when it chooses the short protocol, which
  // then fails. It never chooses that for data which it packs by our functions, and no network has
  // it for so many bytes.
  static constexpr std::size_t kLeastContiguous = std::size_t{16} << 10;

  // A channel that was cut or has failed, and the closing of its endpoint, once it has begun.
  struct Closing {
    std::shared_ptr<Channel> channel;
    Deadline until;
    bool has_begun = false;
    ucs_status_ptr_t request = nullptr;
  };

  explicit Worker(const std::string& device)
      : most_(has_rdma(device) ? kMostInMessage : kMostWithoutRdma) {}

  Status start(const std::string& device) {
    MEMSPAN_TRY_ASSIGN(context_, create_context(UCP_FEATURE_AM | UCP_FEATURE_WAKEUP, device),
                       "starting UCX");
    MEMSPAN_PASS(create_worker(context_, worker_, descriptor_));
    MEMSPAN_PASS(from_ucs("ucp_dt_create_generic", ucp_dt_create_generic(&kPacks, this, &packed_)));
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                         UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = kMessageId;
    handler.flags = UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA;
    handler.cb = on_message;
    handler.arg = this;
    return from_ucs("ucp_worker_set_am_recv_handler",
                    ucp_worker_set_am_recv_handler(worker_, &handler));
  }

  static ucs_status_t on_message(void* worker, const void* header, std::size_t header_bytes,
                                 void* data, std::size_t bytes, const ucp_am_recv_param_t* how) {
    // Without a channel, its connection has ended, or the sender does not speak this protocol.
    const auto& channels = static_cast<Worker*>(worker)->by_endpoint_;
    const auto found = (how->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0
                           ? channels.find(how->reply_ep)
                           : channels.end();
    if (found == channels.end() || header_bytes != sizeof(MessageHeader)) return UCS_OK;
    MessageHeader read;
    std::memcpy(&read, header, sizeof read);
    const bool is_offer = (how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
    const bool is_kept = found->second->take(read, data, bytes, is_offer);
    note_arrival(*found->second);
    return is_kept ? UCS_INPROGRESS : UCS_OK;
  }

  static void note_arrival(const Channel& channel) {
    if (channel.is_readable()) static_cast<Worker&>(channel.worker()).has_arrived_ = true;
  }

  static void on_sent(void* request, ucs_status_t status, void* buffer) {
    auto* const sent = static_cast<BufferPool::Buffer*>(buffer);
    sent->channel->sent(status == UCS_OK);
    sent->give_back();
    ucp_request_free(request);
  }

  static void on_fetched(void* request, ucs_status_t status, std::size_t bytes, void* arrival) {
    if (request != nullptr) ucp_request_free(request);
    auto& fetched = *static_cast<Arrival*>(arrival);
    Channel& channel = *fetched.channel;  // which may forget the arrival
    channel.fetched(fetched, status == UCS_OK && bytes == fetched.bytes);
    note_arrival(channel);
  }

  static void on_connection(ucp_conn_request_h request, void* worker) {
    static_cast<Worker*>(worker)->requests_.push_back(request);
  }

  static void on_failure(void* channel, ucp_ep_h, ucs_status_t status) {
    auto* failed = static_cast<Channel*>(channel);
    failed->fail(ucs_status_string(status));
    // The peer's side is closed when this one is.
    static_cast<Worker&>(failed->worker()).close_later(*failed);
  }

  // Until nothing moves, or a message has arrived: it is in the processor's caches, and a further
  // look costs a system call.
  void progress() {
    has_arrived_ = false;
    for (int round = 0; round < kRounds && !has_arrived_; ++round)
      if (ucp_worker_progress(worker_) == 0) break;
    if (!requests_.empty()) accept_requests();
    if (!closing_.empty()) close_ended();
  }

  void accept_requests() {
    for (ucp_conn_request_h request : std::exchange(requests_, {})) {
      ucp_ep_params_t params{};
      params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
      params.conn_request = request;
      auto channel = make_channel(params);
      if (!channel.is_ok()) continue;
      (*channel)->open();
      accepted_.push_back(std::move(channel).value());
    }
  }

  void close_ended() {
    std::erase_if(closing_, [this](Closing& one) {
      if (!one.has_begun) {
        if (!one.channel->may_close(one.until)) return false;
        one.has_begun = true;
        by_endpoint_.erase(one.channel->endpoint());
        one.request = close_by_force(one.channel->endpoint());
        one.channel->set_endpoint(nullptr);
      }
      if (UCS_PTR_IS_PTR(one.request)) {
        if (ucp_request_check_status(one.request) == UCS_INPROGRESS) return false;
        ucp_request_free(std::exchange(one.request, nullptr));
      }
      if (one.channel->is_in_use()) return false;
      channels_.erase(one.channel.get());
      return true;
    });
  }

  void close_later(Channel& channel) {
    const auto found = channels_.find(&channel);
    const bool is_known = std::any_of(closing_.begin(), closing_.end(), [&](const Closing& one) {
      return one.channel.get() == &channel;
    });
    if (found != channels_.end() && !is_known)
      closing_.push_back({found->second, Deadline::after(kCloseLimit)});
  }

  Result<std::shared_ptr<Channel>> make_channel(ucp_ep_params_t& params) {
    auto channel = std::make_shared<Channel>(*this, most_);  // shared with a stream
    params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler = {on_failure, channel.get()};
    ucp_ep_h endpoint = nullptr;
    MEMSPAN_PASS(from_ucs("ucp_ep_create", ucp_ep_create(worker_, &params, &endpoint)));
    channel->set_endpoint(endpoint);
    channels_.emplace(channel.get(), channel);
    by_endpoint_.emplace(endpoint, channel.get());
    return channel;
  }

  const OwnProcess process_;
  const std::size_t most_;  // bytes of a message
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_listener_h listener_ = nullptr;
  ucp_datatype_t packed_ = 0;
  int descriptor_ = -1;       // of UCX
  bool has_arrived_ = false;  // bytes to read, in this progress()
  bool may_sleep_ = false;    // since prepare_sleep(); the descriptor shows what comes
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
