// SPDX-License-Identifier: Apache-2.0
#include "transport/message/requester.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/interrupt.h"

namespace memspan {
namespace {

// Retry delay if another thread is receiving.
constexpr auto kAgain = std::chrono::milliseconds(1);
// Bytes of frames that wait for a connection: far more than the notices of a large job.
constexpr std::size_t kMostKept = std::size_t{4} << 20;
// Limit of contexts with a failure that no call has taken.
constexpr std::size_t kMostFailures = 1024;

// Bytes and frames that may be copied if the stream is full, to carry a quiet.
constexpr std::size_t kMostWithQuiet = 16 << 10;
constexpr std::size_t kMostFramesWithQuiet = 8;

FrameType answer_to(FrameType request) {
  switch (request) {
    case FrameType::kGet:
      return FrameType::kData;
    case FrameType::kAtomic:
      return FrameType::kFetched;
    case FrameType::kKey:
      return FrameType::kKeyed;
    default:
      return FrameType::kFlushed;
  }
}

}  // namespace

Requester::Requester(MessageCore& core, PeerAddress peer)
    : core_(core), peer_(std::move(peer)), heartbeat_(core.options.silence_limit) {}

Result<Connection*> Requester::connect(const Deadline& deadline) {
  while (true) {
    if (Connection* there = connection_.load(std::memory_order_acquire)) return there;
    MEMSPAN_PASS(begin_connecting());
    core_.progress->give_back();
    MutexLock lock(mutex_);
    if (!lost_.is_ok()) return lost_;
    if (connection_.load(std::memory_order_acquire) != nullptr) continue;
    if (deadline.has_passed())
      return Status(Code::kTimeout,
                    fmt::format("connecting to {}: it has not answered in time", peer_.name));
    if (is_interrupted(mutex_)) return interruption();
    ++waiting_;
    changed_.wait_until(mutex_, deadline.within(kStreamWait));
    --waiting_;
  }
}

// Begins unless it has begun.
Status Requester::begin_connecting() {
  {
    MutexLock lock(connecting_mutex_);
    if (connecting_ != nullptr || connection_.load(std::memory_order_acquire) != nullptr)
      return Status::ok();
    {
      MutexLock state(mutex_);
      if (!lost_.is_ok()) return lost_;
    }
    const std::size_t slash = peer_.address.find('/');
    if (slash == std::string::npos)
      return Status(Code::kUnreachable, fmt::format("{} has no address for messages", peer_.name));
    const auto secret = SipKey::from_hex(std::string_view(peer_.address).substr(0, slash));
    if (!secret)
      return Status(Code::kInvalidArgument,
                    fmt::format("the address of {} for messages does not begin with a secret of 32 "
                                "hexadecimal digits",
                                peer_.name));
    const std::string where = fmt::format("connecting to {}", peer_.name);
    MEMSPAN_TRY_ASSIGN(std::unique_ptr<Opening> opening,
                       core_.options.carrier->connect(peer_.address.substr(slash + 1)), where);
    MEMSPAN_TRY_ASSIGN(const Progress::Id watched,
                       core_.progress->add(opening->descriptor(), shared_from_this()), where);
    connecting_ = std::make_unique<Connecting>();
    connecting_->opening = std::move(opening);
    connecting_->secret = *secret;
    connecting_->until = Deadline::after(core_.options.connect_limit);
    connecting_->watched = watched;
  }
  return go_on_connecting();
}

// The peer listened before it gave its address: if it cannot be reached, it is lost.
Status Requester::go_on_connecting() {
  Status failed;
  {
    MutexLock lock(connecting_mutex_);
    if (connecting_ == nullptr) return Status::ok();
    auto stream = connecting_->opening->step();
    if (stream.is_ok() && *stream == nullptr && !connecting_->until.has_passed()) {
      core_.progress->watch(connecting_->watched, EPOLLIN | EPOLLOUT);
      core_.progress->wake_at(connecting_->watched,
                              connecting_->until.until(connecting_->opening->next()).when());
      return Status::ok();
    }
    if (!stream.is_ok())
      failed = {Code::kPeerLost, fmt::format("connecting: {}", stream.status().message())};
    else if (*stream == nullptr)
      failed = {Code::kPeerLost, fmt::format("connecting: it has not answered for {} s",
                                             to_seconds(core_.options.connect_limit))};
    else
      failed = open(std::move(stream).value());
    stop_connecting();
  }
  if (!failed.is_ok()) return fail(failed, true);
  MutexLock lock(mutex_);
  changed_.notify_all();
  return Status::ok();
}

void Requester::stop_connecting() {
  if (connecting_ == nullptr) return;
  core_.progress->remove(connecting_->watched);
  connecting_.reset();
}

Status Requester::open(std::unique_ptr<ByteStream> stream) {
  {
    MutexLock state(mutex_);
    if (!lost_.is_ok()) return lost_;
    outstanding_ = std::make_unique<std::deque<Outstanding>>();
    text_ = std::make_unique<Text>();
  }
  made_ = std::make_unique<Connection>(std::move(stream), Session::connecting(connecting_->secret),
                                       *this, core_.options.faults);
  MEMSPAN_PASS(greet(*made_));
  for (const KeptFrame& kept : connecting_->kept) {
    const OutFrame out{kept.frame, kept.payload.data()};
    MEMSPAN_PASS(made_->send({&out, 1}, SendMode::kQueue));
  }
  core_.progress->remove(connecting_->watched);  // it may be the same descriptor
  MEMSPAN_TRY_ASSIGN(watched_, core_.progress->add(made_->descriptor(), shared_from_this()),
                     "connecting");
  core_.connections_made.fetch_add(1, std::memory_order_relaxed);
  connection_.store(made_.get(), std::memory_order_release);
  watch();
  if (has_heartbeat()) core_.progress->wake_at(watched_, Clock::now());
  return Status::ok();
}

// Keeps the frames if there is no connection yet. False: there is one.
Result<bool> Requester::keep(std::span<const OutFrame> frames) {
  if (connection_.load(std::memory_order_acquire) != nullptr) return false;
  MEMSPAN_PASS(begin_connecting());
  MutexLock lock(connecting_mutex_);
  if (connecting_ == nullptr) return false;  // open, or lost
  for (const OutFrame& out : frames) {
    connecting_->kept_bytes += kFrameBytes + out.frame.payload;
    if (connecting_->kept_bytes > kMostKept)
      return Status(Code::kTimeout, fmt::format("{} has not answered yet, and {} bytes wait for it",
                                                peer_.name, connecting_->kept_bytes));
    const auto* payload = static_cast<const std::byte*>(out.payload);
    connecting_->kept.push_back({out.frame, {payload, payload + out.frame.payload}});
  }
  return true;
}

// Does not wait: a refusal replaces an answer, or comes with the end.
Status Requester::greet(Connection& connection) {
  const Hello hello{core_.options.self, core_.options.name, connection.nonce()};
  const OutFrame out{hello.frame(), hello.payload().data()};
  return connection.send({&out, 1}, SendMode::kQueue);
}

// The thread that waits for an answer receives it. The progress thread watches for the end and
// sends queued bytes.
void Requester::watch() {
  Connection* connection = connection_.load(std::memory_order_acquire);
  MutexLock lock(watching_);
  const std::uint32_t to_send = connection->is_opening() ? EPOLLIN : EPOLLOUT;
  core_.progress->watch(watched_, EPOLLRDHUP | (connection->has_queued() ? to_send : 0u));
}

Status Requester::post(std::span<const OutFrame> frames, SendMode mode, const Deadline& deadline) {
  if (Progress::is_serving()) mode = SendMode::kQueue;
  if (mode == SendMode::kQueue) {
    MEMSPAN_TRY_ASSIGN(const bool is_kept, keep(frames), "sending");
    if (is_kept) return Status::ok();
  }
  const Result<Connection*> connection = connect(deadline);
  if (!connection.is_ok()) return connection.status();
  if (frames.front().frame.type == FrameType::kMessage) {
    {
      MutexLock lock(mutex_);
      if (!lost_.is_ok()) return lost_;
    }
    return after_sending(**connection, (*connection)->send(frames, mode, deadline));
  }
  bool asks = false;
  std::uint64_t number = 0;
  {
    MutexLock lock(mutex_);
    if (!lost_.is_ok()) return lost_;
    asks = is_quiet_expected(frames);
    number = ++operations_;
    posting_.fetch_add(1, std::memory_order_relaxed);
  }
  Status posted = asks ? post_with_quiet(**connection, frames, number)
                       : after_sending(**connection, (*connection)->send(frames, mode, deadline));
  posting_.fetch_sub(1, std::memory_order_release);
  posted_.fetch_add(1, std::memory_order_release);  // pairs with settle()
  return posted;
}

Status Requester::settle(const Deadline& deadline) {
  const std::uint64_t before = posted_.load(std::memory_order_acquire);  // pairs with post()
  std::uint64_t settled = settled_.load(std::memory_order_acquire);
  if (settled >= before) return Status::ok();
  Completion completion;
  const auto asked = request(
      {.frame = {.type = FrameType::kFlush, .region = {}}, .completion = &completion}, deadline);
  if (!asked.is_ok()) return asked.status();
  MEMSPAN_PASS(wait(*asked, deadline, &completion));
  // Keeps the largest of several threads.
  while (settled < before &&
         !settled_.compare_exchange_weak(settled, before, std::memory_order_acq_rel))
    continue;
  return Status::ok();
}

Status Requester::lost() {
  MutexLock lock(mutex_);
  return lost_;
}

bool Requester::is_quiet_expected(std::span<const OutFrame> frames) const {
  std::size_t bytes = 0;
  for (const OutFrame& out : frames) bytes += out.frame.payload;
  // An operation that another thread has begun may be sent after the quiet.
  return expects_quiet_ && outstanding_ != nullptr && operations_ == quiet_operations_ &&
         posting_.load(std::memory_order_acquire) == 0 && bytes <= kMostWithQuiet &&
         frames.size() <= kMostFramesWithQuiet && outstanding_->size() < kMostOutstanding;
}

Status Requester::post_with_quiet(Connection& connection, std::span<const OutFrame> frames,
                                  std::uint64_t number) {
  std::array<OutFrame, kMostFramesWithQuiet + 1> all;
  const auto last = std::copy(frames.begin(), frames.end(), all.begin());
  *last = {{.type = FrameType::kFlush, .region = {}}, nullptr};
  const std::lock_guard<std::mutex> issue(issuing_);
  {
    MutexLock lock(mutex_);
    if (!lost_.is_ok()) return lost_;
    last->frame.tag = push_outstanding({.frame = last->frame, .context = frames.front().frame.tag});
    early_quiet_ = last->frame.tag;
    early_operations_ = number;
  }
  return after_sending(connection,
                       connection.send({all.data(), frames.size() + 1}, SendMode::kQueue));
}

Result<std::uint64_t> Requester::request_quiet(std::uint64_t context, const Deadline& deadline) {
  {
    MutexLock lock(mutex_);
    expects_quiet_ = operations_ == quiet_operations_ + 1;
    quiet_operations_ = operations_;
    if (lost_.is_ok() && early_quiet_ != 0 && early_operations_ == operations_ &&
        early_quiet_ == issued_)
      return early_quiet_;
  }
  return request({.frame = {.type = FrameType::kFlush, .region = {}}, .context = context},
                 deadline);
}

Status Requester::after_sending(Connection& connection, const Status& sent) {
  if (sent.is_ok() || sent.code() != Code::kPeerLost) {
    if (connection.has_queued()) watch();
    return sent.annotate(peer_.name);
  }
  // The peer's last frames explain more than the failed send.
  Status why = sent;
  if (connection.try_own()) {
    Status received;
    std::size_t bytes = 1;
    while (received.is_ok() && bytes != 0) received = receive(Waiting::kNo, bytes);
    connection.disown();
    if (!received.is_ok()) why = received;
  }
  return fail(why, true);
}

Result<std::uint64_t> Requester::request(Request request, const Deadline& deadline) {
  const Result<Connection*> connection = connect(deadline);
  if (!connection.is_ok()) return connection.status();
  const auto bytes = static_cast<std::uint32_t>(request.frame.length);
  const std::size_t window = (*connection)->window();
  while (true) {
    MEMSPAN_PASS(wait_until(deadline, [&]() MEMSPAN_REQUIRES(mutex_) {
      return outstanding_->empty() ||
             (outstanding_bytes_ + bytes <= window && outstanding_->size() < kMostOutstanding);
    }));
    const std::lock_guard<std::mutex> issue(issuing_);
    {
      MutexLock lock(mutex_);
      if (!lost_.is_ok()) return lost_;
      // Another thread may have taken the space.
      if (!outstanding_->empty() && outstanding_bytes_ + bytes > window) continue;
      request.frame.tag = push_outstanding(request);
    }
    // Queued if the stream is full: requests are few, and a call that ends early leaves no gap.
    const OutFrame out{request.frame, nullptr};
    MEMSPAN_PASS(after_sending(**connection, (*connection)->send({&out, 1}, SendMode::kQueue)));
    return request.frame.tag;
  }
}

// The caller holds issuing_ until it is sent.
std::uint64_t Requester::push_outstanding(const Request& request) {
  const auto bytes = static_cast<std::uint32_t>(request.frame.length);
  outstanding_->push_back({++issued_, answer_to(request.frame.type), bytes, request.to,
                           request.context, request.completion});
  outstanding_bytes_ += bytes;
  return issued_;
}

Status Requester::receive(Waiting waiting, std::size_t& bytes) {
  Connection& connection = *connection_.load(std::memory_order_acquire);
  const bool was_opening = connection.is_opening();
  const auto received = connection.receive(waiting);
  bytes = received.is_ok() ? received->bytes : 0;
  if (!received.is_ok() || !was_opening || connection.is_opening()) return received.status();
  // The progress thread does not see what this one received.
  connection.send_queued();
  watch();
  return Status::ok();
}

template <typename Done>
Status Requester::wait_until(const Deadline& deadline, Done done) {
  core_.progress->give_back();
  MutexLock lock(mutex_);
  while (!done()) {
    if (!lost_.is_ok()) return lost_;
    Connection* connection = connection_.load(std::memory_order_acquire);
    if (connection->try_own()) {
      mutex_.unlock();
      std::size_t bytes = 0;
      const Status received = receive(Waiting::kShortly, bytes);
      connection->disown();
      if (!received.is_ok()) [[maybe_unused]]
        const Status lost = fail(received, true);
      mutex_.lock();
      if (waiting_ > 0) changed_.notify_all();
    } else {
      ++waiting_;
      changed_.wait_until(mutex_, deadline.within(kStreamWait));
      --waiting_;
    }
    if (done()) return Status::ok();
    if (deadline.has_passed())
      return {Code::kTimeout, fmt::format("{} has not answered in time", peer_.name)};
    if (is_interrupted(mutex_)) return interruption();
  }
  return Status::ok();
}

Status Requester::wait(std::uint64_t number, const Deadline& deadline, Completion* abandoned) {
  Status status =
      wait_until(deadline, [&]() MEMSPAN_REQUIRES(mutex_) { return completed_ >= number; });
  if (status.is_ok()) return status;
  if (abandoned != nullptr) abandon(abandoned);
  // After a loss, no memory of a call stays in use.
  MutexLock lock(mutex_);
  while (!lost_.is_ok() && is_pinned_) {
    ++waiting_;
    changed_.wait_until(mutex_, Deadline::never());
    --waiting_;
  }
  return status;
}

// After it the call's memory is not touched: its answers are discarded.
void Requester::abandon(Completion* completion) {
  MutexLock lock(mutex_);
  if (outstanding_ == nullptr) return;  // there was no connection
  while (is_pinned_ && !outstanding_->empty() && outstanding_->front().completion == completion) {
    ++waiting_;
    changed_.wait_until(mutex_, Deadline::never());
    --waiting_;
  }
  for (Outstanding& one : *outstanding_)
    if (one.completion == completion) {
      one.completion = nullptr;
      one.to = nullptr;
    }
}

Status Requester::take_failure(std::uint64_t context) {
  MutexLock lock(mutex_);
  const auto found = failures_.find(context);
  if (found == failures_.end()) return lost_;
  Status status = std::move(found->second);
  failures_.erase(found);
  return status;
}

void Requester::note_failure(std::uint64_t context, const Status& status) {
  MutexLock lock(mutex_);
  note_failure_locked(context, status);
}

void Requester::note_failure_locked(std::uint64_t context, const Status& status) {
  if (failures_.size() < kMostFailures) failures_.try_emplace(context, status);
}

Status Requester::fail(const Status& why, bool is_told) {
  Status lost;
  bool has_left = false;
  {
    MutexLock lock(mutex_);
    if (!lost_.is_ok()) return lost_;
    const bool is_end = why.code() == Code::kPeerLost;
    lost_ = said_goodbye_ && is_end
                ? Status(Code::kPeerLost, fmt::format("{} has left", peer_.name))
                : Status(why.code() == Code::kAuth ? Code::kAuth : Code::kPeerLost,
                         fmt::format("{}: {}", peer_.name, why.message()));
    has_left = said_goodbye_;
    if (outstanding_ != nullptr)
      for (const Outstanding& one : *outstanding_)
        if (one.completion != nullptr) one.completion->status = lost_;
    lost = lost_;
    changed_.notify_all();
  }
  {
    MutexLock lock(connecting_mutex_);
    stop_connecting();
  }
  if (Connection* connection = connection_.load(std::memory_order_acquire)) {
    connection->cut();
    core_.progress->remove(watched_);
  }
  if (is_told && has_left) core_.tell_left(peer_.peer);
  if (is_told && !has_left) core_.tell_lost(peer_.peer, lost);
  return lost;
}

void Requester::lose(const Status& why) {
  [[maybe_unused]] const Status lost = fail(why, false);
}

void Requester::close() {
  // In a child of fork(), threads that do not exist may hold the locks.
  if (core_.ends.load(std::memory_order_acquire)) return;
  Connection* connection = connection_.load(std::memory_order_acquire);
  if (connection != nullptr) connection->say_goodbye();
  lose({Code::kPeerLost, "the link is closed"});
}

void Requester::on_ready(std::uint32_t events) {
  Connection* connection = connection_.load(std::memory_order_acquire);
  if (connection == nullptr) {
    [[maybe_unused]] const Status failed = go_on_connecting();
    return;
  }
  Status status;
  if ((events & (EPOLLIN | EPOLLOUT)) != 0) connection->send_queued();
  // At the end, handles what came before. A thread that is receiving may stop before the end.
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
    if (!connection->try_own()) return core_.progress->wake_at(watched_, Clock::now() + kAgain);
    status = receive_all(*connection);
  }
  if (status.is_ok() && has_heartbeat()) status = beat(*connection);
  if (!status.is_ok()) {
    [[maybe_unused]] const Status lost = fail(status, true);
    return;
  }
  watch();
}

