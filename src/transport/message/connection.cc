// SPDX-License-Identifier: Apache-2.0
#include "transport/message/connection.h"

namespace memspan::inline transport {
namespace {

// More than a peer may request (requester.h), with room for messages of handlers.
constexpr std::size_t kMostCopied = std::size_t{64} << 20;
// Far more than the notices of a large job.
constexpr std::size_t kMostControl = std::size_t{4} << 20;
// Bytes of frames with numbers, unless it is one larger frame.
constexpr std::size_t kMostInBatch = std::size_t{256} << 10;
// One call sends or receives so much before other sources are served.
constexpr std::size_t kMostAtOnce = std::size_t{1} << 20;

constexpr OutFrame kBeat{{.type = FrameType::kBeat}, nullptr};
constexpr OutFrame kAlive{{.type = FrameType::kAlive}, nullptr};

Status ended() {
  return {Code::kPeerLost, "the connection was cut"};
}

}  // namespace

Connection::Connection(MessageCore& core, std::unique_ptr<ByteStream> stream,
                       const Session& session, ConnectionOwner& owner)
    : core_(core),
      engine_(*core.engine),
      stream_(std::move(stream)),
      owner_(owner),
      session_(session),
      reader_(owner, session_),
      heartbeat_(core.options.silence_limit) {}

Status Connection::start() {
  engine_.assert_turn();
  MEMSPAN_TRY_ASSIGN(id_, engine_.add(stream_->descriptor(), shared_from_this()),
                     "watching a connection");
  if (stream_->descriptor() < 0) {
    stream_->on_change([this] { on_change(); });
    on_change();
  }
  watch();
  return Status::ok();
}

// For a stream without a descriptor.
void Connection::on_change() {
  engine_.assert_turn();
  has_changed_ = true;
  engine_.call_again(id_);
}

void Connection::close() {
  engine_.assert_turn();
  if (std::exchange(is_closed_, true)) return;
  stream_->on_change({});
  stream_->cut();
  engine_.remove(id_);
  clear_queues();
}

void Connection::watch() {
  engine_.assert_turn();
  if (is_closed_) return;
  const bool is_held = held_until_ != Clock::time_point{} || reader_.is_waiting();
  const bool is_full = has_unsent() && !stream_->is_opening();
  engine_.watch(id_, (is_held ? 0u : EPOLLIN) | (is_full ? EPOLLOUT : 0u));
}

// ---- sending

bool Connection::has_room_for(const OutFrame& out) const {
  return frame_count_ == 0 ||
         (frame_count_ < kFramesAtOnce && batch_bytes_ + out.frame.payload <= kMostInBatch);
}

// Gives the frame its number, in the batch.
void Connection::seal(const OutFrame& out, Buffer copy, Parcel* parcel) {
  FrameHeader& header = headers_[frame_count_];
  encode(out.frame, header);
  session_.seal(header, sequence_++);
  parts_[2 * frame_count_] = {header.data(), kFrameBytes};
  void* const payload = out.frame.payload == 0 ? header.data() : const_cast<void*>(out.payload);
  parts_[2 * frame_count_ + 1] = {payload, out.frame.payload};
  copies_[frame_count_] = std::move(copy);
  parcels_[frame_count_] = parcel;
  batch_bytes_ += kFrameBytes + out.frame.payload;
  ++frame_count_;
}

// Sends the batch. False: a rest remains, or nothing can be sent any more.
bool Connection::write() {
  engine_.assert_turn();
  while (next_part_ != 2 * frame_count_) {
    const ssize_t sent = stream_->send({parts_.data() + next_part_, 2 * frame_count_ - next_part_});
    if (sent < 0) {
      // The peer's last frames explain more than the failed send: on_ready() reads them first.
      is_broken_ = true;
      clear_queues();
      engine_.call_again(id_);
    }
    if (sent <= 0) return false;
    auto rest = static_cast<std::size_t>(sent);
    while (next_part_ != 2 * frame_count_ && rest >= parts_[next_part_].iov_len)
      rest -= parts_[next_part_++].iov_len;
    if (rest == 0) continue;
    iovec& part = parts_[next_part_];
    part.iov_base = static_cast<std::byte*>(part.iov_base) + rest;
    part.iov_len -= rest;
  }
  for (std::size_t i = 0; i < frame_count_; ++i)
    if (parcels_[i] != nullptr && --parcels_[i]->frames == 0) engine_.notify();
  clear_batch();
  return true;
}

// The queue of the next frame. Answers and requests take turns.
Connection::Queue& Connection::next_queue() {
  if (!control_.frames.empty()) return control_;
  if (requests_.frames.empty() || (is_answers_turn_ && !answers_.frames.empty())) return answers_;
  return requests_;
}

// Sends what is queued until the stream is full.
void Connection::flush() {
  engine_.assert_turn();
  std::size_t sent = 0;
  while (has_unsent()) {
    while (next_part_ == 0) {
      Queue& queue = next_queue();
      if (queue.frames.empty() || !has_room_for(queue.frames.front().out)) break;
      Queued& next = queue.frames.front();
      queue.copied_bytes -= next.copy.size();
      seal(next.out, std::move(next.copy), next.parcel);
      queue.frames.pop_front();
      if (&queue != &control_) is_answers_turn_ = &queue == &requests_;
    }
    const std::size_t bytes = batch_bytes_;
    if (!write()) return;
    sent += bytes;
    if (sent >= kMostAtOnce && has_unsent()) return engine_.call_again(id_);
  }
}

Status Connection::submit(std::span<const OutFrame> frames, Parcel* parcel) {
  engine_.assert_turn();
  if (parcel != nullptr) parcel->frames += frames.size();
  if (is_closed_ || is_broken_) return Status::ok();
  std::size_t sent = 0;
  while (!frames.empty() && !has_unsent() && sent < kMostAtOnce) {
    while (!frames.empty() && has_room_for(frames.front())) {
      seal(frames.front(), {}, parcel);
      frames = frames.subspan(1);
    }
    sent += batch_bytes_;
    if (!write()) break;
  }
  if (is_broken_) return Status::ok();
  if (parcel == nullptr) own_rest(nullptr);
  for (const OutFrame& out : frames)
    MEMSPAN_PASS(
        enqueue(is_answer(out.frame.type) ? answers_ : requests_, out, parcel, kMostCopied));
  if (sent >= kMostAtOnce && has_unsent()) engine_.call_again(id_);
  if (has_unsent()) watch();
  return Status::ok();
}

Status Connection::submit_control(const OutFrame& frame) {
  engine_.assert_turn();
  if (!has_unsent()) return submit({&frame, 1}, nullptr);
  if (is_closed_ || is_broken_) return Status::ok();
  return enqueue(control_, frame, nullptr, kMostControl);
}

Status Connection::enqueue(Queue& queue, const OutFrame& out, Parcel* parcel, std::size_t most) {
  Queued queued{out, {}, parcel};
  if (parcel == nullptr && out.payload != nullptr && out.frame.payload != 0) {
    if (queue.copied_bytes + out.frame.payload > most)
      return {Code::kPeerLost,
              fmt::format("it does not take what is sent: {} MiB are queued", most >> 20)};
    queue.copied_bytes += out.frame.payload;
    queued.copy = Buffer(out.frame.payload);
    std::memcpy(queued.copy.data(), out.payload, out.frame.payload);
    queued.out.payload = queued.copy.data();
  }
  queue.frames.push_back(std::move(queued));
  return Status::ok();
}

// Copies the rest of payloads in the batch that are in the memory of this parcel's caller.
void Connection::own_rest(const Parcel* parcel) {
  for (std::size_t frame = next_part_ / 2; frame < frame_count_; ++frame) {
    iovec& payload = parts_[2 * frame + 1];
    if (parcels_[frame] != parcel || copies_[frame].size() != 0 || payload.iov_len == 0) continue;
    copies_[frame] = Buffer(payload.iov_len);
    std::memcpy(copies_[frame].data(), payload.iov_base, payload.iov_len);
    payload.iov_base = copies_[frame].data();
  }
}

void Connection::withdraw(Parcel& parcel) {
  own_rest(&parcel);
  std::replace(parcels_.begin(), parcels_.begin() + static_cast<std::ptrdiff_t>(frame_count_),
               &parcel, static_cast<Parcel*>(nullptr));
  std::erase_if(requests_.frames, [&](const Queued& queued) { return queued.parcel == &parcel; });
  parcel.frames = 0;
}

// ---- receiving

void Connection::on_ready(std::uint32_t events) {
  if (std::exchange(has_changed_, false)) events |= EPOLLIN;
  if (is_closed_ || is_held_back(events)) return;
  if (has_unsent()) flush();
  Status status = receive_some();
  if (status.is_ok()) status = check_life();
  finish(status);
}

bool Connection::look() {
  engine_.assert_turn();
  if (is_closed_ || has_faults() || is_overrun()) return false;
  const std::size_t waiting = unsent_frames();
  if (waiting != 0) flush();
  const std::uint64_t before = received_ + reader_.frames();
  const Result<bool> more = receive();
  if (more.is_ok() && received_ + reader_.frames() == before) {
    if (waiting != 0 && !has_unsent()) watch();
    return unsent_frames() != waiting;
  }
  if (more.is_ok() && *more && stream_->has_buffered()) engine_.call_again(id_);
  finish(more.status());
  return true;
}

// The status of receiving. The owner may destroy this.
void Connection::finish(const Status& received) {
  const Status status = received.is_ok() && !is_closed_ ? owner_.after_look() : received;
  if (is_closed_) return;
  if (status.is_ok()) return watch();
  owner_.on_end(status);  // before the other end can see it
  close();
}

// Others have their turn after a while.
Status Connection::receive_some() {
  engine_.assert_turn();
  const std::uint64_t first = received_;
  bool more = true;
  while (more && !is_closed_ && received_ - first < kMostAtOnce) {
    if (is_overrun()) break;
    MEMSPAN_PASS_ASSIGN(more, receive());
  }
  if (more)
    engine_.call_again(id_);
  else if (is_broken_)
    return ended();
  return Status::ok();
}

// Receives once. True: more may have arrived.
Result<bool> Connection::receive() {
  if (reader_.is_waiting()) {
    MEMSPAN_PASS(reader_.received(0));
    return !reader_.is_waiting();
  }
  std::array<iovec, 2> places;
  const std::size_t count = reader_.prepare(places);
  std::size_t room = 0;
  for (std::size_t i = 0; i < count; ++i) room += places[i].iov_len;
  const bool was_opening = stream_->is_opening();
  const ssize_t got = stream_->receive({places.data(), count});
  const auto bytes = static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  const std::uint64_t before = reader_.frames();
  received_ += bytes;
  MEMSPAN_PASS(reader_.received(bytes));
  if (got < 0) return ended();
  if (was_opening && !stream_->is_opening()) flush();
  if (has_faults()) MEMSPAN_PASS(count_for_faults(reader_.frames() - before));
  const bool is_all = bytes < room && !(bytes > 0 && stream_->has_buffered());
  return !is_all && !reader_.is_waiting();
}

// ---- signs of life

void Connection::expect_life() {
  if (heartbeat_.has_begun() || core_.options.silence_limit == Duration::max()) return;
  heartbeat_.begin(Clock::now());
  static_cast<void>(submit_control(kBeat).is_ok());
  wake_at(heartbeat_.next());
}

Status Connection::take_beat() {
  ++beats_;
  MEMSPAN_PASS(submit_control(kAlive));
  expect_life();
  return Status::ok();
}

Status Connection::check_life() {
  if (!heartbeat_.has_begun()) return Status::ok();
  const auto now = Clock::now();
  if (!heartbeat_.is_due(now)) return Status::ok();
  if (reader_.is_waiting()) ++unread_looks_;  // this side does not listen
  // A beat shows that the peer sends, not that it receives.
  MEMSPAN_PASS(heartbeat_.look(now, received_ - beats_ * kFrameBytes + unread_looks_));
  MEMSPAN_PASS(submit_control(kBeat));
  wake_at(heartbeat_.next());
  return Status::ok();
}

// ---- injected faults

// Bytes that have arrived are handled later, or not at all.
bool Connection::is_held_back(std::uint32_t events) {
  if (!has_faults()) return false;
  const auto now = Clock::now();
  if (held_until_ != Clock::time_point{} && now < held_until_) return true;
  if (std::exchange(held_until_, Clock::time_point{}) != Clock::time_point{}) return false;
  const Faults& faults = *core_.options.faults;
  const Duration hold = faults.silent.load() ? std::chrono::hours(1) : faults.hold();
  if ((events & EPOLLIN) == 0 || hold == Duration::zero()) return false;
  held_until_ = now + hold;
  wake_at(held_until_);
  watch();
  return true;
}

Status Connection::count_for_faults(std::uint64_t frames) {
  Faults& faults = *core_.options.faults;
  if (faults.cut_after != 0 && reader_.frames() >= faults.cut_after) return ended();
  const std::uint64_t all = faults.received.fetch_add(frames) + frames;
  if (faults.silent_after != 0 && all >= faults.silent_after) faults.silent.store(true);
  return Status::ok();
}

}  // namespace memspan::inline transport
