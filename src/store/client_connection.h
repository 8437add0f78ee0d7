// SPDX-License-Identifier: Apache-2.0
// One member's connection to the built-in server: requests and their answers, watches, and the end.
// The verbs that make the requests are in client.cc.
//
// One of the waiting callers is the driver: it polls the socket, reads, and hands every answer to
// its caller. When it leaves, the next one drives.
//
//   caller A  send ---- wait ----------------- answered, leaves: B drives
//   caller B        send ---- wait ----------------------------- drives ----
//   event thread   (only for watches and pings)  drives when no caller does, calls watchers
//
// Invariant: while threads wait, exactly one drives or is about to. A driver works without the
// lock, so a slow socket never blocks a sender.
#pragma once

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <deque>
#include <map>
#include <new>
#include <thread>
#include <vector>

#include "core/interrupt.h"
#include "core/mutex.h"
#include "core/thread.h"
#include "store/client.h"
#include "store/watch_calls.h"

namespace memspan::inline store {

// Thread-safe. The derived class's destructor calls close(), because watchers may call its verbs
// until then.
class StoreConnection : public StoreClient {
 public:
  StoreConnection(std::unique_ptr<ByteChannel> stream, WakeEvent wake, std::string where,
                  const StoreHello& hello)
      : stream_(std::move(stream)),
        wake_(std::move(wake)),
        where_(std::move(where)),
        member_(hello.member),
        silence_(std::chrono::milliseconds(hello.silence_ms)) {}

  // Sends the hello and reads the welcome.
  Status say_hello(const StoreHello& hello, const Deadline& deadline) {
    MEMSPAN_PASS_ASSIGN(const StoreAnswer answer, exchange(kWelcomeId, encode(hello), deadline));
    auto welcome = decode_welcome(answer.value);
    if (!welcome.is_ok())
      return {Code::kStoreLost, fmt::format("{}: {}", where_, welcome.status().message())};
    welcome_ = std::move(welcome).value();
    if (welcome_.code != Code::kOk)
      return {welcome_.code, fmt::format("the store at {}: {}", where_, welcome_.message)};
    return silence_ == Duration::zero() ? Status::ok() : need_event_thread();
  }

  // Registers the watcher before the first change can arrive.
  Result<std::uint64_t> watch(std::string_view prefix, StoreWatcher watcher,
                              Deadline deadline) override {
    MEMSPAN_PASS(check_process(StoreOperation::kWatch));
    MEMSPAN_PASS(need_event_thread());
    const std::uint64_t id = next_id();
    {
      MutexLock lock(mutex_);
      watches_.emplace(id, std::make_shared<WatchCalls>(std::move(watcher)));
    }
    auto answer =
        call({.id = id, .operation = StoreOperation::kWatch, .key = std::string(prefix)}, deadline);
    if (answer.is_ok()) return id;
    MutexLock lock(mutex_);
    watches_.erase(id);
    return answer.status();
  }

  // No caller waits for the store's answer, so a silent store delays none.
  Status unwatch(std::uint64_t watch, Deadline deadline) override {
    const StoreRequest request{
        .id = next_id(), .operation = StoreOperation::kUnwatch, .watch = watch};
    MEMSPAN_PASS(check_process(request.operation));
    std::shared_ptr<WatchCalls> over;
    {
      MutexLock lock(mutex_);
      if (const auto found = watches_.find(watch); found != watches_.end()) over = found->second;
    }
    if (over == nullptr)
      return {Code::kNotFound, fmt::format("unwatch: there is no watch {}", watch)};
    MEMSPAN_PASS(over->end(deadline));
    MutexLock lock(mutex_);
    watches_.erase(watch);
    if (!lost_.is_ok()) return lost_;
    send(request.id, encode(request));
    return Status::ok();
  }

  void end() final {
    if (is_inherited()) return;
    std::unique_ptr<std::thread> event_thread;
    {
      MutexLock lock(mutex_);
      is_ending_ = true;
      event_thread.swap(event_thread_);
      changed_.notify_all();
      lose({Code::kStoreLost, "this process ended the connection"});  // by shutdown: a child of
                                                                      // fork() may hold the socket
    }
    if (event_thread == nullptr) return;
    wake_.ring();
    event_thread->join();
  }

  std::uint64_t lease() const override { return welcome_.session; }
  const std::string& member() const override { return member_; }

 protected:
  // fork() did not take the thread along, but perhaps the mutex in its hands.
  void close() MEMSPAN_ATTRIBUTE_(no_thread_safety_analysis) {
    if (is_inherited()) static_cast<void>(event_thread_.release());
    end();
  }

