// SPDX-License-Identifier: Apache-2.0
#include "transport/message/ucx/worker.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "transport/message/ucx/configuration.h"
#include "transport/message/ucx/endpoint_lanes.h"

namespace memspan::ucx {
namespace {

// A peer answers an end at once; one that does not is lost.
constexpr auto kCloseLimit = std::chrono::seconds(2);
constexpr auto kGiveLimit = std::chrono::milliseconds(100);
// Progress of one call before the other threads get their turn.
constexpr int kRounds = 64;
constexpr std::size_t kEndpointsAtOnce = 16;

}  // namespace

Worker::Worker(UcxOptions::Rendezvous rendezvous) : process_(::getpid()), wanted_(rendezvous) {}

bool Worker::is_foreign() const {
  return ::getpid() != process_;
}

Result<std::shared_ptr<Worker>> Worker::create(const UcxOptions& options) {
  std::shared_ptr<Worker> worker(new Worker(options.rendezvous));
  MEMSPAN_PASS(worker->start(options.device));
  return worker;
}

Status Worker::start(const std::string& device) {
  const bool may_be_large = wanted_ != UcxOptions::Rendezvous::kNever;
  MEMSPAN_TRY_ASSIGN(context_, create_context(device, may_be_large), "starting UCX");
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  // Our mutex serializes our calls. But UCX's own thread for connection events changes the flags of
  // endpoints, and only in this mode does a call keep it out.
  params.thread_mode = UCS_THREAD_MODE_MULTI;
  MEMSPAN_PASS(from_ucs("ucp_worker_create", ucp_worker_create(context_, &params, &worker_)));
  MEMSPAN_PASS(from_ucs("ucp_worker_get_efd", ucp_worker_get_efd(worker_, &descriptor_)));
  if (may_be_large)
    MEMSPAN_PASS(rendezvous_.start(worker_, [this](ucp_ep_h endpoint) {
      const auto found = by_endpoint_.find(endpoint);
      return found == by_endpoint_.end() ? nullptr : found->second;
    }));
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.is_valid()) return Status::from_errno("epoll_create1");
  MutexLock lock(mutex_);
  epoll_event event{.events = EPOLLIN, .data = {}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor_, &event) != 0)
    return Status::from_errno("epoll_ctl");
  progress();
  return Status::ok();
}

Worker::~Worker() {
  if (is_foreign()) {
    // Leaks the channels: their memory is the child's, their connections are the parent's.
    for (auto& [address, channel] : channels_)
      static_cast<void>(new (std::nothrow) std::shared_ptr<Channel>(channel));
    return;
  }
  MutexLock lock(mutex_);
  for (const auto& channel : accepted_) cut_locked(*channel);
  const Deadline deadline = Deadline::after(2 * kCloseLimit);
  while (worker_ != nullptr && !channels_.empty() && !deadline.has_passed()) {
    progress();
    pollfd one{descriptor_, POLLIN, 0};
    constexpr int kLookMs = 50;  // for the deadlines of closing channels
    if (!channels_.empty()) ::poll(&one, 1, kLookMs);
  }
  // UCX returns buffers of a closed endpoint in a later call.
  const Deadline given = Deadline::after(kGiveLimit);
  while ((buffers_.in_use() > 0 || rendezvous_.is_busy()) && !given.has_passed()) progress();
  if (listener_ != nullptr) ucp_listener_destroy(listener_);
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  if (context_ != nullptr) ucp_cleanup(context_);
}

Result<int> Worker::listen(const SocketAddress& at) {
  MutexLock lock(mutex_);
  ucp_listener_params_t params{};
  params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
  params.sockaddr = at.view();
  params.conn_handler = {on_connection, this};
  MEMSPAN_PASS(from_ucs("ucp_listener_create", ucp_listener_create(worker_, &params, &listener_)));
  ucp_listener_attr_t attributes{};
  attributes.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
  MEMSPAN_PASS(from_ucs("ucp_listener_query", ucp_listener_query(listener_, &attributes)));
  progress();
  // The port is at the same offset in both kinds of IP addresses.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&attributes.sockaddr)->sin_port);
}

