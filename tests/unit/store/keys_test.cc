// SPDX-License-Identifier: Apache-2.0
#include "store/keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/fields.h"

namespace memspan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr SessionId kAnna = 1;
constexpr SessionId kBen = 2;

// Keys in a store so small that its quotas are soon reached: three keys, 40 bytes.
class StoreKeysTest : public testing::Test {
 protected:
  StoreAnswers apply(SessionId from, StoreRequest request) {
    request.id = ++last_id_;
    StoreAnswers answers;
    keys_.apply(from, std::move(request), now_, answers);
    return answers;
  }
  // The request's own answer, which comes last.
  StoreAnswer ask(SessionId from, StoreRequest request) {
    StoreAnswers answers = apply(from, std::move(request));
    if (answers.empty()) {
      ADD_FAILURE() << "no answer";
      return {};
    }
    EXPECT_EQ(answers.back().to, from);
    EXPECT_EQ(answers.back().answer.id, last_id_);
    return answers.back().answer;
  }
  StoreAnswer set(SessionId from, std::string key, std::string value = {}, bool is_owned = false) {
    return ask(from, {.operation = StoreOperation::kSet,
                      .key = std::move(key),
                      .value = std::move(value),
                      .is_owned = is_owned});
  }
  StoreAnswer remove(SessionId from, std::string key) {
    return ask(from, {.operation = StoreOperation::kRemove, .key = std::move(key)});
  }
  StoreAnswer watch(SessionId from, std::string prefix) {
    return ask(from, {.operation = StoreOperation::kWatch, .key = std::move(prefix)});
  }
  StoreAnswer unwatch(SessionId from, std::uint64_t id) {
    return ask(from, {.operation = StoreOperation::kUnwatch, .watch = id});
  }
  StoreAnswers disconnect(SessionId session) {
    StoreAnswers answers;
    keys_.disconnect(session, answers);
    return answers;
  }
  std::vector<std::string> list(std::string prefix) {
    const StoreAnswer answer =
        ask(kBen, {.operation = StoreOperation::kList, .key = std::move(prefix)});
    auto texts = decode_record<std::vector<std::string>>(answer.value.text(), "listing");
    EXPECT_TRUE(texts.is_ok());
    EXPECT_EQ(answer.number * 2, static_cast<std::int64_t>(texts->size()));
    return texts.is_ok() ? *texts : std::vector<std::string>{};
  }
  static StoreRequest wait_for(std::string key, std::uint32_t timeout_ms = 1000) {
    return {.operation = StoreOperation::kGet, .key = std::move(key), .timeout_ms = timeout_ms};
  }

  StoreCharges charges_{StoreQuota{.session = 2000}.memory_share()};
  StoreKeys keys_{{.keys = 3, .bytes = 40}, charges_};
  Clock::time_point now_ = {};
  std::uint64_t last_id_ = 0;
};

// "set k=v" or "removed k".
std::string text_of(const StoreAnswer& event) {
  if (event.event == StoreEvent::kRemoved) return "removed " + event.key.text();
  return event.event == StoreEvent::kSet ? "set " + event.key.text() + "=" + event.value.text()
                                         : "no event";
}

// What the watch `id` of `session` sees in these answers.
std::vector<std::string> seen(const StoreAnswers& answers, SessionId session, std::uint64_t id) {
  std::vector<std::string> texts;
  for (const StoreOutgoing& out : answers)
    if (out.to == session && out.answer.id == id) texts.push_back(text_of(out.answer));
  return texts;
}

TEST_F(StoreKeysTest, OwnedKeysGoWithTheirSession) {
  set(kAnna, "mine", "1", true);
  set(kAnna, "stays", "2");
  disconnect(kBen);
  EXPECT_THAT(list(""), ElementsAre("mine", "1", "stays", "2"));
  disconnect(kAnna);
  EXPECT_THAT(list(""), ElementsAre("stays", "2"));
}

TEST_F(StoreKeysTest, EveryOperationThatMakesAKeyCanOwnIt) {
  for (StoreOperation operation : {StoreOperation::kSet, StoreOperation::kCompareAndSwap}) {
    ask(kAnna, {.operation = operation, .key = "k", .value = "7", .is_owned = true});
    EXPECT_THAT(list(""), ElementsAre("k", "7")) << operation_name(operation);
    disconnect(kAnna);
    EXPECT_THAT(list(""), IsEmpty()) << operation_name(operation);
  }
}

