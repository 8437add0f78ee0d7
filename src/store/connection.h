// SPDX-License-Identifier: Apache-2.0
// The client's end of one connection, for calls from many threads and answers in any order.
//
// There is no thread of its own. One of the callers that wait is the driver: it polls the socket,
// reads, and hands every answer to its caller; when it leaves, the next one drives.
//
//   caller A  send ---- wait ----------------- answered, leaves: B drives
//   caller B        send ---- wait ----------------------------- drives ----
//
// Always holds: with callers waiting, exactly one drives or is about to. A driver works without
// the lock, so a slow socket keeps nobody from sending.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/fd.h"
#include "core/mutex.h"
#include "core/status.h"
#include "store/client.h"
#include "store/wire.h"

namespace memspan {

// Thread-safe.
class StoreClient::Connection {
 public:
  // Greets the server and reads its welcome. `where` names the store in messages. kStoreLost when
  // the connection ends before the welcome, the server's own code when it refuses.
  static Result<std::unique_ptr<Connection>> greet(Fd socket, std::string where,
                                                   std::string_view member, Deadline deadline);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The id and the time-out are set here. Any answer but kOk comes back as a status that names
  // the operation, the keys and the store. A get or a wait may take kAnswerGrace longer than the
  // deadline, so that the store's own answer, which knows what is missing, is seen.
  Result<StoreAnswer> call(StoreRequest request, Deadline deadline);

 private:
  struct Call {
    bool is_answered = false;
    StoreAnswer answer = {};
  };
  struct Outgoing {
    std::uint64_t id = 0;
    std::string frame;
    std::size_t sent = 0;
  };
  // What one turn of the driver found.
  struct Turn {
    std::vector<StoreAnswer> answers;
    std::string lost_because = {};
  };

  Connection(Fd socket, Fd wake, std::string where);
  Status exchange(std::uint64_t id, std::string frame, StoreAnswer& answer, Deadline deadline);
  void send(std::uint64_t id, std::string frame) MEMSPAN_REQUIRES(mutex_);
  void flush() MEMSPAN_REQUIRES(mutex_);
  void withdraw(std::uint64_t id) MEMSPAN_REQUIRES(mutex_);
  void await(const Call& call, const Deadline& deadline) MEMSPAN_REQUIRES(mutex_);
  void drive(const Deadline& deadline) MEMSPAN_REQUIRES(mutex_);
  void lose(std::string_view because) MEMSPAN_REQUIRES(mutex_);

  // The driver's, without the lock.
  Turn take_turn(bool has_unsent, const Deadline& deadline);
  void receive(Turn& turn);
  void decode(std::string_view body, Turn& turn);

  const Fd socket_;
  const Fd wake_;  // an eventfd: tells the driver that there is something to send
  const std::string where_;
  std::atomic<std::uint64_t> next_id_;

  Mutex mutex_;
  ConditionVariable changed_;  // an answer came, nobody drives, or the store is lost
  bool is_driven_ MEMSPAN_GUARDED_BY(mutex_) = false;
  Status lost_ MEMSPAN_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Call*> calls_ MEMSPAN_GUARDED_BY(mutex_);
  std::deque<Outgoing> unsent_ MEMSPAN_GUARDED_BY(mutex_);

  // Of the driver, who takes and leaves that role under mutex_.
  FrameReader reader_;
  bool is_welcomed_ = false;
  std::vector<char> chunk_;
};

}  // namespace memspan