// Receives all that has arrived. The caller owns receiving; this gives it up.
Status Requester::receive_all(Connection& connection) {
  Status status;
  std::size_t bytes = 1;
  while (status.is_ok() && bytes != 0) status = receive(Waiting::kNo, bytes);
  connection.disown();
  return status;
}

// Any thread that makes progress calls it: checks for signs of life and requests another.
Status Requester::beat(Connection& connection) {
  MutexLock lock(beating_);
  const auto now = Clock::now();
  if (!heartbeat_.has_begun())
    heartbeat_.begin(now);
  else if (!heartbeat_.is_due(now))
    return Status::ok();
  if (connection.try_own()) MEMSPAN_PASS(receive_all(connection));
  MEMSPAN_PASS(heartbeat_.look(now, connection.received()));
  const OutFrame out{{.type = FrameType::kBeat, .region = {}}, nullptr};
  MEMSPAN_PASS(connection.send({&out, 1}, SendMode::kQueue));
  core_.progress->wake_at(watched_, heartbeat_.next());
  return Status::ok();
}

Status Requester::begin(const Frame& frame) {
  MutexLock lock(mutex_);
  if (!lost_.is_ok()) return lost_;
  const bool is_refusal = frame.type == FrameType::kRefused;
  is_text_ = is_refusal;
  if (frame.type == FrameType::kBye || frame.type == FrameType::kAlive) return Status::ok();
  if (is_refusal && (frame.kind == 0 || frame.kind > kLastRefusal))
    return {Code::kInvalidArgument, fmt::format("it refuses for the reason {}", frame.kind)};
  if (is_refusal && (frame.flags & kWantsAnswer) == 0) return Status::ok();
  if (outstanding_->empty() || frame.tag != outstanding_->front().number ||
      (!is_refusal &&
       (frame.type != outstanding_->front().answer ||
        (frame.type == FrameType::kData && frame.payload != outstanding_->front().bytes) ||
        (frame.type == FrameType::kKeyed && frame.payload > outstanding_->front().bytes))))
    return {Code::kInvalidArgument,
            fmt::format("it answers (type {}) what was not asked", static_cast<int>(frame.type))};
  return Status::ok();
}