TEST_F(StoreKeysTest, APlainSetTakesAKeyFromItsOwner) {
  set(kAnna, "k", "1", true);
  set(kBen, "k", "2");
  disconnect(kAnna);
  EXPECT_THAT(list(""), ElementsAre("k", "2"));
}

TEST_F(StoreKeysTest, AnotherOwnedSetTakesAKeyOver) {
  set(kAnna, "k", "1", true);
  set(kBen, "k", "2", true);
  disconnect(kAnna);
  EXPECT_THAT(list(""), ElementsAre("k", "2"));
  disconnect(kBen);
  EXPECT_THAT(list(""), IsEmpty());
}

TEST_F(StoreKeysTest, OtherChangesLeaveTheOwner) {
  set(kAnna, "k", "1", true);
  ask(kBen,
      {.operation = StoreOperation::kCompareAndSwap, .key = "k", .value = "4", .expected = "1"});
  disconnect(kBen);
  EXPECT_THAT(list(""), ElementsAre("k", "4"));
  disconnect(kAnna);
  EXPECT_THAT(list(""), IsEmpty());
}

TEST_F(StoreKeysTest, ASwapThatDidNotHappenTakesNothingOver) {
  set(kAnna, "k", "1", true);
  ask(kBen, {.operation = StoreOperation::kCompareAndSwap,
             .key = "k",
             .value = "2",
             .expected = "other",
             .is_owned = true});
  disconnect(kBen);
  EXPECT_THAT(list(""), ElementsAre("k", "1"));
}

TEST_F(StoreKeysTest, AKeyThatWasRemovedAndMadeAgainHasNoOwner) {
  set(kAnna, "k", "1", true);
  EXPECT_EQ(remove(kBen, "k").number, 1);
  ask(kBen, {.operation = StoreOperation::kCompareAndSwap, .key = "k", .value = "2"});
  disconnect(kAnna);
  EXPECT_THAT(list(""), ElementsAre("k", "2"));
}

TEST_F(StoreKeysTest, WaitersMissAnOwnedKeyOnceItWent) {
  set(kAnna, "a", "", true);
  disconnect(kAnna);
  EXPECT_THAT(apply(kBen, wait_for("a")), IsEmpty());
  EXPECT_EQ(apply(kAnna, {.operation = StoreOperation::kSet, .key = "a"}).size(), 2U);
}

TEST_F(StoreKeysTest, WatchesGetEveryChangeInOrder) {
  EXPECT_EQ(watch(kBen, "a").code, Code::kOk);
  const std::uint64_t id = last_id_;
  StoreAnswers all;
  const auto change = [&](StoreRequest request) {
    for (StoreOutgoing& out : apply(kAnna, std::move(request))) all.push_back(std::move(out));
  };
  change({.operation = StoreOperation::kSet, .key = "a1", .value = "1"});
  change({.operation = StoreOperation::kSet, .key = "b", .value = "other"});
  change({.operation = StoreOperation::kSet, .key = "a1", .value = "34"});
  change({.operation = StoreOperation::kCompareAndSwap, .key = "a1", .expected = "no"});
  change(
      {.operation = StoreOperation::kCompareAndSwap, .key = "a1", .value = "5", .expected = "34"});
  change({.operation = StoreOperation::kGetNow, .key = "a1"});
  change({.operation = StoreOperation::kRemove, .key = "a1"});
  change({.operation = StoreOperation::kRemove, .key = "a1"});
  EXPECT_THAT(seen(all, kBen, id), ElementsAre("set a1=1", "set a1=34", "set a1=5", "removed a1"));
}

TEST_F(StoreKeysTest, WatchesSeeWhatADisconnectRemoves) {
  watch(kBen, "");
  const std::uint64_t id = last_id_;
  set(kAnna, "b", "1", true);
  set(kAnna, "a", "2", true);
  EXPECT_THAT(seen(disconnect(kAnna), kBen, id), ElementsAre("removed a", "removed b"));
}

TEST_F(StoreKeysTest, AWatcherThatGoesIsToldNothingMore) {
  watch(kAnna, "");
  set(kAnna, "mine", "", true);
  EXPECT_THAT(disconnect(kAnna), IsEmpty());
  EXPECT_EQ(apply(kBen, {.operation = StoreOperation::kSet, .key = "k"}).size(), 1U);
}

