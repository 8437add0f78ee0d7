// SPDX-License-Identifier: Apache-2.0
#include "store/state.h"

#include <gtest/gtest.h>

namespace memspan {
namespace {

constexpr SessionId kAnna = 1;
constexpr SessionId kBen = 2;

// A state and a clock that only moves when a test says so.
class StoreStateTest : public testing::Test {
 protected:
  StoreStateTest() {
    state_.connect(kAnna, {.name = "Anna"}, now_);
    state_.connect(kBen, {.name = "Ben"}, now_);
  }
  StoreAnswers apply(SessionId from, StoreRequest request) {
    request.id = ++last_id_;
    return state_.apply(from, std::move(request), now_);
  }
  // For requests that are answered at once and wake nobody.
  StoreAnswer ask(StoreRequest request) {
    auto answers = apply(kAnna, std::move(request));
    EXPECT_EQ(answers.size(), 1U);
    if (answers.empty()) return {};
    EXPECT_EQ(answers[0].to, kAnna);
    EXPECT_EQ(answers[0].answer.id, last_id_);
    return answers[0].answer;
  }
  StoreAnswer set(std::string key, std::string value) {
    return ask({.operation = StoreOperation::kSet, .key = key, .value = value});
  }
  StoreAnswer get_now(std::string key) {
    return ask({.operation = StoreOperation::kGetNow, .key = key});
  }
  StoreAnswer swap(std::string expected, std::string desired) {
    return ask({.operation = StoreOperation::kCompareAndSwap,
                .key = "k",
                .value = desired,
                .expected = expected});
  }
  static StoreRequest get(std::string key, std::uint32_t timeout_ms) {
    return {.operation = StoreOperation::kGet, .key = key, .timeout_ms = timeout_ms};
  }

  StoreState state_;
  Clock::time_point now_ = {};
  std::uint64_t last_id_ = 0;
};

TEST_F(StoreStateTest, GivesBackWhatWasSet) {
  EXPECT_EQ(set("k", "one").code, Code::kOk);
  EXPECT_EQ(get_now("k").value, "one");
  set("k", "two");
  EXPECT_EQ(get_now("k").value, "two");
  EXPECT_EQ(ask(get("k", 0)).value, "two");
}

TEST_F(StoreStateTest, GetNowOfAMissingKeyIsNotFound) {
  EXPECT_EQ(get_now("k").code, Code::kNotFound);
}

TEST_F(StoreStateTest, RemoveSaysWhetherTheKeyExisted) {
  set("k", "");
  const StoreRequest remove{.operation = StoreOperation::kRemove, .key = "k"};
  EXPECT_EQ(ask(remove).number, 1);
  EXPECT_EQ(ask(remove).number, 0);
  EXPECT_EQ(get_now("k").code, Code::kNotFound);
}

TEST_F(StoreStateTest, SwapsOnlyWhatIsExpected) {
  EXPECT_EQ(swap("something", "new").value, "");
  EXPECT_EQ(get_now("k").code, Code::kNotFound);
  EXPECT_EQ(swap("", "first").value, "first");
  EXPECT_EQ(swap("", "second").value, "first");
  EXPECT_EQ(swap("first", "second").value, "second");
  EXPECT_EQ(get_now("k").value, "second");
}

TEST_F(StoreStateTest, AnswersAWaitingGetWhenTheKeyIsSet) {
  EXPECT_TRUE(apply(kBen, get("k", kNoTimeout)).empty());
  const std::uint64_t bens = last_id_;
  auto answers = apply(kAnna, {.operation = StoreOperation::kSet, .key = "k", .value = "v"});
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].to, kBen);
  EXPECT_EQ(answers[0].answer, (StoreAnswer{.id = bens, .value = "v"}));
  EXPECT_EQ(answers[1].to, kAnna);
  set("k", "again");  // ask() checks that nobody else is answered
}

TEST_F(StoreStateTest, AnswersAWaitingGetWhateverMakesTheKey) {
  for (StoreOperation operation : {StoreOperation::kSet, StoreOperation::kCompareAndSwap}) {
    const std::string key(operation_name(operation));
    EXPECT_TRUE(apply(kBen, get(key, 1000)).empty());
    auto answers = apply(kAnna, {.operation = operation, .key = key, .value = "7"});
    ASSERT_EQ(answers.size(), 2U) << key;
    EXPECT_EQ(answers[0].answer.value, "7") << key;
  }
  EXPECT_FALSE(state_.next_deadline());
}

TEST_F(StoreStateTest, AGetWithoutTimeIsAnsweredAtOnce) {
  const StoreAnswer answer = ask(get("a", 0));
  EXPECT_EQ(answer.code, Code::kTimeout);
  EXPECT_EQ(answer.message, "missing \"a\"");
  set("a", "");
  EXPECT_EQ(ask(get("a", 0)).code, Code::kOk);
}

TEST_F(StoreStateTest, TellsWhatIsMissingWhenTheTimeIsOver) {
  EXPECT_TRUE(apply(kBen, get("a", 1000)).empty());
  const std::uint64_t bens = last_id_;
  EXPECT_EQ(state_.next_deadline(), now_ + std::chrono::seconds(1));
  EXPECT_TRUE(state_.expire(now_ + std::chrono::milliseconds(999)).answers.empty());
  auto answers = state_.expire(now_ + std::chrono::seconds(1)).answers;
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].to, kBen);
  EXPECT_EQ(answers[0].answer,
            (StoreAnswer{.id = bens, .code = Code::kTimeout, .message = "missing \"a\""}));
  EXPECT_FALSE(state_.next_deadline());
  set("a", "");  // nobody waits any more
}

TEST_F(StoreStateTest, EachWaitHasItsOwnTime) {
  apply(kAnna, get("k", 3000));
  apply(kBen, get("k", 1000));
  apply(kBen, get("k", kNoTimeout));
  EXPECT_EQ(state_.expire(now_ + std::chrono::seconds(2)).answers.size(), 1U);
  EXPECT_EQ(state_.next_deadline(), now_ + std::chrono::seconds(3));
  now_ += std::chrono::seconds(2);
  EXPECT_EQ(apply(kAnna, {.operation = StoreOperation::kSet, .key = "k"}).size(), 3U);
}

TEST_F(StoreStateTest, ForgetsTheWaitsOfAConnectionThatGoes) {
  apply(kBen, get("k", 1000));
  apply(kBen, get("l", kNoTimeout));
  state_.disconnect(kBen);
  EXPECT_FALSE(state_.next_deadline());
  EXPECT_TRUE(state_.expire(now_ + std::chrono::hours(1)).answers.empty());
  set("k", "");
  set("l", "");
}

TEST_F(StoreStateTest, KeepsWhatAConnectionThatGoesHadSetAndOthersWaitFor) {
  apply(kBen, get("k", 1000));
  set("l", "stays");
  state_.disconnect(kAnna);
  state_.connect(kAnna, {.name = "Anna again"}, now_);
  EXPECT_EQ(get_now("l").value, "stays");
  EXPECT_EQ(apply(kAnna, {.operation = StoreOperation::kSet, .key = "k"}).size(), 2U);
}

}  // namespace
}  // namespace memspan
