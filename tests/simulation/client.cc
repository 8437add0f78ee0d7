// SPDX-License-Identifier: Apache-2.0
// The clients of the simulated world: what they ask, how they go and come, and what they make of
// the answers.
#include <fmt/format.h>

#include <algorithm>

#include "simulation/world.h"

namespace memspan::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Duration kPingEvery = kSilence / 4;
constexpr std::size_t kMostAtOnce = 3;  // requests of one client

bool is_read(StoreOperation operation) {
  return operation == StoreOperation::kGet || operation == StoreOperation::kGetNow;
}

bool is_on_one_key(StoreOperation operation) {
  return operation <= StoreOperation::kRemove;
}

}  // namespace

void World::come(std::size_t client) {
  const SessionId id = ++last_session_;
  clients_[client].session = id;
  Session session{.id = id, .client = client, .heard = now_};
  session.last_to_store = session.last_to_client = now_;
  session.may_be_dead = dice_.chance(50);
  say("comes", id);
  StoreState::Member member{.name = fmt::format("client {}", client)};
  if (session.may_be_dead) member.silence = kSilence;
  reference_.connect(id);
  state_.connect(id, std::move(member), now_);
  const bool pings = session.may_be_dead;
  sessions_.emplace(id, std::move(session));
  if (pings) keep_in_touch(id);
  at(now_ + delay(), [this, id] { step(id); });
}

// In one of three ways: orderly, so that all that was asked still arrives; cut off; or without a
// word, so that only the silence tells.
void World::go(std::size_t client) {
  Session& session = sessions_.at(clients_[client].session);
  clients_[client].session = 0;
  session.is_there = false;
  const SessionId id = session.id;
  const std::uint64_t way = dice_.below(session.may_be_dead ? 3 : 2);
  say("goes", id, way);
  if (way == 0) {
    at(session.last_to_store, [this, id] { lose(id); });
  } else if (way == 1) {
    session.is_cut = true;
    at(now_ + delay(), [this, id] { lose(id); });
  } else {
    session.is_mute = true;
  }
  at(now_ + microseconds(dice_.below(600000)), [this, client] { come(client); });
}

void World::step(SessionId id) {
  Session& session = sessions_.at(id);
  Client& client = clients_[session.client];
  if (client.session != id || client.steps == 0) return;
  --client.steps;
  if (std::all_of(clients_.begin(), clients_.end(), [](const auto& c) { return c.steps == 0; }))
    over_ = now_;
  if (dice_.chance(6)) return go(session.client);
  if (session.asked.size() < kMostAtOnce) ask(session, next_request(session));
  at(now_ + microseconds(dice_.below(20000)), [this, id] { step(id); });
}

// A member that agreed to a silence says something at a quarter of it, here until even the
// longest wait of all others is over.
void World::keep_in_touch(SessionId id) {
  at(now_ + kPingEvery, [this, id] {
    Session& session = sessions_.at(id);
    if (!session.is_there || (over_ && now_ > *over_ + std::chrono::seconds(1))) return;
    transmit(session, [this, id] {
      if (!reference_.is_live(id)) return;
      sessions_.at(id).heard = now_;
      state_.hear(id, now_);
    });
    keep_in_touch(id);
  });
}

std::string World::random_key() {
  constexpr const char* kKeys[] = {"a", "b1", "b2"};
  return kKeys[dice_.below(std::size(kKeys))];
}

std::string World::random_value() {
  if (dice_.chance(60)) return std::to_string(ticks_);
  return dice_.chance(50) ? "x" : "1";
}

std::uint32_t World::random_time() {
  if (dice_.chance(20)) return kNoTimeout;
  return static_cast<std::uint32_t>(dice_.below(400));
}

