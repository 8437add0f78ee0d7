// SPDX-License-Identifier: Apache-2.0
// One member's connection to the store: keys, waits, compare-and-swap, watches and ranks.
//
// Every call is a request and its answer on one connection. Calls from several threads are served
// one after the other, but a waiting call does not block other threads. Requests carry an id, and
// answers come in any order. When the connection is lost, every pending and later call returns
// kStoreLost at once. A call that is not answered by its deadline returns kTimeout and leaves the
// connection usable; the store may still perform it.
//
// The connection is the member's session. When it ends, or the member is silent for its declared
// time, the store removes its leased keys and its ranks.
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
#include <deque>
#include <thread>

#include "core/fd.h"
#include "net/byte_channel.h"
#include "store/connect.h"
#include "store/recipes/rank_recipe.h"
#include "store/watch_calls.h"
#include "store/wire.h"

namespace memspan {

// Runs a handshake to its end. kTimeout at the deadline.
Status finish_handshake(ByteChannel& stream, const Deadline& deadline);

// Thread-safe. In a child made by fork() every call returns kForked.
class StoreClient final : public KeyValueStore, public RankService {
 public:
  // Connects, and retries until the deadline while no process listens; kTimeout then names the
  // endpoint and the last reason. The client is connected only after it has read the server's
  // welcome. kAuth (no mutual trust, or only one side uses TLS),
  // kNotSupported and kInvalidArgument are not retried. kNotSupported means that nothing protects a
  // connection to another host, or that the server speaks another version. Each attempt tries all
  // addresses in order.
  static Result<std::unique_ptr<StoreClient>> connect(const StoreAccess& access, Deadline deadline);
  // Takes over a connected stream socket (one half of a socket pair whose other half a
  // StoreServer adopted).
  static Result<std::unique_ptr<StoreClient>> adopt(Fd socket, std::string_view member,
                                                    Deadline deadline);
  // Greets the server at the other end and reads its welcome. `where` names the store in messages.
  // kStoreLost when the connection ends before the welcome, the server's own code when it refuses.
  static Result<std::unique_ptr<StoreClient>> greet(std::unique_ptr<ByteChannel> stream,
                                                    std::string where, const StoreHello& hello,
                                                    Deadline deadline);
  ~StoreClient() override;

  // The plain verbs (key_value_store.h). The store itself reports the timeout of a get. If it is
  // silent, a get or a wait ends a second after the deadline.
  Status set(std::string_view key, std::string_view value, Deadline deadline,
             KeyLife life = KeyLife::kPermanent) override;
  Result<std::string> get(std::string_view key, Deadline deadline) override;
  Result<std::string> get_now(std::string_view key, Deadline deadline) override;
  Result<std::string> compare_and_swap(std::string_view key, std::string_view expected,
                                       std::string_view desired, Deadline deadline,
                                       KeyLife life = KeyLife::kPermanent) override;
  Result<bool> remove(std::string_view key, Deadline deadline) override;
  Result<StoreListing> list(std::string_view prefix, Deadline deadline) override;
  Result<std::uint64_t> watch(std::string_view prefix, StoreWatcher watcher,
                              Deadline deadline) override;
  Status unwatch(std::uint64_t watch, Deadline deadline) override;
  void end() override;
  std::uint64_t lease() const override { return welcome_.session; }
  const std::string& member() const override { return member_; }
  RankService* rank_service() override { return this; }

  // As in recipes/rank_recipe.h.
  Result<StoreRank> take_rank(std::string_view scope, int rank, int size,
                              Deadline deadline) override;
  Status give_rank(std::string_view scope, Deadline deadline) override;

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

  StoreClient(std::unique_ptr<ByteChannel> stream, WakeEvent wake, std::string where,
              const StoreHello& hello);
  Status say_hello(const StoreHello& hello, const Deadline& deadline);
  // Sets the id and the timeout. Any answer but kOk becomes a status that names the operation, the
  // key and the store. A waiting call may take kAnswerGrace longer than the deadline, to receive
  // the store's own answer, which names what is missing.
  Result<StoreAnswer> call(StoreRequest request, Deadline deadline);
  Result<std::string> value_of(StoreRequest request, Deadline deadline);
  Status check_process(StoreOperation operation) const;
  std::uint64_t next_id();
  Result<StoreAnswer> exchange(std::uint64_t id, std::string frame, Deadline deadline);
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
  const std::string member_;
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
  // Shared with the event thread while it calls one, and with unwatch().
  std::map<std::uint64_t, std::shared_ptr<WatchCalls>> watches_ MEMSPAN_GUARDED_BY(mutex_);
  std::deque<StoreAnswer> events_ MEMSPAN_GUARDED_BY(mutex_);
  Clock::time_point heard_ MEMSPAN_GUARDED_BY(mutex_);
  Clock::time_point pinged_ MEMSPAN_GUARDED_BY(mutex_);
  bool is_greeted_ MEMSPAN_GUARDED_BY(mutex_) = false;  // the welcome has come
  bool is_ending_ MEMSPAN_GUARDED_BY(mutex_) = false;
  std::unique_ptr<std::thread> event_thread_ MEMSPAN_GUARDED_BY(mutex_);

  // Only for the driver; threads take and leave that role under mutex_.
  StoreFrameReader reader_;
  bool is_welcomed_ = false;
  std::vector<char> chunk_;
};

}  // namespace memspan