  // Sets the id and the timeout. Any answer but kOk becomes a status that names the operation, the
  // key and the store. A waiting call may take kAnswerGrace longer than the deadline, to receive
  // the store's own answer, which names what is missing.
  Result<StoreAnswer> call(StoreRequest request, Deadline deadline) {
    if (Status status = check_request(request); !status.is_ok())
      return status.annotate(operation_name(request.operation));
    MEMSPAN_PASS(check_process(request.operation));
    const auto what = [&] {
      return fmt::format("{} of {} at the store {}", operation_name(request.operation),
                         quoted_key(request.key), where_);
    };
    const Clock::time_point begin = Clock::now();
    if (request.id == 0) request.id = next_id();
    const bool is_blocking = request.operation == StoreOperation::kGet;
    if (is_blocking) request.timeout_ms = timeout_ms(deadline);
    auto answer =
        exchange(request.id, encode(request), is_blocking ? with_grace(deadline) : deadline);
    if (answer.is_ok() && answer->code == Code::kOk) return answer;
    const Status status = answer.is_ok() ? Status(answer->code, answer->message) : answer.status();
    if (status.code() != Code::kTimeout) return status.annotate(what());
    return status.annotate(
        fmt::format("{}: timed out after {:.3f} s", what(), to_seconds(Clock::now() - begin)));
  }

 private:
  // Number of pings within the silence limit.
  static constexpr int kPingsInSilence = 4;
  // The welcome travels through the same table as the answers, under an id that no request has.
  static constexpr std::uint64_t kWelcomeId = kFarewellId;
  // Long enough for an answer that left the store in time, short compared with any timeout in use.
  static constexpr Duration kAnswerGrace = std::chrono::seconds(1);
  static constexpr std::size_t kChunkBytes = std::size_t{64} << 10;

  struct Outgoing {
    std::uint64_t id = 0;
    std::string frame;
    std::size_t sent = 0;
    bool has_begun = false;  // the stream may have taken a part that it has not sent yet
  };
  // Result of one turn of the driver.
  struct Turn {
    std::vector<StoreAnswer> answers;
    bool has_heard = false;
    Status lost = {};  // not ok: why the store is lost
  };

  static Status store_lost(std::string because) { return {Code::kStoreLost, std::move(because)}; }

  static std::uint32_t timeout_ms(const Deadline& deadline) {
    if (deadline.is_never()) return kNoTimeout;
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining()).count();
    return static_cast<std::uint32_t>(std::min<std::int64_t>(ms, kNoTimeout - 1));
  }

  static Deadline with_grace(const Deadline& deadline) {
    if (deadline.is_never()) return deadline;
    return Deadline::after(deadline.remaining() + kAnswerGrace);
  }

  // Tries again while memory is short, for up to a tenth of a second. `step` may be done again
  // after std::bad_alloc.
  template <typename Step>
  static void patiently(const Step& step) {
    constexpr int kTries = 10;
    constexpr auto kPause = std::chrono::milliseconds(10);
    for (int left = kTries; left > 1; --left) {
      try {
        return step();
      } catch (const std::bad_alloc&) {
        std::this_thread::sleep_for(kPause);
      }
    }
    step();
  }

  Status check_process(StoreOperation operation) const {
    if (!is_inherited()) return Status::ok();
    return {Code::kForked,
            fmt::format("{}: the connection to the store belongs to process {}, which "
                        "made this one by fork()",
                        operation_name(operation), process_)};
  }

  std::uint64_t next_id() {
    return next_id_.fetch_add(1, std::memory_order_relaxed);  // pairs with nothing: unique
  }

  Result<StoreAnswer> exchange(std::uint64_t id, std::string frame, Deadline deadline) {
    std::optional<StoreAnswer> answer;
    MutexLock lock(mutex_);
    if (!lost_.is_ok()) return lost_;
    if (deadline.has_passed())
      return Status(Code::kTimeout, "the deadline passed before it was sent");
    try {
      calls_.emplace(id, &answer);
      send(id, std::move(frame));
      await(answer, deadline);
    } catch (const std::bad_alloc&) {
      calls_.erase(id);
      withdraw(id);
      throw;
    }
    calls_.erase(id);
    withdraw(id);
    if (answer) return std::move(*answer);
    if (!lost_.is_ok()) return lost_;
    return end_of_wait(fmt::format("no answer from {}", where_));
  }

  void send(std::uint64_t id, std::string frame) MEMSPAN_REQUIRES(mutex_) {
    unsent_.push_back({.id = id, .frame = std::move(frame)});
    flush();
    if (!unsent_.empty() && is_driven_) wake_.ring();
  }