void Worker::on_connection(ucp_conn_request_h request, void* worker) {
  static_cast<Worker*>(worker)->requests_.push_back(request);
}

void Worker::on_failure(void* channel, ucp_ep_h, ucs_status_t status) {
  auto* failed = static_cast<Channel*>(channel);
  failed->fail(ucs_status_string(status));
  // The peer's side is closed when this one is.
  static_cast<Worker&>(failed->worker()).close_later(*failed);
}

Result<std::shared_ptr<Channel>> Worker::make_channel(ucp_ep_params_t& params) {
  MEMSPAN_TRY_ASSIGN(PollSignal signal, PollSignal::create(), "making a connection");
  auto channel = std::make_shared<Channel>(*this, std::move(signal));  // shared with a stream
  params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER |
                       UCP_EP_PARAM_FIELD_USER_DATA;
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler = {on_failure, channel.get()};
  params.user_data = channel.get();
  ucp_ep_h endpoint = nullptr;
  MEMSPAN_PASS(from_ucs("ucp_ep_create", ucp_ep_create(worker_, &params, &endpoint)));
  channel->set_endpoint(endpoint);
  channels_.emplace(channel.get(), channel);
  by_endpoint_.emplace(endpoint, channel.get());
  return channel;
}

// If UCX would copy a payload in pieces, its streams do that with fewer round trips.
void Worker::choose_rendezvous(Channel& channel) const {
  using enum UcxOptions::Rendezvous;
  if (wanted_ == kAlways ||
      (wanted_ == kWhereNative && !lanes_of(channel.endpoint()).network.empty()))
    channel.use_rendezvous();
}

void Worker::accept_requests() {
  for (ucp_conn_request_h request : std::exchange(requests_, {})) {
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
    params.conn_request = request;
    auto channel = make_channel(params);
    if (!channel.is_ok()) continue;
    choose_rendezvous(**channel);
    (*channel)->open();
    accepted_.push_back(std::move(channel).value());
  }
}

std::shared_ptr<Channel> Worker::accept() {
  MutexLock lock(mutex_);
  if (is_foreign()) return nullptr;
  if (accepted_.empty()) progress();
  if (accepted_.empty()) return nullptr;
  auto channel = std::move(accepted_.front());
  accepted_.pop_front();
  return channel;
}

Result<std::shared_ptr<Channel>> Worker::connect(const SocketAddress& to) {
  MutexLock lock(mutex_);
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
  params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
  params.sockaddr = to.view();
  auto made = make_channel(params);
  if (!made.is_ok()) return Status(Code::kUnreachable, made.status().message());
  (*made)->await_open();
  return made;
}

Result<bool> Worker::opens(Channel& channel) {
  if (is_foreign()) return Status(Code::kUnreachable, "this process is a child");
  MutexLock lock(mutex_);
  progress();
  if (channel.is_finished()) return Status(Code::kUnreachable, channel.failure());
  if (channel.is_open()) choose_rendezvous(channel);
  return channel.is_open();
}

template <typename Try>
ssize_t Worker::retry(Try attempt) {
  if (is_foreign()) return -1;
  MutexLock lock(mutex_);
  ssize_t done = attempt();
  if (done == 0) {
    progress();
    done = attempt();
  }
  // Unsent bytes may need progress of this process: over shared memory no event shows that the peer
  // has freed space.
  if (done != 0 && (buffers_.in_use() > 0 || rendezvous_.is_sending())) progress();
  return done;
}

ssize_t Worker::receive(Channel& channel, std::span<const iovec> to) {
  return retry([&] { return channel.read(to); });
}

ssize_t Worker::send(Channel& channel, std::span<const iovec> from) {
  return retry([&] { return channel.write(from); });
}

void Worker::cut(Channel& channel) {
  if (is_foreign()) return;
  MutexLock lock(mutex_);
  cut_locked(channel);
  progress();
}

