// SPDX-License-Identifier: Apache-2.0
// The client's end of one connection, for calls from many threads and answers in any order.
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

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "core/fd.h"
#include "core/mutex.h"
#include "core/status.h"
#include "net/byte_channel.h"
#include "store/client.h"
#include "store/wire.h"

namespace memspan {

// Runs a handshake to its end. kTimeout at the deadline.
Status finish_handshake(ByteChannel& stream, const Deadline& deadline);

// Thread-safe.
class StoreClient::Connection {
 public:
  // Greets the server and reads its welcome. `where` names the store in messages. kStoreLost when
  // the connection ends before the welcome, the server's own code when it refuses.
  static Result<std::unique_ptr<Connection>> greet(std::unique_ptr<ByteChannel> stream,
                                                   std::string where, const StoreHello& hello,
                                                   Deadline deadline);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Sets the id and the timeout. Any answer but kOk becomes a status that names the operation, the
  // keys and the store. A waiting call may take kAnswerGrace longer than the deadline, to receive
  // the store's own answer, which names what is missing.
  Result<StoreAnswer> call(StoreRequest request, Deadline deadline);
  // Like call(), but return one part of the answer.
  Result<std::string> value_of(StoreRequest request, Deadline deadline);
  Result<std::int64_t> number_of(StoreRequest request, Deadline deadline);
  Result<std::vector<std::string>> texts_of(StoreRequest request, Deadline deadline);

  Result<std::uint64_t> watch(std::string prefix, StoreWatcher watcher, Deadline deadline);
  Status unwatch(std::uint64_t watch, Deadline deadline);

  void end();

  const StoreWelcome& welcome() const { return welcome_; }

 private:
  struct Call {
    bool is_answered = false;
    StoreAnswer answer = {};
  };
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

  Connection(std::unique_ptr<ByteChannel> stream, WakeEvent wake, std::string where,
             Duration silence);
  Status say_hello(const StoreHello& hello, const Deadline& deadline);
  Status check_process(StoreOperation operation) const;
  std::uint64_t next_id();
  Status exchange(std::uint64_t id, std::string frame, StoreAnswer& answer, Deadline deadline);
  void send(std::uint64_t id, std::string frame) MEMSPAN_REQUIRES(mutex_);
  void flush() MEMSPAN_REQUIRES(mutex_);
  void withdraw(std::uint64_t id) MEMSPAN_REQUIRES(mutex_);
  void await(const Call& call, const Deadline& deadline) MEMSPAN_REQUIRES(mutex_);
  void drive(const Deadline& deadline) MEMSPAN_REQUIRES(mutex_);
  void hand_out(std::vector<StoreAnswer> answers) MEMSPAN_REQUIRES(mutex_);
  void lose(const Status& why) MEMSPAN_REQUIRES(mutex_);

  // In a child of fork(), where another thread may have held the mutex for good.
  bool is_inherited() const { return ::getpid() != process_; }
  void forget_in_child() MEMSPAN_ATTRIBUTE_(no_thread_safety_analysis);

  // For the event thread.
  Status need_event_thread();
  void run_events();
  void call_watchers() MEMSPAN_REQUIRES(mutex_);
  void keep_in_touch() MEMSPAN_REQUIRES(mutex_);

  // For the driver, without the lock.
  Turn take_turn(bool has_unsent, const Deadline& deadline);
  void receive(Turn& turn);
  void decode(std::string_view body, Turn& turn);

  const std::unique_ptr<ByteChannel> stream_;
  const WakeEvent wake_;  // wakes the driver to send
  const std::string where_;
  const Duration silence_;  // zero: no limit
  const pid_t process_;
  StoreWelcome welcome_;
  std::atomic<std::uint64_t> next_id_;

  Mutex mutex_;
  ConditionVariable changed_;  // an answer or event came, no thread drives, or the store is lost
  bool is_driven_ MEMSPAN_GUARDED_BY(mutex_) = false;
  Status lost_ MEMSPAN_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Call*> calls_ MEMSPAN_GUARDED_BY(mutex_);
  std::deque<Outgoing> unsent_ MEMSPAN_GUARDED_BY(mutex_);
  // Shared with the event thread while it calls one. Null: over, but the last call still runs.
  std::map<std::uint64_t, std::shared_ptr<StoreWatcher>> watchers_ MEMSPAN_GUARDED_BY(mutex_);
  std::deque<StoreAnswer> events_ MEMSPAN_GUARDED_BY(mutex_);
  Clock::time_point heard_ MEMSPAN_GUARDED_BY(mutex_);
  Clock::time_point pinged_ MEMSPAN_GUARDED_BY(mutex_);
  bool is_greeted_ MEMSPAN_GUARDED_BY(mutex_) = false;         // the welcome has come
  std::uint64_t called_watch_ MEMSPAN_GUARDED_BY(mutex_) = 0;  // whose watcher runs now; 0: none
  bool is_ending_ MEMSPAN_GUARDED_BY(mutex_) = false;
  std::unique_ptr<std::thread> event_thread_ MEMSPAN_GUARDED_BY(mutex_);

  // Only for the driver; threads take and leave that role under mutex_.
  StoreFrameReader reader_;
  bool is_welcomed_ = false;
  std::vector<char> chunk_;
};

}  // namespace memspan
