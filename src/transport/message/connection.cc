// SPDX-License-Identifier: Apache-2.0
#include "transport/message/connection.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <thread>

#include "core/interrupt.h"

namespace memspan {
namespace {

// More than a peer may request (requester.h), with room for messages of handlers.
constexpr std::size_t kMostQueued = std::size_t{64} << 20;

// A peer that hears no goodbye takes the end for a death. One that is stopped does not take it.
constexpr Duration kGoodbyeLimit = std::chrono::milliseconds(20);

Status ended() {
  return {Code::kPeerLost, "the connection was cut"};
}

// Skips the sent bytes.
std::span<iovec> advance(std::span<iovec> parts, std::size_t bytes) {
  while (!parts.empty() && bytes >= parts.front().iov_len) {
    bytes -= parts.front().iov_len;
    parts = parts.subspan(1);
  }
  if (parts.empty()) return parts;
  parts.front().iov_base = static_cast<std::byte*>(parts.front().iov_base) + bytes;
  parts.front().iov_len -= bytes;
  return parts;
}

}  // namespace

Connection::Connection(std::unique_ptr<ByteStream> stream, const Session& session, FrameSink& sink,
                       std::shared_ptr<Faults> faults)
    : stream_(std::move(stream)),
      sink_(sink),
      faults_(std::move(faults)),
      session_(session),
      reader_(sink, session_) {}

Status Connection::send(std::span<const OutFrame> frames, SendMode mode, const Deadline& deadline) {
  Status status;
  if (mode == SendMode::kWait) {
    const std::lock_guard<std::mutex> lock(sending_);
    for (std::size_t first = 0; first < frames.size() && status.is_ok(); first += kFramesAtOnce)
      status = send_some(frames.subspan(first, std::min(kFramesAtOnce, frames.size() - first)),
                         mode, deadline);
  } else if (sending_.try_lock()) {
    const std::lock_guard<std::mutex> lock(sending_, std::adopt_lock);
    for (std::size_t first = 0; first < frames.size() && status.is_ok(); first += kFramesAtOnce)
      status = send_some(frames.subspan(first, std::min(kFramesAtOnce, frames.size() - first)),
                         mode, deadline);
  } else {
    MEMSPAN_PASS(queue(frames));
  }
  // Threads that queued while this thread held the stream rely on it.
  if (status.is_ok() && has_queued()) send_queued();
  return status;
}

// The caller holds sending_. No other thread numbers frames that are sent before these.
Status Connection::send_some(std::span<const OutFrame> frames, SendMode mode,
                             const Deadline& deadline) {
  std::array<FrameHeader, kFramesAtOnce> headers;
  std::array<iovec, 2 * kFramesAtOnce> parts;
  std::size_t count = 0;
  while (true) {
    {
      MutexLock lock(queue_mutex_);
      if (!has_queued()) {
        count = number(frames, headers, parts);
        break;
      }
    }
    const std::size_t before = queued_bytes_.load(std::memory_order_acquire);
    if (mode == SendMode::kWait) sink_.on_full();
    const Status written = write_queue(mode == SendMode::kWait ? Waiting::kShortly : Waiting::kNo);
    if (!written.is_ok()) return not_sent(mode);
    const bool is_full = queued_bytes_.load(std::memory_order_acquire) >= before;
    if (mode == SendMode::kQueue && has_queued()) return queue(frames);
    if (!is_full) continue;
    if (deadline.has_passed())
      return {Code::kTimeout, "the peer does not take what was sent before"};
    if (is_interrupted()) return interruption();
  }
  return write(std::span(parts.data(), count), mode, deadline);
}

void Connection::write_header(const Frame& frame, FrameHeader& out) {
  encode(frame, out);
  session_.seal(out, sequence_++);
}

// Writes the headers of frames that are sent next.
std::size_t Connection::number(std::span<const OutFrame> frames, std::span<FrameHeader> headers,
                               std::span<iovec> parts) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    write_header(frames[i].frame, headers[i]);
    parts[count++] = {headers[i].data(), kFrameBytes};
    if (frames[i].frame.payload != 0)
      parts[count++] = {const_cast<void*>(frames[i].payload), frames[i].frame.payload};
  }
  return count;
}

// The caller holds sending_. Frames queued during the call follow.
Status Connection::write(std::span<iovec> parts, SendMode mode, const Deadline& deadline) {
  Waiting waiting = Waiting::kNo;
  while (true) {
    const ssize_t sent = stream_->send(parts, waiting);
    if (sent < 0) return not_sent(mode);
    parts = advance(parts, static_cast<std::size_t>(sent));
    if (parts.empty()) return Status::ok();
    if (mode == SendMode::kQueue) return append(parts);
    if (waiting == Waiting::kNo) sink_.on_full();
    waiting = Waiting::kShortly;
    if (sent > 0) continue;
    // The frame has begun, so the rest must follow.
    if (deadline.has_passed()) {
      MEMSPAN_PASS(append(parts));
      return {Code::kTimeout, "the peer does not take what is sent"};
    }
    if (is_interrupted()) {
      MEMSPAN_PASS(append(parts));
      return interruption();
    }
  }
}

// The caller holds sending_. The receiving thread reads the peer's last frames, then the end.
Status Connection::not_sent(SendMode mode) {
  MutexLock lock(queue_mutex_);
  in_flight_.clear();
  in_flight_done_ = 0;
  queue_.clear();
  queued_bytes_.store(0, std::memory_order_release);
  return mode == SendMode::kWait ? ended() : Status::ok();
}

