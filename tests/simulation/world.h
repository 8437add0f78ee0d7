// SPDX-License-Identifier: Apache-2.0
// The real StoreState in a small world that a seed decides about: clients with random programs, a
// network that keeps each direction of a connection in order but is as slow as it likes, clients
// that go, fall silent and come back, and a clock that only this world moves.
//
//   client ──requests──► queue ──► StoreState ──► queue ──answers──► client
//     │                            Reference                          │
//     └────────────────────────── History ────────────────────────────┘
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "simulation/dice.h"
#include "simulation/reference.h"
#include "store/state.h"

namespace memspan::simulation {

enum class Trace { kNone, kPrinted };

// How long a client that agreed to it may be silent: far longer than the slowest message takes.
inline constexpr Duration kSilence = std::chrono::milliseconds(300);

// One run. One thread at a time.
class World {
 public:
  World(std::uint64_t seed, Trace trace);

  // Empty, or the first thing that was wrong.
  std::string run();

 private:
  using Time = Clock::time_point;
  using Events = std::map<std::pair<Time, std::uint64_t>, std::function<void()>>;

  // A request that its client has not seen an answer to.
  struct Asked {
    std::uint64_t begin = 0;
    StoreRequest request;
  };
  struct Session {
    SessionId id = 0;
    std::size_t client = 0;
    bool may_be_dead = false;  // agreed to a silence after which it is
    bool is_mute = false;      // says nothing more, and will be taken for dead
    bool is_cut = false;       // what is under way to the store is lost
    bool is_there = true;      // false: the client is gone and reads nothing
    std::uint64_t last_id = 0;
    Time last_to_store = {};  // when the last message will have arrived
    Time last_to_client = {};
    Time heard = {};  // when the store last heard of it
    std::map<std::uint64_t, Asked> asked = {};
    std::map<std::uint64_t, std::vector<Change>> watches = {};  // what each was told
    std::set<std::uint64_t> unwatched = {};
  };
  struct Client {
    SessionId session = 0;  // 0: is away
    int steps = 0;          // of its program, still to do
  };

  // The clock and the network.
  void at(Time when, std::function<void()> event);
  Duration delay();
  void turn_the_clock();
  void expire();

  // Clients (client.cc).
  void come(std::size_t client);
  void go(std::size_t client);
  void step(SessionId session);
  void keep_in_touch(SessionId session);
  StoreRequest next_request(Session& session);
  StoreRequest key_request();
  StoreRequest watch_request(Session& session);
  std::uint32_t random_time();
  std::string random_key();
  std::string random_value();
  void transmit(Session& session, std::function<void()> arrive);
  void ask(Session& session, StoreRequest request);
  void read(SessionId session, const StoreAnswer& answer);
  void remember(const Session& session, const Asked& asked, const StoreAnswer* answer);

  // The store's side.
  void serve(SessionId session, const StoreRequest& request);
  void lose(SessionId session);
  void end(SessionId session);
  void send(const StoreAnswers& answers);

  // What is wrong, and for a person to read.
  void say(std::string_view what, SessionId session, std::uint64_t request = 0,
           std::string_view about = {}) const;
  void fail(std::string why);
  void judge_the_end();

  const Trace trace_;
  Dice dice_;
  Duration slowness_;  // the longest that a message takes
  Time now_ = {};
  Events events_;
  std::uint64_t ticks_ = 0;  // numbers events and history
  StoreState state_;
  std::vector<Client> clients_;
  Reference reference_;
  std::map<SessionId, Session> sessions_;  // ended ones too
  SessionId last_session_ = 0;
  std::optional<Time> over_;                 // since when all programs are
  std::map<std::string, std::string> seen_;  // by key, the last value that anybody saw
  std::map<std::string, std::vector<Operation>> history_;  // by key
  std::string failure_;
};

}  // namespace memspan::simulation