TEST_F(StoreKeysTest, UnwatchEndsOneWatchOfItsOwnSession) {
  watch(kAnna, "k");
  const std::uint64_t first = last_id_;
  watch(kAnna, "");
  const std::uint64_t second = last_id_;
  EXPECT_EQ(unwatch(kBen, first).code, Code::kNotFound);
  EXPECT_EQ(unwatch(kAnna, first).code, Code::kOk);
  EXPECT_EQ(unwatch(kAnna, first).code, Code::kNotFound);
  const StoreAnswers answers = apply(kBen, {.operation = StoreOperation::kSet, .key = "k"});
  EXPECT_THAT(seen(answers, kAnna, first), IsEmpty());
  EXPECT_THAT(seen(answers, kAnna, second), ElementsAre("set k="));
}

TEST_F(StoreKeysTest, ListsByPrefixInTheOrderOfTheKeys) {
  set(kAnna, "b2", "x");
  set(kAnna, "a", "y");
  set(kAnna, "b1", "z");
  EXPECT_THAT(list("b"), ElementsAre("b1", "z", "b2", "x"));
  EXPECT_THAT(list("b1"), ElementsAre("b1", "z"));
  EXPECT_THAT(list("c"), IsEmpty());
  EXPECT_THAT(list(""), ElementsAre("a", "y", "b1", "z", "b2", "x"));
}

TEST_F(StoreKeysTest, RefusesAKeyTooManyAndChangesNothing) {
  for (const char* key : {"a", "b", "c"}) set(kAnna, key);
  for (StoreOperation operation : {StoreOperation::kSet, StoreOperation::kCompareAndSwap}) {
    const StoreAnswer answer = ask(kAnna, {.operation = operation, .key = "d"});
    EXPECT_EQ(answer.code, Code::kOutOfMemory) << operation_name(operation);
    EXPECT_THAT(answer.message,
                HasSubstr("(keys): this member has 3, wants 1 more and may have at most 3"));
  }
  EXPECT_THAT(list(""), ElementsAre("a", "", "b", "", "c", ""));
  EXPECT_EQ(set(kAnna, "a", "a key that is there may change").code, Code::kOk);
}

TEST_F(StoreKeysTest, RefusesBytesTooManyAndChangesNothing) {
  EXPECT_EQ(set(kAnna, "k", std::string(39, 'x')).code, Code::kOk);
  const StoreAnswer answer = set(kAnna, "k", std::string(40, 'y'));
  EXPECT_EQ(answer.code, Code::kOutOfMemory);
  EXPECT_THAT(answer.message, HasSubstr("at most 40"));
  EXPECT_EQ(set(kAnna, "l").code, Code::kOutOfMemory);
  EXPECT_EQ(ask(kAnna, {.operation = StoreOperation::kCompareAndSwap,
                        .key = "k",
                        .value = std::string(40, 'z'),
                        .expected = std::string(39, 'x')})
                .code,
            Code::kOutOfMemory);
  EXPECT_THAT(list(""), ElementsAre("k", std::string(39, 'x')));
  remove(kAnna, "k");
  EXPECT_EQ(set(kAnna, "l", std::string(39, 'x')).code, Code::kOk);
}

TEST_F(StoreKeysTest, ARefusedChangeLeavesTheOwnerAndTellsNobody) {
  set(kAnna, "k", "1", true);
  watch(kAnna, "");
  const StoreAnswers answers = apply(kBen, {.operation = StoreOperation::kSet,
                                            .key = "k",
                                            .value = std::string(40, 'x'),
                                            .is_owned = true});
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].answer.code, Code::kOutOfMemory);
  disconnect(kBen);
  EXPECT_THAT(list(""), ElementsAre("k", "1"));
}

// By what they are in memory, which for short keys is far more than their bytes.
TEST_F(StoreKeysTest, WaitsOfOneSessionAreBoundedUntilTheyEnd) {
  for (const char* key : {"a", "b", "c"}) EXPECT_THAT(apply(kBen, wait_for(key)), IsEmpty());
  const StoreAnswer answer = ask(kBen, wait_for("f"));
  EXPECT_EQ(answer.code, Code::kOutOfMemory);
  EXPECT_THAT(answer.message, HasSubstr("at most 2000"));
  EXPECT_THAT(apply(kAnna, wait_for("f")), IsEmpty());
  EXPECT_EQ(set(kAnna, "k", std::string(39, 'v')).code, Code::kOk);
  StoreAnswers answers;
  keys_.expire(now_ + std::chrono::seconds(1), answers);
  ASSERT_EQ(answers.size(), 4U);
  EXPECT_EQ(answers[0].answer.code, Code::kTimeout);
  EXPECT_EQ(charges_.all(), 0U);
  EXPECT_THAT(apply(kBen, wait_for("f")), IsEmpty());
}