  // Never blocks; the driver sends what the socket does not take now.
  void flush() MEMSPAN_REQUIRES(mutex_) {
    while (!unsent_.empty() && lost_.is_ok()) {
      Outgoing& next = unsent_.front();
      const ChannelStep step = stream_->write(std::string_view(next.frame).substr(next.sent));
      next.has_begun = true;
      if (step.next == ChannelStep::Next::kFailed) return lose(step.failure);
      if (step.next != ChannelStep::Next::kDone) return;
      next.sent += step.bytes;
      if (next.sent == next.frame.size()) unsent_.pop_front();
    }
  }

  // A frame that was partly sent must be completed, or the stream is corrupt.
  void withdraw(std::uint64_t id) MEMSPAN_REQUIRES(mutex_) {
    std::erase_if(unsent_, [id](const Outgoing& out) { return out.id == id && !out.has_begun; });
  }

  // A caller without a deadline leaves the driving to the event thread, which then learns of events
  // without another thread.
  void await(const std::optional<StoreAnswer>& answer, const Deadline& deadline)
      MEMSPAN_REQUIRES(mutex_) {
    bool goes_on = !deadline.has_passed();
    while (!answer && lost_.is_ok() && goes_on) {
      if (is_driven_ || (deadline.is_never() && event_thread_ != nullptr)) {
        if (!is_driven_) changed_.notify_all();
        goes_on = wait_interruptibly(changed_, mutex_, deadline);
      } else {
        drive(until_next_look(deadline));
        goes_on = !is_interrupted(mutex_) && !deadline.has_passed();
      }
    }
    if (!is_driven_) changed_.notify_all();  // another thread must drive now
  }

  void drive(const Deadline& deadline) MEMSPAN_REQUIRES(mutex_) {
    is_driven_ = true;
    const bool has_unsent = !unsent_.empty();
    Turn turn;
    bool has_memory = true;
    mutex_.unlock();
    try {
      turn = take_turn(has_unsent, deadline);
    } catch (const std::bad_alloc&) {
      has_memory = false;  // what it has read is lost, so the connection is
    }
    mutex_.lock();
    is_driven_ = false;
    if (!has_memory) turn.lost = {Code::kOutOfMemory, "no memory for what it sent"};
    if (turn.has_heard) heard_ = Clock::now();
    hand_out(std::move(turn.answers));
    if (!turn.lost.is_ok())
      lose(turn.lost);
    else
      flush();
  }

  void hand_out(std::vector<StoreAnswer> answers) MEMSPAN_REQUIRES(mutex_) {
    if (answers.empty()) return;
    for (StoreAnswer& answer : answers) {
      if (answer.event != StoreEvent::kNone) {
        events_.push_back(std::move(answer));
        continue;
      }
      const auto call = calls_.find(answer.id);
      // Else its caller has given up.
      if (call != calls_.end()) *call->second = std::move(answer);
    }
    changed_.notify_all();
  }

  // In TLS 1.3 the store checks our certificate after our handshake. A failure before the welcome
  // is therefore a refusal, and a retry would also fail.
  void lose(const Status& why) MEMSPAN_REQUIRES(mutex_) {
    const Code code = why.code() == Code::kAuth && !is_welcomed_ ? Code::kAuth : Code::kStoreLost;
    if (lost_.is_ok()) lost_ = {code, fmt::format("lost {}: {}", where_, why.message())};
    unsent_.clear();
    ::shutdown(stream_->socket(), SHUT_RDWR);  // also ends another thread's poll
    changed_.notify_all();
  }

  // In a child of fork(), where another thread may have held the mutex for good.
  bool is_inherited() const { return ::getpid() != process_; }

  // For the event thread.
  Status need_event_thread() {
    MutexLock lock(mutex_);
    if (event_thread_ != nullptr) return Status::ok();
    auto held = std::make_unique<std::thread>();  // before a thread runs
    MEMSPAN_PASS_ASSIGN(*held, start_thread("a store's client", [this] { run_events(); }));
    event_thread_ = std::move(held);
    return Status::ok();
  }

  void run_events() {
    MutexLock lock(mutex_);
    // Events that arrived before the loss of the store are delivered.
    while (!is_ending_ && (lost_.is_ok() || !events_.empty())) {
      if (!events_.empty()) {
        call_watchers();
        continue;
      }
      keep_in_touch();
      if (!lost_.is_ok()) continue;
      const Deadline until = silence_ == Duration::zero()
                                 ? Deadline::never()
                                 : Deadline::after(silence_ / kPingsInSilence);
      if (is_driven_)
        changed_.wait_until(mutex_, until);
      else
        drive(until);
      if (!is_driven_) changed_.notify_all();  // a waiting thread must drive now
    }
  }

  void call_watchers() MEMSPAN_REQUIRES(mutex_) {
    const StoreAnswer event = std::move(events_.front());
    events_.pop_front();
    const auto found = watches_.find(event.id);
    if (found == watches_.end()) return;
    const std::shared_ptr<WatchCalls> watch = found->second;
    mutex_.unlock();
    watch->call({.event = event.event, .key = event.key.text(), .value = event.value.text()});
    mutex_.lock();
  }

