// SPDX-License-Identifier: Apache-2.0
// A group whose members contribute when a test says so.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "store/collectives.h"

namespace memspan {

// Rank N is the session 10 + N with the name "PE N".
inline SessionId session_of(int rank) {
  return static_cast<SessionId>(10 + rank);
}

// A group "g" of three and a clock that only moves when a test says so. A request's id is
// 100 * operation + rank, so that answers name what they answer.
class GroupCollectivesTest : public testing::Test {
 protected:
  static StoreRequest request(int rank, int operation, std::string mine = {}) {
    return {.id = static_cast<std::uint64_t>(100 * operation + rank),
            .operation = StoreOperation::kGroupAllgather,
            .keys = {"g"},
            .value = std::move(mine),
            .delta = operation,
            .timeout_ms = 1000,
            .rank = rank,
            .size = 3};
  }
  StoreAnswers meet(StoreRequest request) {
    StoreAnswers answers;
    const int rank = request.rank;
    collectives_.contribute(session_of(rank), "PE " + std::to_string(rank), std::move(request),
                            now_, answers);
    return answers;
  }
  StoreAnswers meet(int rank, int operation, std::string mine = {}) {
    return meet(request(rank, operation, std::move(mine)));
  }
  // For a request that is answered at once and wakes nobody.
  StoreAnswer refusal(StoreRequest request) {
    const StoreAnswers answers = meet(std::move(request));
    EXPECT_EQ(answers.size(), 1U);
    return answers.empty() ? StoreAnswer{} : answers[0].answer;
  }
  StoreAnswers disconnect(int rank, const std::string& why = "it went") {
    StoreAnswers answers;
    collectives_.disconnect(session_of(rank), why, answers);
    return answers;
  }
  StoreAnswers leave(int rank, StoreAnswer& own) {
    StoreAnswers answers;
    own = collectives_.leave(session_of(rank),
                             {.id = 7, .operation = StoreOperation::kLeaveGroup, .keys = {"g"}},
                             answers);
    return answers;
  }
  StoreAnswers expire(Duration after) {
    StoreAnswers answers;
    collectives_.expire(now_ + after, answers);
    return answers;
  }
  static void expect_parts(const StoreAnswers& answers, int operation,
                           const std::vector<int>& ranks, const std::vector<std::string>& parts) {
    ASSERT_EQ(answers.size(), ranks.size());
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      EXPECT_EQ(answers[i].to, session_of(ranks[i]));
      EXPECT_EQ(answers[i].answer.id, static_cast<std::uint64_t>(100 * operation + ranks[i]));
      EXPECT_EQ(answers[i].answer.code, Code::kOk) << answers[i].answer.message;
      EXPECT_EQ(*unpack_texts(answers[i].answer.value), parts);
    }
  }

  StoreCharges charges_{StoreQuota{}.memory_share()};
  StoreCollectives collectives_{{.keys = 2, .bytes = 64}, charges_};
  Clock::time_point now_ = {};
};

}  // namespace memspan