TEST_F(StoreKeysTest, WatchesOfOneSessionAreBoundedUntilTheyEnd) {
  EXPECT_EQ(watch(kBen, std::string(800, 'a')).code, Code::kOutOfMemory);
  EXPECT_EQ(watch(kBen, std::string(700, 'a')).code, Code::kOk);
  EXPECT_EQ(watch(kBen, "b").code, Code::kOutOfMemory);
  disconnect(kBen);
  EXPECT_EQ(charges_.all(), 0U);
  EXPECT_EQ(watch(kBen, "b").code, Code::kOk);
}

TEST_F(StoreKeysTest, EverybodyIsToldTheSameBytes) {
  watch(kAnna, "");
  watch(kBen, "");
  apply(kBen, wait_for("k"));
  const StoreAnswers answers =
      apply(kAnna, {.operation = StoreOperation::kSet, .key = "k", .value = "v"});
  const StoreAnswer now = ask(kBen, {.operation = StoreOperation::kGetNow, .key = "k"});
  ASSERT_EQ(answers.size(), 4U);
  for (int i : {0, 1}) EXPECT_EQ(answers[i].answer.value.identity(), now.value.identity());
}

TEST_F(StoreKeysTest, ALaterSetChangesNothingThatWasSaid) {
  set(kAnna, "k", "1");
  const StoreAnswer before = ask(kBen, {.operation = StoreOperation::kGetNow, .key = "k"});
  set(kBen, "k", "2");
  EXPECT_EQ(before.value, "1");
  EXPECT_THAT(list(""), ElementsAre("k", "2"));
}

