// SPDX-License-Identifier: Apache-2.0
#include "node/descriptor_broker.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/interrupt.h"
#include "core/random.h"
#include "net/unix_socket.h"

namespace memspan::inline node {
namespace {

// More of them cannot be from our peers; the oldest is dropped.
constexpr std::size_t kMostPendingConnections = 256;
// The delay after a broker was crowded or this process ran out of descriptors.
constexpr Duration kTryAgainAfter = std::chrono::milliseconds(10);
// With open_own_end() before the other descriptors; or nothing is published.
constexpr std::string_view kYes = "yes";
constexpr std::string_view kNo = "no";

Deadline at_once() {
  return Deadline::after(Duration::zero());
}

Status check_same_user(const Fd& socket) {
  MEMSPAN_TRY_ASSIGN(const ucred peer, unix_peer(socket), "checking the other end");
  if (peer.uid == geteuid()) return Status::ok();
  return {Code::kAuth,
          fmt::format("that process runs as user {}, this one as {}", peer.uid, geteuid())};
}

Status check_owner(const Fd& socket, const std::optional<ProcessIdentity>& owner) {
  if (!owner) return Status::ok();
  MEMSPAN_TRY_ASSIGN(const ucred peer, unix_peer(socket), "checking the other end");
  if (owner->may_be(peer.pid)) return Status::ok();
  return {Code::kAuth,
          fmt::format("process {} has the address of process {}", peer.pid, owner->process)};
}

Result<FetchedDescriptors> read_answer(Fd socket) {
  auto message = unix_receive(socket, at_once());
  if (!message.is_ok())
    return Status(Code::kUnavailable, "that process is gone, or does not know us");
  if (message->bytes != kYes || message->descriptors.empty())
    return Status(Code::kNotFound, "that process does not offer it any more");
  MEMSPAN_TRY_ASSIGN(const ucred peer, unix_peer(socket), "fetching descriptors");
  FetchedDescriptors answer;
  answer.pid = peer.pid;
  answer.process = std::move(message->descriptors.front());
  message->descriptors.erase(message->descriptors.begin());
  answer.descriptors = std::move(message->descriptors);
  answer.connection = std::move(socket);
  return answer;
}

// One message always fits on a new connection, unless its reader is gone.
void reply(const Fd& socket, std::string_view text, const std::vector<int>& descriptors) {
  [[maybe_unused]] const Status sent = unix_send(socket, text, descriptors);
}

}  // namespace

Result<std::unique_ptr<DescriptorBroker>> DescriptorBroker::open() {
  std::unique_ptr<DescriptorBroker> made(new DescriptorBroker);
  MEMSPAN_TRY_ASSIGN(made->loop_, EventLoop::process_singleton(), "opening the descriptor broker");
  made->socket_name_ = "memspan-" + random_hex(16);
  made->cookie_ = random_hex(16);
  MEMSPAN_TRY_ASSIGN(made->listener_, unix_listen(made->socket_name_),
                     "opening the descriptor broker");
  MEMSPAN_TRY_ASSIGN(made->self_, open_own_end(), "opening the descriptor broker");
  MutexLock lock(made->mutex_);
  MEMSPAN_TRY(made->listen(), "opening the descriptor broker");
  return made;
}

DescriptorBroker::~DescriptorBroker() {
  std::vector<EventLoop::Token> tokens;
  {
    MutexLock lock(mutex_);
    is_ending_ = true;
    tokens.push_back(listening_);
    for (const auto& [id, fetch] : fetches_) tokens.push_back(fetch.token);
    for (const auto& [id, pending] : pending_) tokens.push_back(pending.token);
  }
  if (loop_ == nullptr) return;
  for (const EventLoop::Token token : tokens) loop_->cancel(token);
  loop_->finish_running_call();  // it may be ours, about to return
}

Status DescriptorBroker::publish(const std::string& name, std::vector<Fd> descriptors,
                                 Access access) {
  return publish(name, std::make_shared<const std::vector<Fd>>(std::move(descriptors)),
                 std::move(access));
}

Status DescriptorBroker::publish(const std::string& name, SharedDescriptors descriptors,
                                 Access access) {
  if (descriptors->size() >= kMostUnixDescriptors)
    return {Code::kInvalidArgument, fmt::format("{} descriptors are offered; allowed are {}",
                                                descriptors->size(), kMostUnixDescriptors - 1)};
  if (access.channel == Channel::kOpen && access.processes.empty())
    return {Code::kInvalidArgument,
            fmt::format("{} cannot be handed out: on an open channel processes have to be named",
                        name)};
  MutexLock lock(mutex_);
  publications_.insert_or_assign(name, Publication{std::move(descriptors), std::move(access)});
  return Status::ok();
}

// ---- fetching

std::uint64_t DescriptorBroker::fetch(const std::string& address, std::string_view name, Done done,
                                      std::optional<ProcessIdentity> owner) {
  const std::size_t blank = address.find(' ');
  const std::string_view cookie =
      blank == std::string::npos ? "" : std::string_view(address).substr(blank + 1);
  Fetch fetch{.socket_name = address.substr(0, blank),
              .request = fmt::format("{} {}", cookie, name),
              .owner = owner,
              .done = std::move(done)};
  MutexLock lock(mutex_);
  const std::uint64_t id = ++last_id_;
  fetch.token = loop_->call_soon([this, id] { connect(id); });
  fetches_.emplace(id, std::move(fetch));
  return id;
}

Result<FetchedDescriptors> DescriptorBroker::fetch_and_wait(const std::string& address,
                                                            std::string_view name,
                                                            Deadline deadline,
                                                            std::optional<ProcessIdentity> owner) {
  // Shared by this caller and the event loop's thread, whichever is done last.
  const auto answer = std::make_shared<AwaitedValue<Result<FetchedDescriptors>>>();
  const std::uint64_t request = fetch(
      address, name, [answer](Result<FetchedDescriptors> value) { answer->set(std::move(value)); },
      owner);
  auto value = answer->wait(deadline);
  forget(request);
  if (!value) value = answer->wait(at_once());  // it came just now
  if (value) return std::move(*value);
  return end_of_wait("that process does not answer on its descriptor broker; it may be stopped");
}

void DescriptorBroker::forget(std::uint64_t id) {
  decltype(fetches_)::node_type forgotten;  // what it holds ends last
  {
    MutexLock lock(mutex_);
    forgotten = fetches_.extract(id);
  }
  if (!forgotten.empty()) loop_->cancel(forgotten.mapped().token);
}

void DescriptorBroker::connect(std::uint64_t id) {
  Status status;
  {
    MutexLock lock(mutex_);
    const auto found = fetches_.find(id);
    if (is_ending_ || found == fetches_.end()) return;
    status = connect(id, found->second);
  }
  if (!status.is_ok()) finish(id, std::move(status));
}

// Also ok if it will be retried.
Status DescriptorBroker::connect(std::uint64_t id, Fetch& fetch) {
  auto socket = unix_connect_now(fetch.socket_name);
  if (socket.code() == Code::kTimeout) {
    fetch.token = loop_->call_at(Clock::now() + kTryAgainAfter, [this, id] { connect(id); });
    return Status::ok();
  }
  if (!socket.is_ok())
    return {Code::kUnavailable, "that process is gone: " + socket.status().message()};
  MEMSPAN_PASS(check_same_user(*socket));
  MEMSPAN_PASS(check_owner(*socket, fetch.owner));
  MEMSPAN_PASS(unix_send(*socket, fetch.request, {self_.get()}));
  fetch.socket = std::move(socket).value();
  MEMSPAN_TRY_ASSIGN(
      fetch.token,
      loop_->watch(fetch.socket.get(), EPOLLIN, [this, id](std::uint32_t) { take_answer(id); }),
      "fetching descriptors");
  return Status::ok();
}

void DescriptorBroker::take_answer(std::uint64_t id) {
  Fd socket;
  {
    MutexLock lock(mutex_);
    const auto found = fetches_.find(id);
    if (is_ending_ || found == fetches_.end()) return;
    loop_->cancel(found->second.token);
    socket = std::move(found->second.socket);
  }
  finish(id, read_answer(std::move(socket)));
}

// The fetch stays known while it calls, so that forget() can wait for that.
void DescriptorBroker::finish(std::uint64_t id, Result<FetchedDescriptors> answer) {
  Done done;
  {
    MutexLock lock(mutex_);
    const auto found = fetches_.find(id);
    if (is_ending_ || found == fetches_.end()) return;
    done = std::move(found->second.done);
  }
  done(std::move(answer));
  done = nullptr;  // what it holds ends before forget() returns
  decltype(fetches_)::node_type finished;
  MutexLock lock(mutex_);
  finished = fetches_.extract(id);
}

// ---- serving

Status DescriptorBroker::listen() {
  MEMSPAN_TRY_ASSIGN(listening_,
                     loop_->watch(listener_.get(), EPOLLIN, [this](std::uint32_t) { accept(); }),
                     "listening");
  return Status::ok();
}

void DescriptorBroker::accept() {
  auto socket = unix_accept(listener_, at_once());
  MutexLock lock(mutex_);
  if (is_ending_) return;
  if (socket.code() == Code::kSystem) return pause();
  if (!socket.is_ok() || !check_same_user(*socket).is_ok()) return;
  if (pending_.size() == kMostPendingConnections) {
    loop_->cancel(pending_.begin()->second.token);
    pending_.erase(pending_.begin());
  }
  const std::uint64_t id = ++last_id_;
  auto token = loop_->watch(socket->get(), EPOLLIN, [this, id](std::uint32_t) { serve(id); });
  if (token.is_ok()) pending_[id] = {std::move(socket).value(), *token};
}

// There are no descriptors for another connection at the moment.
void DescriptorBroker::pause() {
  loop_->cancel(listening_);
  listening_ = loop_->call_at(Clock::now() + kTryAgainAfter, [this] {
    MutexLock again(mutex_);
    if (!is_ending_ && !listen().is_ok()) pause();
  });
}

// A stranger gets no answer.
void DescriptorBroker::serve(std::uint64_t id) {
  Fd socket;
  {
    MutexLock lock(mutex_);
    auto pending = pending_.extract(id);
    if (is_ending_ || pending.empty()) return;
    loop_->cancel(pending.mapped().token);
    socket = std::move(pending.mapped().socket);
  }
  auto request = unix_receive(socket, at_once());
  if (!request.is_ok()) return;
  const std::size_t blank = std::min(request->bytes.find(' '), request->bytes.size() - 1);
  const std::string cookie = request->bytes.substr(0, blank);
  std::function<void(Fetcher)> fetched;
  {
    MutexLock lock(mutex_);
    const auto found = publications_.find(request->bytes.substr(blank + 1));
    if (found != publications_.end()) {
      if (!may_fetch(socket, cookie, found->second.access)) return;
      std::vector<int> descriptors{self_.get()};
      for (const Fd& each : *found->second.descriptors) descriptors.push_back(each.get());
      reply(socket, kYes, descriptors);
      fetched = found->second.access.fetched;
    } else if (cookie == cookie_ || cookie.empty()) {
      reply(socket, kNo, {});
    }
  }
  if (!fetched || request->descriptors.empty()) return;
  fetched({.process = std::move(request->descriptors.front()), .connection = std::move(socket)});
}

bool DescriptorBroker::may_fetch(const Fd& socket, const std::string& cookie,
                                 const Access& access) const {
  if (access.channel == Channel::kPrivate && cookie != cookie_) return false;
  if (access.processes.empty()) return true;
  const auto peer = unix_peer(socket);
  return peer.is_ok() &&
         std::any_of(access.processes.begin(), access.processes.end(),
                     [&](const ProcessIdentity& may) { return may.may_be(peer->pid); });
}

}  // namespace memspan::inline node