void Worker::cut_locked(Channel& channel) {
  if (channel.is_cut()) return;
  channel.cut();
  close_later(channel);
}

void Worker::close_later(Channel& channel) {
  const auto found = channels_.find(&channel);
  const bool is_known = std::any_of(closing_.begin(), closing_.end(), [&](const Closing& one) {
    return one.channel.get() == &channel;
  });
  if (found != channels_.end() && !is_known)
    closing_.push_back({found->second, Deadline::after(kCloseLimit)});
}

void Worker::progress() {
  for (int round = 0; round < kRounds; ++round) {
    const unsigned moved = ucp_worker_progress(worker_);
    take_received();
    accept_requests();
    close_ended();
    if (moved != 0) continue;
    if (ucp_worker_arm(worker_) == UCS_ERR_BUSY) continue;
    // Wakes the accepting thread for what another thread has found.
    if (!accepted_.empty()) ucp_worker_signal(worker_);
    return;
  }
  ucp_worker_signal(worker_);
}

void Worker::take_received() {
  std::array<ucp_stream_poll_ep_t, kEndpointsAtOnce> ready;
  while (true) {
    const ssize_t count = ucp_stream_worker_poll(worker_, ready.data(), ready.size(), 0);
    for (ssize_t i = 0; i < count; ++i) {
      const ucp_stream_poll_ep_t& one = ready[static_cast<std::size_t>(i)];
      auto& channel = *static_cast<Channel*>(one.user_data);
      std::size_t bytes = 0;
      for (void* buffer = ucp_stream_recv_data_nb(one.ep, &bytes);
           buffer != nullptr && !UCS_PTR_IS_ERR(buffer);
           buffer = ucp_stream_recv_data_nb(one.ep, &bytes))
        if (!channel.take(buffer, bytes)) ucp_stream_data_release(one.ep, buffer);
    }
    if (count < static_cast<ssize_t>(ready.size())) return;
  }
}

void Worker::close_ended() {
  std::erase_if(closing_, [this](Closing& one) {
    if (!one.has_begun) {
      if (!one.channel->may_close(one.until)) return false;
      ucp_request_param_t how{};
      how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
      how.flags = UCP_EP_CLOSE_FLAG_FORCE;
      one.has_begun = true;
      by_endpoint_.erase(one.channel->endpoint());
      one.request = ucp_ep_close_nbx(one.channel->endpoint(), &how);
      one.channel->set_endpoint(nullptr);
    }
    if (UCS_PTR_IS_PTR(one.request)) {
      if (ucp_request_check_status(one.request) == UCS_INPROGRESS) return false;
      ucp_request_free(one.request);
    }
    channels_.erase(one.channel.get());
    return true;
  });
}

void Worker::on_sent(void* request, ucs_status_t, void* user_data) {
  static_cast<BufferPool::Buffer*>(user_data)->give_back();
  ucp_request_free(request);
}

void Worker::release(ucp_ep_h endpoint, void* buffer) {
  ucp_stream_data_release(endpoint, buffer);
}

bool Worker::post(ucp_ep_h endpoint, Chunk chunk, std::span<const iovec> payload) {
  std::size_t bytes = kChunkBytes;
  for (const iovec& part : payload) bytes += part.iov_len;
  BufferPool::Buffer* const buffer = buffers_.take(bytes);
  std::byte* at = buffer->bytes.get();
  std::memcpy(at, &chunk, kChunkBytes);
  at += kChunkBytes;
  for (const iovec& part : payload) {
    std::memcpy(at, part.iov_base, part.iov_len);
    at += part.iov_len;
  }
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  how.cb.send = on_sent;
  how.user_data = buffer;
  ucs_status_ptr_t request = ucp_stream_send_nbx(endpoint, buffer->bytes.get(), bytes, &how);
  if (UCS_PTR_IS_PTR(request)) return true;  // on_sent() follows
  buffer->give_back();
  return !UCS_PTR_IS_ERR(request);
}

}  // namespace memspan::ucx