// With and without leases, by number and by bytes: whatever a session writes, and also once it has
// ended, the others can write.
TEST_F(StoreKeysTest, AsMuchAsOneMayWriteLeavesRoomForOthers) {
  const StoreQuota quota{.keys = 8000, .bytes = 8'000'000};
  for (const bool is_owned : {false, true})
    for (const std::size_t value : {0, 50'000}) {
      StoreKeys keys(quota, charges_);
      StoreAnswers answers;
      const auto fill = [&](SessionId session, int most) {
        for (int i = 0; i < most; ++i) {
          answers.clear();
          keys.apply(session,
                     {.operation = StoreOperation::kSet,
                      .key = std::to_string(session) + "/" + std::to_string(i),
                      .value = std::string(value, 'v'),
                      .is_owned = is_owned},
                     now_, answers);
          if (answers.back().answer.code != Code::kOk) return i;
        }
        return most;
      };
      const int most = fill(kAnna, 10'000);
      EXPECT_EQ(most, value == 0 ? 3000 : 60) << answers.back().answer.message;
      if (!is_owned) keys.disconnect(kAnna, answers);
      EXPECT_EQ(fill(kBen, 10'000), most / 2);
      for (SessionId session = 10; session < 30; ++session) {
        fill(session, 10'000);
        if (!is_owned) keys.disconnect(session, answers);
      }
      for (SessionId session = 30; session < 40; ++session)
        EXPECT_EQ(fill(session, value == 0 ? 64 : 1), value == 0 ? 64 : 1)
            << answers.back().answer.message;
      if (is_owned) keys.disconnect(kAnna, answers);
      if (is_owned) {
        EXPECT_GT(fill(100, 10'000), most / 10);
      }
    }
}

TEST_F(StoreKeysTest, AKeyCountsForTheSessionThatWroteItLastUntilItIsRemoved) {
  StoreKeys keys({.keys = 800, .assured_keys = 1}, charges_);
  const auto code = [&](SessionId session, const std::string& key, StoreOperation operation) {
    StoreAnswers answers;
    keys.apply(session, {.operation = operation, .key = key}, now_, answers);
    return answers.back().answer.code;
  };
  const auto set = [&](SessionId session, int key) {
    return code(session, std::to_string(key), StoreOperation::kSet);
  };
  for (int i = 0; i < 300; ++i) EXPECT_EQ(set(kAnna, i), Code::kOk);
  EXPECT_EQ(set(kAnna, 300), Code::kOutOfMemory);
  for (int i = 300; i < 400; ++i) EXPECT_EQ(set(kBen, i), Code::kOk);
  EXPECT_EQ(set(kAnna, 0), Code::kOk) << "what it has may change";
  EXPECT_EQ(set(kBen, 0), Code::kOk);
  EXPECT_EQ(set(kAnna, 0), Code::kOutOfMemory) << "it is another's now";
  for (int i = 1; i < 300; ++i)
    EXPECT_EQ(code(kBen, std::to_string(i), StoreOperation::kRemove), Code::kOk);
  EXPECT_EQ(set(kAnna, 0), Code::kOk);
  for (int i = 0; i < 400; ++i) code(kBen, std::to_string(i), StoreOperation::kRemove);
  EXPECT_EQ(keys.bytes(), 0U);
}

// Waits and watches are limited by memory, of which every session has a share.
TEST_F(StoreKeysTest, AsManyWaitsAndWatchesAsOneMayHaveLeaveRoomForOthers) {
  const StoreQuota quota{.keys = 100, .session = 1 << 20, .sessions = 8 << 20};
  StoreCharges charges(quota.memory_share());
  StoreKeys keys(quota, charges);
  const auto fill = [&](SessionId session, StoreOperation operation) {
    for (std::uint64_t id = 0;; ++id) {
      StoreAnswers answers;
      keys.apply(session, {.id = id, .operation = operation, .key = "w", .timeout_ms = 1000}, now_,
                 answers);
      if (!answers.empty() && answers.front().answer.code != Code::kOk) return id;
    }
  };
  const std::uint64_t waits = fill(kAnna, StoreOperation::kGet);
  const std::uint64_t watches = fill(kBen, StoreOperation::kWatch);
  EXPECT_GT(waits, 10 * quota.keys);
  EXPECT_EQ(fill(kBen + 1, StoreOperation::kGet), waits);
  EXPECT_EQ(fill(kBen + 2, StoreOperation::kWatch), watches);
}

// A store has no number of watches beyond which it refuses newcomers.
TEST_F(StoreKeysTest, ManyMembersMayWatchEachOther) {
  StoreCharges charges(StoreQuota{}.memory_share());
  StoreKeys keys({}, charges);
  constexpr SessionId kMembers = 256;
  StoreAnswers answers;
  for (SessionId from = 1; from <= kMembers; ++from)
    for (SessionId of = 1; of <= kMembers; ++of)
      keys.apply(from,
                 {.id = of, .operation = StoreOperation::kWatch, .key = std::to_string(of) + "/"},
                 now_, answers);
  EXPECT_TRUE(std::all_of(answers.begin(), answers.end(),
                          [](const StoreOutgoing& out) { return out.answer.code == Code::kOk; }));
  answers.clear();
  keys.apply(1, {.operation = StoreOperation::kSet, .key = "12/name"}, now_, answers);
  EXPECT_EQ(answers.size(), kMembers + 1);
  EXPECT_EQ(keys.listeners("12/name"), kMembers);
  EXPECT_EQ(keys.listeners("name"), 0U);
}

TEST_F(StoreKeysTest, AChangeIsSeenByTheWatchesOfEveryPrefixOfItsKeyAndNoOther) {
  StoreCharges charges(StoreQuota{}.memory_share());
  StoreKeys keys({}, charges);
  const std::vector<std::string> prefixes = {"",  "a",  "aa", "aab", "ab",  "aba", "abab",
                                             "b", "ba", "c",  "ac",  "aac", "abb", "ababa"};
  for (const std::string& prefix : prefixes) {
    StoreAnswers answers;
    keys.apply(kAnna, {.id = ++last_id_, .operation = StoreOperation::kWatch, .key = prefix}, now_,
               answers);
  }
  for (const std::string key : {"a", "aa", "aab", "ab", "aba", "abaa", "abab", "abac", "b", "bb",
                                "c", "cc", "d", "aac", "aad", "abb", "ababab"}) {
    StoreAnswers answers;
    keys.apply(kBen, {.operation = StoreOperation::kSet, .key = key}, now_, answers);
    std::set<std::uint64_t> told;
    std::set<std::uint64_t> watching;
    for (const StoreOutgoing& out : answers)
      if (out.to == kAnna && !told.insert(out.answer.id).second) ADD_FAILURE() << key;
    for (std::size_t i = 0; i < prefixes.size(); ++i)
      if (key.starts_with(prefixes[i])) watching.insert(i + 1);
    EXPECT_EQ(told, watching) << key;
  }
}

}  // namespace
}  // namespace memspan