// The caller holds sending_; nothing is in flight. Puts the rest of a frame before the queue.
Status Connection::append(std::span<const iovec> parts) {
  in_flight_.clear();
  in_flight_done_ = 0;
  for (const iovec& part : parts) {
    const auto* bytes = static_cast<const std::byte*>(part.iov_base);
    in_flight_.insert(in_flight_.end(), bytes, bytes + part.iov_len);
  }
  queued_bytes_.fetch_add(in_flight_.size(), std::memory_order_release);
  return Status::ok();
}

Status Connection::queue(std::span<const OutFrame> frames) {
  MutexLock lock(queue_mutex_);
  for (const OutFrame& out : frames) {
    const std::size_t bytes = kFrameBytes + out.frame.payload;
    if (queued_bytes_.load(std::memory_order_relaxed) + bytes > kMostQueued)
      return {Code::kPeerLost, fmt::format("it does not take what it asked for: {} MiB are queued",
                                           kMostQueued >> 20)};
    FrameHeader header;
    write_header(out.frame, header);
    queue_.insert(queue_.end(), header.begin(), header.end());
    const auto* payload = static_cast<const std::byte*>(out.payload);
    if (out.frame.payload != 0) queue_.insert(queue_.end(), payload, payload + out.frame.payload);
    queued_bytes_.fetch_add(bytes, std::memory_order_release);
  }
  return Status::ok();
}

void Connection::send_queued() {
  // Repeats if another thread queued while this thread held the stream.
  while (has_queued() && sending_.try_lock()) {
    const std::lock_guard<std::mutex> lock(sending_, std::adopt_lock);
    const std::size_t before = queued_bytes_.load(std::memory_order_acquire);
    if (!write_queue(Waiting::kNo).is_ok()) static_cast<void>(not_sent(SendMode::kQueue));
    if (queued_bytes_.load(std::memory_order_acquire) >= before) break;  // the stream is full
  }
}

void Connection::say_goodbye() {
  const OutFrame bye{{.type = FrameType::kBye, .region = {}}, nullptr};
  if (!send({&bye, 1}, SendMode::kQueue).is_ok()) return;
  const Deadline deadline = Deadline::after(kGoodbyeLimit);
  for (send_queued(); has_queued() && !deadline.has_passed(); send_queued()) {
    pollfd one{descriptor(), POLLOUT, 0};
    ::poll(&one, 1, 1);
    std::this_thread::yield();
  }
}

// The caller holds sending_. Calls the stream once.
Status Connection::write_queue(Waiting waiting) {
  if (in_flight_done_ == in_flight_.size()) {
    MutexLock lock(queue_mutex_);
    in_flight_.clear();
    in_flight_done_ = 0;
    std::swap(in_flight_, queue_);
  }
  const iovec part{in_flight_.data() + in_flight_done_, in_flight_.size() - in_flight_done_};
  if (part.iov_len == 0) return Status::ok();
  const ssize_t sent = stream_->send({&part, 1}, waiting);
  if (sent < 0) return ended();
  in_flight_done_ += static_cast<std::size_t>(sent);
  queued_bytes_.fetch_sub(static_cast<std::size_t>(sent), std::memory_order_release);
  return Status::ok();
}

// Applies faults in a thread that waits for an answer; the progress thread does it by itself.
bool Connection::hold(Waiting waiting) const {
  if (!has_faults() || waiting == Waiting::kNo) return true;
  pollfd one{descriptor(), POLLIN, 0};
  constexpr auto kMs = static_cast<int>(kStreamWait.count());
  if (faults_->silent.load()) one.fd = -1;
  if ((one.fd < 0 || !stream_->has_buffered()) && ::poll(&one, 1, kMs) <= 0) return false;
  std::this_thread::sleep_for(faults_->hold());
  return true;
}

Result<Connection::Received> Connection::receive(Waiting waiting) {
  if (!hold(waiting)) return Received{};
  std::array<iovec, 2> places;
  const std::size_t count = reader_.prepare(places);
  std::size_t room = 0;
  for (std::size_t i = 0; i < count; ++i) room += places[i].iov_len;
  ssize_t got = 0;
  const auto has_come = [&] {
    return (got = stream_->receive({places.data(), count}, Waiting::kNo)) != 0;
  };
  if (waiting == Waiting::kNo || has_faults() || !spin_.wait(has_come))
    got = stream_->receive({places.data(), count}, waiting);
  const bool is_hidden = got > 0 && stream_->has_buffered();
  if (got > 0)
    received_.store(received() + static_cast<std::uint64_t>(got), std::memory_order_relaxed);
  const std::uint64_t before = reader_.frames();
  MEMSPAN_PASS(reader_.received(static_cast<std::size_t>(std::max<ssize_t>(got, 0))));
  if (got < 0) return ended();
  if (has_faults()) {
    if (faults_->cut_after != 0 && reader_.frames() >= faults_->cut_after) {
      cut();
      return ended();
    }
    const std::uint64_t all =
        faults_->received.fetch_add(reader_.frames() - before) + reader_.frames() - before;
    if (faults_->silent_after != 0 && all >= faults_->silent_after) faults_->silent.store(true);
  }
  return Received{static_cast<std::size_t>(got), static_cast<std::size_t>(got) < room, is_hidden};
}

}  // namespace memspan