  // No caller waits for the answers to pings.
  void keep_in_touch() MEMSPAN_REQUIRES(mutex_) {
    if (silence_ == Duration::zero()) return;
    const Clock::time_point now = Clock::now();
    if (now - heard_ > silence_)
      return lose(store_lost(
          fmt::format("nothing was heard of it for {:.3f} s", to_seconds(now - heard_))));
    if (now - pinged_ < silence_ / kPingsInSilence) return;
    pinged_ = now;
    const std::uint64_t id = next_id();
    send(id, encode(StoreRequest{.id = id, .operation = StoreOperation::kPing}));
  }

  // For the driver, without the lock.
  Turn take_turn(bool has_unsent, const Deadline& deadline) {
    Turn turn;
    const short events = has_unsent ? POLLIN | POLLOUT : POLLIN;
    pollfd polled[] = {{.fd = stream_->socket(), .events = events, .revents = 0},
                       {.fd = wake_.descriptor(), .events = POLLIN, .revents = 0}};
    if (::poll(polled, 2, deadline.remaining_poll_ms()) < 0) {
      if (errno != EINTR) turn.lost = Status::from_errno("polling");
      return turn;
    }
    if (polled[1].revents != 0) wake_.silence();
    if ((polled[0].revents & ~POLLOUT) != 0) receive(turn);
    return turn;
  }

  // Reads until the stream is empty: poll() does not report what the stream has already buffered.
  void receive(Turn& turn) {
    for (;;) {
      const ChannelStep step = stream_->read(chunk_.data(), chunk_.size());
      if (step.next == ChannelStep::Next::kEnd) turn.lost = store_lost("it closed the connection");
      if (step.next == ChannelStep::Next::kFailed) turn.lost = step.failure;
      if (step.next != ChannelStep::Next::kDone) return;
      turn.has_heard = true;
      patiently([&] { reader_.feed({chunk_.data(), step.bytes}); });
      while (auto body = reader_.next()) patiently([&] { decode(*body, turn); });
      if (reader_.is_broken()) turn.lost = store_lost("it sent a frame that is too long or empty");
      if (!turn.lost.is_ok()) return;
    }
  }

  void decode(std::string_view body, Turn& turn) {
    if (!is_welcomed_) {
      turn.answers.push_back({.id = kWelcomeId, .value = std::string(body)});
      is_welcomed_ = true;
      return;
    }
    auto answer = decode_answer(body);
    if (!answer.is_ok())
      turn.lost = store_lost(answer.status().message());
    else if (answer->id == kFarewellId)
      turn.lost = store_lost(answer->message);
    else
      turn.answers.push_back(std::move(answer).value());
  }

  const std::unique_ptr<ByteChannel> stream_;
  const WakeEvent wake_;  // wakes the driver to send
  const std::string where_;
  const std::string member_;
  const Duration silence_;  // zero: no limit
  const pid_t process_ = ::getpid();
  StoreWelcome welcome_;
  std::atomic<bool> is_welcomed_ = false;  // the welcome has come; set by the driver
  std::atomic<std::uint64_t> next_id_ = kWelcomeId + 1;

  Mutex mutex_;
  ConditionVariable changed_;  // an answer or event came, no thread drives, or the store is lost
  bool is_driven_ MEMSPAN_GUARDED_BY(mutex_) = false;
  Status lost_ MEMSPAN_GUARDED_BY(mutex_);
  // The places of the answers.
  std::map<std::uint64_t, std::optional<StoreAnswer>*> calls_ MEMSPAN_GUARDED_BY(mutex_);
  std::deque<Outgoing> unsent_ MEMSPAN_GUARDED_BY(mutex_);
  // Shared with the event thread while it calls one, and with unwatch().
  std::map<std::uint64_t, std::shared_ptr<WatchCalls>> watches_ MEMSPAN_GUARDED_BY(mutex_);
  std::deque<StoreAnswer> events_ MEMSPAN_GUARDED_BY(mutex_);
  Clock::time_point heard_ MEMSPAN_GUARDED_BY(mutex_) = Clock::now();
  Clock::time_point pinged_ MEMSPAN_GUARDED_BY(mutex_) = Clock::now();
  bool is_ending_ MEMSPAN_GUARDED_BY(mutex_) = false;
  std::unique_ptr<std::thread> event_thread_ MEMSPAN_GUARDED_BY(mutex_);

  // Only for the driver; threads take and leave that role under mutex_.
  StoreFrameReader reader_{kMaxFrameBytes};
  std::vector<char> chunk_ = std::vector<char>(kChunkBytes);
};

}  // namespace memspan::inline store