std::byte* Requester::pin() {
  MutexLock lock(mutex_);
  if (is_text_) return text_->data();
  if (!lost_.is_ok()) return nullptr;
  is_pinned_ = true;
  return outstanding_->front().to;
}

void Requester::unpin() {
  MutexLock lock(mutex_);
  is_pinned_ = false;
  if (waiting_ > 0) changed_.notify_all();
}

Status Requester::end(const Frame& frame) {
  MutexLock lock(mutex_);
  if (!lost_.is_ok()) return lost_;
  if (waiting_ > 0) changed_.notify_all();
  if (frame.type == FrameType::kBye) {
    said_goodbye_ = true;
    return Status::ok();
  }
  if (frame.type == FrameType::kAlive) return Status::ok();
  Status refused;
  if (frame.type == FrameType::kRefused) {
    const auto refusal = static_cast<Refusal>(frame.kind);
    const std::string_view why(reinterpret_cast<const char*>(text_->data()), frame.payload);
    if (refusal == Refusal::kHello)
      return {code_of(refusal), fmt::format("it refused the connection: {}", why)};
    refused = Status(code_of(refusal), fmt::format("{} refused: {}", peer_.name, why));
    if ((frame.flags & kWantsAnswer) == 0) {
      note_failure_locked(frame.tag, refused);
      return Status::ok();
    }
  }
  const Outstanding one = outstanding_->front();
  outstanding_->pop_front();
  outstanding_bytes_ -= one.bytes;
  completed_ = one.number;
  if (one.completion != nullptr) {
    one.completion->value = frame.type == FrameType::kKeyed ? frame.payload : frame.operand;
    if (one.completion->status.is_ok()) one.completion->status = std::move(refused);
  } else if (!refused.is_ok()) {
    note_failure_locked(one.context, refused);
  }
  return Status::ok();
}

}  // namespace memspan
