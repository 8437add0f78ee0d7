// SPDX-License-Identifier: Apache-2.0
// Any sequence of connects, requests, disconnects and steps of the clock leaves the store's state
// whole: it answers only who is connected and waits, each request once, it never forgets a time,
// and when everybody has gone and every key was removed, it has all its room again.
//
//   input   command (1 byte, kind and session), then what that kind needs; repeated
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/bytes.h"
#include "store/fields.h"
#include "store/state.h"
#include "support/whole_answer.h"

namespace memspan {
namespace {

using std::chrono::milliseconds;

// So small that every limit is met.
constexpr StoreQuota kQuota{
    .keys = 6, .bytes = 400, .session = 20'000, .sessions = 80'000, .assured_bytes = 1000};
constexpr std::size_t kWatches = 3;  // of one session, beside the rest of expect_all_room()
constexpr std::size_t kPlaces = 4;   // connections at a time

class Trial {
 public:
  explicit Trial(std::string_view input) : input_(input) {}

  void run() {
    while (input_.is_ok() && !input_.is_finished()) step();
    for (SessionId session : sessions_)
      if (session != 0) lose(session);
    expect_all_room();
  }

 private:
  void step() {
    const std::uint8_t command = input_.u8();
    SessionId& session = sessions_[command / 8 % kPlaces];
    switch (command % 8) {
      case 0:
      case 1:
        return connect(session, command % 8 == 0 ? std::nullopt : std::optional(input_.u8()));
      case 2:
        if (session != 0) lose(std::exchange(session, 0));
        return;
      case 3:
        return pass(milliseconds(input_.u8()));
      case 4:
        return state_.hear(session, now_);
      case 5:
        return take_frame(session);
      default:
        return take_short_request(session);
    }
  }

  void connect(SessionId& session, std::optional<std::uint8_t> silence) {
    if (session != 0) return;
    session = ++last_session_;
    StoreState::Member member{.name = "someone"};
    if (silence) member.silence = milliseconds(1 + *silence);
    state_.connect(session, std::move(member), now_);
    live_.insert(session);
  }

  void lose(SessionId session) {
    forget(session);
    check(state_.disconnect(session));
  }

  void forget(SessionId session) {
    live_.erase(session);
    std::erase_if(waiting_, [&](const auto& entry) { return entry.first.first == session; });
    std::replace(std::begin(sessions_), std::end(sessions_), session, SessionId{0});
  }

  void pass(Duration time) {
    now_ += time;
    StoreState::Expired expired = state_.expire(now_);
    MEMSPAN_CHECK(!state_.next_deadline() || *state_.next_deadline() > now_);
    for (SessionId session : expired.silent) MEMSPAN_CHECK(live_.contains(session));
    // What comes before the last who fell silent may be for the others who did.
    check(expired.answers);
    for (SessionId session : expired.silent) forget(session);
    for (const auto& [id, deadline] : waiting_) MEMSPAN_CHECK(deadline > now_);
  }

  // As it comes from the network.
  void take_frame(SessionId session) {
    const std::string_view body = input_.text();
    if (auto request = decode_request(body); request.is_ok())
      apply(session, std::move(request).value());
  }

  // The same in few bytes, with names that several requests share.
  void take_short_request(SessionId session) {
    StoreRequest request{.operation = static_cast<StoreOperation>(1 + input_.u8() % 14)};
    const std::uint8_t what = input_.u8();
    const std::uint8_t how = input_.u8();
    request.id = ++last_id_;
    request.key.assign(1 + what / 4 % 2 * 20, static_cast<char>('a' + what % 4));
    request.value.assign(how % 4 * 40, '1');
    request.expected.assign(how / 4 % 4 * 40, '1');
    request.watch = last_id_ - what % 8;
    request.timeout_ms = how / 16 == 15 ? kNoTimeout : how / 16 * 20;
    request.rank = what / 32 - 1;
    request.size = 1 + how / 64;
    request.is_owned = how % 2 == 1;
    apply(session, std::move(request));
  }

  void apply(SessionId session, StoreRequest request) {
    if (session == 0 || !check_request(request).is_ok()) return;
    const bool is_watch = request.operation == StoreOperation::kWatch;
    const std::pair id{session, request.id};
    if (waiting_.contains(id)) return;  // a client's own fault: it could not tell the answers apart
    const auto deadline = request.timeout_ms == kNoTimeout
                              ? Clock::time_point::max()
                              : now_ + milliseconds(request.timeout_ms);
    waiting_[id] = deadline;
    if (is_watch) watches_.insert(id);
    check(state_.apply(session, std::move(request), now_));
    pass(Duration::zero());
  }

  void check(const StoreAnswers& answers) {
    for (const StoreOutgoing& out : answers) {
      MEMSPAN_CHECK(live_.contains(out.to));
      const std::pair id{out.to, out.answer.id};
      if (out.answer.event != StoreEvent::kNone)
        MEMSPAN_CHECK(watches_.contains(id));
      else
        MEMSPAN_CHECK(waiting_.erase(id) == 1);
      MEMSPAN_CHECK(decode_answer(std::string_view(encode(out.answer)).substr(4)).is_ok());
    }
  }

  StoreAnswer ask(StoreRequest request) {
    const StoreAnswers answers = state_.apply(last_session_, std::move(request), now_);
    MEMSPAN_CHECK(answers.size() == 1);
    return answers[0].answer;
  }

  void expect_all_room() {
    MEMSPAN_CHECK(!state_.next_deadline());
    state_.connect(++last_session_, {.name = "the last"}, now_);
    const auto listing = decode_record<std::vector<std::string>>(
        ask({.operation = StoreOperation::kList, .key = ""}).value.text(), "listing");
    for (std::size_t i = 0; i < listing->size(); i += 2)
      MEMSPAN_CHECK(ask({.operation = StoreOperation::kRemove, .key = listing->at(i)}).number == 1);
    const auto is_ok = [&](StoreRequest request) {
      return ask(std::move(request)).code == Code::kOk;
    };
    MEMSPAN_CHECK(is_ok({.operation = StoreOperation::kSet,
                         .key = "k",
                         .value = std::string(kQuota.bytes - 1, 'v')}));
    for (std::size_t i = 0; i < kWatches; ++i)
      MEMSPAN_CHECK(is_ok({.id = i, .operation = StoreOperation::kWatch, .key = "other"}));
    for (std::size_t i = 0; i < kQuota.keys; ++i) {
      const std::string name = "group " + std::to_string(i);
      MEMSPAN_CHECK(is_ok({.operation = StoreOperation::kTakeRank, .key = name, .rank = 0}));
    }
  }

  ByteReader input_;
  StoreState state_{kQuota};
  Clock::time_point now_ = {};
  SessionId sessions_[kPlaces] = {};  // 0: nobody
  SessionId last_session_ = 0;
  std::uint64_t last_id_ = 0;
  std::set<SessionId> live_;
  std::map<std::pair<SessionId, std::uint64_t>, Clock::time_point> waiting_;  // until when
  std::set<std::pair<SessionId, std::uint64_t>> watches_;  // that were ever asked for
};

}  // namespace
}  // namespace memspan

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  memspan::Trial({reinterpret_cast<const char*>(data), size}).run();
  return 0;
}
