// SPDX-License-Identifier: Apache-2.0
#include "transport/message/requester.h"

#include <fmt/format.h>

#include "transport/message/peer_connection.h"

namespace memspan::inline transport {
namespace {

// Bytes of frames that wait for a connection: far more than the notices of a large job.
constexpr std::size_t kMostKeptBytes = std::size_t{4} << 20;
// Limit of contexts with a failure that no call has taken.
constexpr std::size_t kMostFailures = 1024;

// Bytes and frames that may be copied if the stream is full, to carry a quiet.
constexpr std::size_t kMostWithQuiet = 16 << 10;
constexpr std::size_t kMostFramesWithQuiet = 8;

constexpr const char* kLate = " has not answered in time";

FrameType answer_to(FrameType request) {
  if (request == FrameType::kGet) return FrameType::kData;
  if (request == FrameType::kAtomic) return FrameType::kFetched;
  return request == FrameType::kKey ? FrameType::kKeyed : FrameType::kFlushed;
}

constexpr Frame kFlush{.type = FrameType::kFlush};

}  // namespace

// A connection that begins, and the frames to be sent when it is open.
class Requester::Connecting final : public Source {
 public:
  struct Kept {
    Frame frame;
    std::vector<std::byte> payload;
    SendMode mode;
  };
  Connecting(Requester& peer, const SipKey& key, Duration limit)
      : secret(key), until(Deadline::after(limit)), peer_(&peer) {}
  void on_ready(std::uint32_t) override {
    if (peer_ == nullptr) return;
    peer_->engine.assert_turn();
    peer_->go_on_connecting();
  }
  void end() {
    peer_->engine.assert_turn();
    peer_->engine.remove(id);
    peer_ = nullptr;
  }

  const SipKey secret;  // of the peer
  const Deadline until;
  bool is_apart = false;  // the peer is not to yield
  std::unique_ptr<Opening> opening;
  PeerConnection* greeting = nullptr;  // it is open, but the peer has not answered, or has yielded
  Engine::Id id = 0;
  std::vector<Kept> kept;
  std::size_t kept_bytes = 0;