StoreRequest World::next_request(Session& session) {
  const std::uint64_t kind = dice_.below(100);
  if (kind < 8) return watch_request(session);
  if (kind < 10) return {.operation = StoreOperation::kPing};
  if (kind < 15) {
    const int wanted = dice_.chance(70) ? -1 : static_cast<int>(dice_.below(clients_.size() + 1));
    return {.operation = StoreOperation::kTakeRank,
            .key = "job",
            .rank = wanted,
            .size = static_cast<std::uint32_t>(clients_.size())};
  }
  return key_request();
}

StoreRequest World::key_request() {
  constexpr StoreOperation kKinds[] = {
      StoreOperation::kSet,    StoreOperation::kGet, StoreOperation::kGetNow,
      StoreOperation::kRemove, StoreOperation::kGet, StoreOperation::kCompareAndSwap,
      StoreOperation::kGetNow, StoreOperation::kSet, StoreOperation::kCompareAndSwap};
  StoreRequest request{.operation = kKinds[dice_.below(std::size(kKinds))], .key = random_key()};
  switch (request.operation) {
    case StoreOperation::kGet:
      request.timeout_ms = random_time();
      break;
    case StoreOperation::kCompareAndSwap:
      if (dice_.chance(70)) request.expected = seen_[request.key];
      [[fallthrough]];
    default:
      request.value = random_value();
  }
  if (is_read(request.operation) || request.operation == StoreOperation::kRemove)
    request.value.clear();
  else
    request.is_owned = dice_.chance(30);
  return request;
}

StoreRequest World::watch_request(Session& session) {
  for (const auto& [id, told] : session.watches)
    if (dice_.chance(30) && session.unwatched.insert(id).second)
      return {.operation = StoreOperation::kUnwatch, .watch = id};
  constexpr const char* kPrefixes[] = {"", "a", "b"};
  return {.operation = StoreOperation::kWatch, .key = kPrefixes[dice_.below(3)]};
}

void World::transmit(Session& session, std::function<void()> arrive) {
  session.last_to_store = std::max(session.last_to_store, now_ + delay());
  at(session.last_to_store, [this, id = session.id, arrive = std::move(arrive)] {
    if (!sessions_.at(id).is_cut) arrive();
  });
}

void World::ask(Session& session, StoreRequest request) {
  request.id = ++session.last_id;
  if (request.operation == StoreOperation::kWatch) session.watches[request.id];
  say("asks", session.id, request.id, operation_name(request.operation));
  session.asked.emplace(request.id, Asked{.begin = ++ticks_, .request = request});
  transmit(session, [this, id = session.id, request = std::move(request)] { serve(id, request); });
}

void World::read(SessionId id, const StoreAnswer& answer) {
  Session& session = sessions_.at(id);
  if (!session.is_there) return;
  if (answer.event != StoreEvent::kNone) {
    const bool is_removed = answer.event == StoreEvent::kRemoved;
    session.watches.at(answer.id).push_back(
        {answer.key, is_removed ? std::nullopt : std::optional(answer.value.text())});
    return;
  }
  const auto node = session.asked.extract(answer.id);
  if (node.empty()) return fail(fmt::format("session {} did not ask {}", id, answer.id));
  say("reads", id, answer.id, fmt::format("{} \"{}\"", code_name(answer.code), answer.message));
  remember(session, node.mapped(), &answer);
}

void World::remember(const Session& session, const Asked& asked, const StoreAnswer* answer) {
  const StoreRequest& request = asked.request;
  const bool is_unknown = answer == nullptr;
  if (!is_on_one_key(request.operation)) return;
  if (is_unknown && is_read(request.operation)) return;
  Operation operation{.begin = asked.begin, .end = ++ticks_, .session = session.id};
  operation.request = request;
  if (!is_unknown) operation.answer = *answer;
  history_[request.key].push_back(operation);
  if (!is_unknown && !answer->value.empty()) seen_[request.key] = answer->value;
  if (request.operation == StoreOperation::kSet) seen_[request.key] = request.value;
}

}  // namespace memspan::simulation
