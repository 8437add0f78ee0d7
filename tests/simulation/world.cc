// SPDX-License-Identifier: Apache-2.0
#include "simulation/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "simulation/linearizability.h"
#include "store/fields.h"

namespace memspan::simulation {
namespace {

using std::chrono::microseconds;

constexpr int kSteps = 60;  // of one client's program

double milliseconds_of(Clock::time_point when) {
  return to_seconds(when.time_since_epoch()) * 1000;
}

}  // namespace

World::World(std::uint64_t seed, Trace trace)
    : trace_(trace),
      dice_(seed),
      slowness_(microseconds(10 + dice_.below(40000))),
      clients_(2 + dice_.below(5)),
      reference_(static_cast<std::uint32_t>(clients_.size())) {}

std::string World::run() {
  for (std::size_t client = 0; client < clients_.size(); ++client) {
    clients_[client].steps = kSteps;
    at(now_ + delay(), [this, client] { come(client); });
  }
  while (!events_.empty() && failure_.empty()) turn_the_clock();
  judge_the_end();
  return failure_;
}

void World::at(Time when, std::function<void()> event) {
  events_.emplace(std::pair{when, ++ticks_}, std::move(event));
}

Duration World::delay() {
  return microseconds(1 + dice_.below(static_cast<std::uint64_t>(
                              std::chrono::duration_cast<microseconds>(slowness_).count())));
}

// The next event, or what the store has to do before it.
void World::turn_the_clock() {
  const Time event = events_.begin()->first.first;
  if (const auto alarm = state_.next_deadline(); alarm && *alarm <= event) {
    now_ = std::max(now_, *alarm);
    expire();
    if (const auto next = state_.next_deadline(); next && *next <= now_)
      fail("the store is never done with what is due");
  } else {
    now_ = event;
    const auto node = events_.extract(events_.begin());
    node.mapped()();
    if (dice_.chance(5)) expire();  // may be called at any time
  }
  if (std::string why = reference_.judge_silence(now_); !why.empty()) fail(std::move(why));
  for (const auto& [id, session] : sessions_)
    if (session.is_mute && reference_.is_live(id) && session.heard + kSilence < now_)
      fail(fmt::format("session {} is silent and still there", id));
}

void World::expire() {
  StoreState::Expired expired = state_.expire(now_);
  for (SessionId id : expired.silent)
    if (sessions_.at(id).heard + kSilence > now_)
      fail(fmt::format("session {} is taken for dead and is not", id));
  // Time-outs come first, when all were still there. What one silent session leaves to another
  // has no reader any more.
  StoreAnswers late;
  StoreAnswers left;
  for (StoreOutgoing& out : expired.answers)
    (out.answer.code == Code::kTimeout ? late : left).push_back(std::move(out));
  send(late);
  for (SessionId id : expired.silent) end(id);
  const auto& silent = expired.silent;
  std::erase_if(left, [&](const StoreOutgoing& out) {
    return std::find(silent.begin(), silent.end(), out.to) != silent.end();
  });
  send(left);
}

void World::serve(SessionId id, const StoreRequest& request) {
  if (!reference_.is_live(id)) return;
  sessions_.at(id).heard = now_;
  say("arrives", id, request.id, operation_name(request.operation));
  reference_.apply(id, request, now_);
  send(state_.apply(id, request, now_));
}

void World::send(const StoreAnswers& answers) {
  for (const StoreOutgoing& out : answers) {
    if (std::string why = reference_.judge(out.to, out.answer, now_); !why.empty())
      return fail(std::move(why));
    Session& session = sessions_.at(out.to);
    session.last_to_client = std::max(session.last_to_client, now_ + delay());
    at(session.last_to_client, [this, id = out.to, answer = out.answer] { read(id, answer); });
  }
}

// The connection ended.
void World::lose(SessionId id) {
  if (!reference_.is_live(id)) return;
  const StoreAnswers answers = state_.disconnect(id);
  end(id);
  send(answers);
}

// Nobody will ever know what became of the session's last requests; but nothing happens any more.
void World::end(SessionId id) {
  say("ends", id);
  reference_.end(id);
  Session& session = sessions_.at(id);
  for (const auto& [number, asked] : session.asked) remember(session, asked, nullptr);
  session.asked.clear();
  const std::uint64_t begin = ++ticks_;
  const std::uint64_t finish = ++ticks_;
  for (auto& [key, history] : history_)
    history.push_back({.begin = begin, .end = finish, .session = id, .is_end_of_session = true});
}

void World::say(std::string_view what, SessionId session, std::uint64_t request,
                std::string_view about) const {
  if (trace_ == Trace::kNone) return;
  std::fputs(fmt::format("{:10.3f} ms  session {:2} {:8} {:3} {}\n", milliseconds_of(now_), session,
                         what, request, about)
                 .c_str(),
             stdout);
}

void World::fail(std::string why) {
  if (failure_.empty())
    failure_ = fmt::format("at {:.3f} ms: {}", milliseconds_of(now_), std::move(why));
}

// All programs are over and every message has arrived.
void World::judge_the_end() {
  if (!failure_.empty()) return;
  for (const auto& [id, session] : sessions_)
    for (const auto& [number, asked] : session.asked) remember(session, asked, nullptr);
  for (const auto& [key, history] : history_) {
    if (is_linearizable(history)) continue;
    fail(fmt::format("no order explains what {} operations on \"{}\" saw", history.size(), key));
    if (trace_ == Trace::kNone) return;
    for (const Operation& operation : history)
      std::fputs((describe(operation) + '\n').c_str(), stdout);
    return;
  }
  for (const auto& [id, session] : sessions_) {
    if (!session.is_there || !reference_.is_live(id)) continue;
    for (const auto& [watch, told] : session.watches)
      if (told != reference_.changes_for({id, watch}))
        fail(fmt::format("session {}'s watch {} was not told what happened", id, watch));
  }
  const SessionId reader = ++last_session_;
  state_.connect(reader, {.name = "the reader"}, now_);
  const auto answers = state_.apply(reader, {.operation = StoreOperation::kList, .key = ""}, now_);
  if (answers.empty() || answers.back().answer.value != encode_record(reference_.listing()))
    fail("the store does not hold the keys that it should");
}

}  // namespace memspan::simulation