 private:
  Requester* peer_;
};

Requester::Requester(MessageCore& shared, PeerAddress address)
    : core(shared), engine(*shared.engine), address_(std::move(address)) {
  const Turn turn(engine);
  core.requesters.emplace(address_.peer, this);
}

Connection& Requester::connection() const {
  return peer_->connection();
}

// ---- connecting

Status Requester::await_open(const Deadline& deadline) {
  MEMSPAN_PASS(begin_connecting());
  return await([this] { return peer_ != nullptr; }, deadline, ": it has not answered in time",
               "connecting to ");
}

template <typename Done>
Status Requester::await(Done done, const Deadline& deadline, const char* late, const char* doing) {
  Status ended = engine.wait([&] { return !lost_.is_ok() || done(); }, deadline,
                             peer_ == nullptr ? Engine::Id{0} : connection().id());
  if (!lost_.is_ok()) return lost_;
  if (ended.code() != Code::kTimeout) return ended;
  return {Code::kTimeout, fmt::format("{}{}{}", doing, address_.name, late)};
}

// Begins unless it has begun.
Status Requester::begin_connecting() {
  if (!lost_.is_ok()) return lost_;
  if (connecting_ != nullptr || peer_ != nullptr) return Status::ok();
  const std::size_t slash = address_.address.find('/');
  if (slash == std::string::npos)
    return {Code::kUnreachable, fmt::format("{} has no address for messages", address_.name)};
  const auto secret = SipKey::from_hex(std::string_view(address_.address).substr(0, slash));
  if (!secret)
    return {Code::kInvalidArgument,
            fmt::format("the address of {} for messages does not begin with a secret of 32 "
                        "hexadecimal digits",
                        address_.name)};
  if (core.excluded.contains(address_.peer))
    return {Code::kPeerLost, fmt::format("{} is not a member any more", address_.name)};
  PeerConnection* const found = core.find(address_.peer, *secret);
  if (found != nullptr && found->is_free()) return open(*found);
  const auto [begin, end] = core.requesters.equal_range(address_.peer);
  const bool is_apart =
      found != nullptr || address_.peer == core.options.self ||
      std::any_of(begin, end, [](const auto& one) { return one.second->connecting_ != nullptr; });
  connecting_ = std::make_shared<Connecting>(*this, *secret, core.options.connect_limit);
  connecting_->is_apart = is_apart;
  Status begun = begin_opening();
  if (!begun.is_ok() && connecting_ != nullptr) std::exchange(connecting_, nullptr)->end();
  return begun;
}

Status Requester::begin_opening() {
  const std::shared_ptr<Connecting> now = connecting_;
  const std::string where = fmt::format("connecting to {}", address_.name);
  MEMSPAN_TRY_ASSIGN(
      now->opening,
      core.options.carrier->connect(address_.address.substr(address_.address.find('/') + 1)),
      where);
  MEMSPAN_TRY_ASSIGN(now->id, engine.add(now->opening->descriptor(), now), where);
  now->opening->on_change([this, id = now->id] {
    engine.assert_turn();
    engine.call_again(id);
  });
  go_on_connecting();
  return lost_;
}

// The peer listened before it gave its address: if it cannot be reached, it is lost.
void Requester::go_on_connecting() {
  const std::shared_ptr<Connecting> now = connecting_;
  auto stream = now->opening->step();
  Status failed = stream.status();
  if (failed.is_ok() && *stream != nullptr) failed = greet(std::move(stream).value());
  if (failed.is_ok() && now->until.has_passed())
    failed = Status(Code::kPeerLost, fmt::format("it has not answered for {} s",
                                                 to_seconds(core.options.connect_limit)));
  if (!failed.is_ok())
    return fail({Code::kPeerLost, fmt::format("connecting: {}", failed.message())},
                LinkState::kLost);
  if (now->greeting != nullptr) return;
  engine.watch(now->id, EPOLLIN | EPOLLOUT);
  engine.wake_at(now->id, now->until.until(now->opening->next()).when());
}

// Nothing but the greeting is sent before the answer.
Status Requester::greet(std::unique_ptr<ByteStream> stream) {
  engine.remove(connecting_->id);  // it may have the same descriptor
  connecting_->opening.reset();
  MEMSPAN_TRY_ASSIGN(connecting_->greeting,
                     core.add(std::make_unique<PeerConnection>(core, std::move(stream), this,
                                                               connecting_->secret)),
                     "greeting");
  return Status::ok();
}

const SipKey* Requester::connects_to() const {
  return connecting_ == nullptr || connecting_->is_apart ? nullptr : &connecting_->secret;
}

// A connection that this requester has begun to make itself is not needed any more.
Status Requester::open(PeerConnection& opened) {
  engine.assert_turn();
  peer_ = &opened;
  opened.carry(*this);
  outstanding_ = std::make_unique<std::deque<Request>>();
  const std::shared_ptr<Connecting> begun = std::exchange(connecting_, nullptr);
  engine.notify();
  if (begun == nullptr) return Status::ok();
  begun->end();
  if (begun->greeting != nullptr && begun->greeting != peer_) begun->greeting->release();
  for (const Connecting::Kept& kept : begun->kept) {
    const OutFrame out{kept.frame, kept.payload.data()};
    MEMSPAN_PASS(kept.mode == SendMode::kControl ? connection().submit_control(out)
                                                 : connection().submit({&out, 1}, nullptr));
  }
  return Status::ok();
}

// The peer yields only once.
void Requester::connect_again() {
  engine.assert_turn();
  connecting_->greeting = nullptr;
  connecting_->is_apart = true;
  if (const Status begun = begin_opening(); !begun.is_ok()) fail(begun, LinkState::kLost);
}

// The frames wait for the connection.
Status Requester::keep(std::span<const OutFrame> frames, SendMode mode) {
  for (const OutFrame& out : frames) {
    connecting_->kept_bytes += kFrameBytes + out.frame.payload;
    if (connecting_->kept_bytes > kMostKeptBytes)
      return {Code::kTimeout, fmt::format("{} has not answered yet, and {} bytes wait for it",
                                          address_.name, connecting_->kept_bytes)};
    const auto* payload = static_cast<const std::byte*>(out.payload);
    connecting_->kept.push_back({out.frame, {payload, payload + out.frame.payload}, mode});
  }
  return Status::ok();
}

// ---- operations

Status Requester::post(std::span<const OutFrame> frames, SendMode mode, const Deadline& deadline) {
  if (Deliveries::is_running() && mode == SendMode::kWait) mode = SendMode::kQueue;
  if (mode == SendMode::kWait) {
    MEMSPAN_PASS(await_open(deadline));
  } else {
    MEMSPAN_PASS(begin_connecting());
    if (peer_ == nullptr) return keep(frames, mode);
  }
  if (mode == SendMode::kControl) {
    return sent_or_cut(connection().submit_control(frames.front()));
  }
  if (frames.front().frame.type == FrameType::kMessage) return submit(frames, mode, deadline);
  const bool asks = is_quiet_expected(frames);
  ++operations_;
  return asks ? submit_with_quiet(frames) : submit(frames, mode, deadline);
}

Status Requester::submit(std::span<const OutFrame> frames, SendMode mode,
                         const Deadline& deadline) {
  Parcel parcel;
  Parcel* const waited = mode == SendMode::kWait ? &parcel : nullptr;
  MEMSPAN_PASS(sent_or_cut(connection().submit(frames, waited)));
  if (waited == nullptr || parcel.frames == 0) return Status::ok();
  Status ended =
      await([&] { return parcel.frames == 0; }, deadline, ": the peer does not take what is sent");
  if (!ended.is_ok() && lost_.is_ok()) connection().withdraw(parcel);
  return ended;
}

bool Requester::is_quiet_expected(std::span<const OutFrame> frames) const {
  std::size_t bytes = 0;
  for (const OutFrame& out : frames) bytes += out.frame.payload;
  return expects_quiet_ && operations_ == quiet_operations_ && bytes <= kMostWithQuiet &&
         frames.size() <= kMostFramesWithQuiet && outstanding_->size() < kMostOutstanding;
}

Status Requester::submit_with_quiet(std::span<const OutFrame> frames) {
  std::array<OutFrame, kMostFramesWithQuiet + 1> all;
  const auto last = std::copy(frames.begin(), frames.end(), all.begin());
  *last = {kFlush, nullptr};
  last->frame.tag = push_outstanding({.frame = kFlush, .context = frames.front().frame.tag});
  early_quiet_ = last->frame.tag;
  early_operations_ = operations_;
  return sent_or_cut(connection().submit({all.data(), frames.size() + 1}, nullptr));
}

Status Requester::settle(const Deadline& deadline) {
  const std::uint64_t before = operations_;
  if (settled_ >= before) return Status::ok();
  MEMSPAN_PASS(call({.frame = kFlush}, deadline).status());
  settled_ = std::max(settled_, before);  // another thread may have settled more
  return Status::ok();
}

Result<std::uint64_t> Requester::request_quiet(std::uint64_t context, const Deadline& deadline) {
  expects_quiet_ = operations_ == quiet_operations_ + 1;
  quiet_operations_ = operations_;
  const bool is_early =
      early_quiet_ != 0 && early_operations_ == operations_ && early_quiet_ == issued_;
  if (lost_.is_ok() && is_early) return early_quiet_;
  return request({.frame = kFlush, .context = context}, deadline);
}

Result<std::uint64_t> Requester::call(Request request, const Deadline& deadline) {
  Completion completion;
  request.completion = &completion;
  auto number = this->request(request, deadline);
  if (!number.is_ok()) return number;
  MEMSPAN_PASS(wait(*number, deadline, &completion));
  if (!completion.status.is_ok()) return std::move(completion.status);
  return completion.value;
}

Result<std::uint64_t> Requester::request(Request request, const Deadline& deadline) {
  MEMSPAN_PASS(await_open(deadline));
  const auto has_space = [&] {
    return outstanding_->empty() ||
           (outstanding_bytes_ + request.frame.length <= connection().window() &&
            outstanding_->size() < kMostOutstanding);
  };
  MEMSPAN_PASS(await(has_space, deadline, kLate));
  request.frame.tag = push_outstanding(request);
  // Queued if the stream is full: requests are few, and a call that ends early leaves no gap.
  const OutFrame out{request.frame, nullptr};
  MEMSPAN_PASS(sent_or_cut(connection().submit({&out, 1}, nullptr)));
  return request.frame.tag;
}

std::uint64_t Requester::push_outstanding(const Request& request) {
  outstanding_->push_back(request);
  outstanding_bytes_ += request.frame.length;
  return outstanding_->back().frame.tag = ++issued_;
}

Status Requester::wait(std::uint64_t number, const Deadline& deadline,
                       const Completion* abandoned) {
  Status ended = await([&] { return completed_ >= number; }, deadline, kLate);
  if (completed_ >= number) return Status::ok();
  if (abandoned != nullptr) abandon(abandoned);
  return ended;
}

// Answers of the call are discarded.
void Requester::abandon(const Completion* completion) {
  if (outstanding_ == nullptr) return;  // there was no connection
  for (Request& one : *outstanding_)
    if (one.completion == completion) {
      one.completion = nullptr;
      one.to = nullptr;
    }
}

Status Requester::take_failure(std::uint64_t context) {
  const auto found = failures_.find(context);
  if (found == failures_.end()) return lost_;
  Status status = std::move(found->second);
  failures_.erase(found);
  return status;
}

void Requester::note_failure(std::uint64_t context, const Status& status) {
  if (failures_.size() < kMostFailures) failures_.try_emplace(context, status);
}

// ---- the end

void Requester::lose(const Status& why, LinkState end) {
  engine.assert_turn();
  if (!lost_.is_ok()) return;
  lost_ = end == LinkState::kLeft
              ? Status(Code::kPeerLost, fmt::format("{} has left", address_.name))
              : Status(why.code() == Code::kAuth ? Code::kAuth : Code::kPeerLost,
                       fmt::format("{}: {}", address_.name, why.message()));
  state_.store(end, std::memory_order_release);
  if (outstanding_ != nullptr) {
    for (const Request& one : *outstanding_)
      if (one.completion != nullptr) one.completion->status = lost_;
    outstanding_->clear();
  }
  if (const auto begun = std::exchange(connecting_, nullptr); begun != nullptr) {
    begun->end();
    if (begun->greeting != nullptr) core.forget(*begun->greeting);
    core.stop_yielding(address_.peer);
  }
  if (peer_ != nullptr) core.forget(*std::exchange(peer_, nullptr));
  engine.notify();
}

void Requester::on_end(const Status& why, LinkState end) {
  engine.assert_turn();
  peer_ = nullptr;
  if (connecting_ != nullptr) connecting_->greeting = nullptr;
  fail(why, end);
}

void Requester::fail(const Status& why, LinkState end) {
  if (!lost_.is_ok()) return;
  lose(why, end);
  core.tell_end(address_.peer, lost_, end);
}

Status Requester::sent_or_cut(Status sent) {
  if (sent.is_ok()) return sent;
  peer_->on_end(sent);
  return lost_;
}

void Requester::close() {
  // In a child of fork(), threads that do not exist may hold the turn.
  if (core.ends.load(std::memory_order_acquire)) return;
  const Turn turn(engine);
  if (connecting_ != nullptr && connecting_->greeting != nullptr)
    std::exchange(connecting_->greeting, nullptr)->release();
  if (peer_ != nullptr) std::exchange(peer_, nullptr)->release();
  lose({Code::kPeerLost, "the link is closed"});
  core.forget_requester(address_.peer, this);
}

// ---- answers

Status Requester::begin(const Frame& frame) {
  const bool is_refusal = frame.type == FrameType::kRefused;
  text_.resize(is_refusal ? frame.payload : 0);
  if (is_refusal && (frame.kind == 0 || frame.kind > kLastRefusal))
    return {Code::kInvalidArgument, fmt::format("it refuses for the reason {}", frame.kind)};
  if (is_refusal && (frame.flags & kWantsAnswer) == 0) return Status::ok();
  const Request* const first = outstanding_->empty() ? nullptr : &outstanding_->front();
  const std::uint64_t bytes = first == nullptr ? 0 : first->frame.length;
  if (first == nullptr || frame.tag != first->frame.tag ||
      (!is_refusal && (frame.type != answer_to(first->frame.type) ||
                       (frame.type == FrameType::kData && frame.payload != bytes) ||
                       (frame.type == FrameType::kKeyed && frame.payload > bytes))))
    return {Code::kInvalidArgument,
            fmt::format("it answers (type {}) what was not asked", static_cast<int>(frame.type))};
  return Status::ok();
}

std::byte* Requester::pin() {
  if (!text_.empty()) return reinterpret_cast<std::byte*>(text_.data());
  return outstanding_->front().to;
}

Status Requester::end(const Frame& frame) {
  engine.assert_turn();
  Status refused;
  if (frame.type == FrameType::kRefused) {
    const auto refusal = static_cast<Refusal>(frame.kind);
    if (refusal == Refusal::kHello)
      return {code_of(refusal), fmt::format("it refused the connection: {}", text_)};
    refused = Status(code_of(refusal), fmt::format("{} refused: {}", address_.name, text_));
    if ((frame.flags & kWantsAnswer) == 0) {
      note_failure(frame.tag, refused);
      return Status::ok();
    }
  }
  const Request one = outstanding_->front();
  outstanding_->pop_front();
  outstanding_bytes_ -= one.frame.length;
  completed_ = one.frame.tag;
  if (one.completion != nullptr) {
    one.completion->value = frame.type == FrameType::kKeyed ? frame.payload : frame.operand;
    if (one.completion->status.is_ok()) one.completion->status = std::move(refused);
  } else if (!refused.is_ok()) {
    note_failure(one.context, refused);
  }
  return Status::ok();
}

}  // namespace memspan::inline transport
