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
#pragma once

#include "core/fd.h"
#include "net/byte_channel.h"
#include "store/connect.h"
#include "store/recipes/rank_recipe.h"
#include "store/wire.h"

namespace memspan::inline store {

// Runs a handshake to its end. kTimeout at the deadline.
Status finish_handshake(ByteChannel& stream, const Deadline& deadline);

// Thread-safe. In a child made by fork() every call returns kForked.
class StoreClient : public KeyValueStore, public RankService {
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
};

}  // namespace memspan::inline store
