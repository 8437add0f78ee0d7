// SPDX-License-Identifier: Apache-2.0
#include "simulation/self_test.h"

#include <vector>

#include "simulation/linearizability.h"

namespace memspan::simulation {
namespace {

using History = std::vector<Operation>;

Operation set(std::uint64_t begin, std::uint64_t end, std::string value) {
  return {.begin = begin,
          .end = end,
          .session = 1,
          .request = {.operation = StoreOperation::kSet, .key = "k", .value = std::move(value)},
          .answer = StoreAnswer{}};
}

Operation get(std::uint64_t begin, std::uint64_t end, std::string value) {
  return {.begin = begin,
          .end = end,
          .session = 2,
          .request = {.operation = StoreOperation::kGetNow, .key = "k"},
          .answer = StoreAnswer{.value = std::move(value)}};
}

Operation miss(std::uint64_t begin, std::uint64_t end,
               StoreOperation operation = StoreOperation::kGetNow) {
  const Code code = operation == StoreOperation::kGetNow ? Code::kNotFound : Code::kTimeout;
  return {.begin = begin,
          .end = end,
          .session = 2,
          .request = {.operation = operation, .key = "k"},
          .answer = StoreAnswer{.code = code}};
}

Operation swap(std::uint64_t begin, std::uint64_t end, std::string expected, std::string desired,
               std::string after) {
  return {.begin = begin,
          .end = end,
          .session = 4,
          .request = {.operation = StoreOperation::kCompareAndSwap,
                      .key = "k",
                      .value = std::move(desired),
                      .expected = std::move(expected)},
          .answer = StoreAnswer{.value = std::move(after)}};
}

Operation remove(std::uint64_t begin, std::uint64_t end, bool was_there) {
  return {.begin = begin,
          .end = end,
          .session = 5,
          .request = {.operation = StoreOperation::kRemove, .key = "k"},
          .answer = StoreAnswer{.number = was_there ? 1 : 0}};
}

Operation unknown(Operation operation) {
  operation.answer.reset();
  return operation;
}

Operation owned(Operation operation) {
  operation.request.is_owned = true;
  return operation;
}

Operation end_of(SessionId session, std::uint64_t begin) {
  return {.begin = begin, .end = begin + 1, .session = session, .is_end_of_session = true};
}

struct Case {
  const char* name;
  bool is_right;
  History history;
};

std::vector<Case> cases_of_values() {
  return {
      {"nothing happened", true, {}},
      {"read after write", true, {set(1, 2, "a"), get(3, 4, "a")}},
      {"a read beside a write sees either", true, {set(1, 6, "a"), miss(2, 3), get(4, 5, "a")}},
      {"a stale read", false, {set(1, 2, "a"), set(3, 4, "b"), get(5, 6, "a")}},
      {"a read of what nobody wrote", false, {set(1, 2, "a"), get(3, 4, "b")}},
      {"a read goes back", false, {set(1, 9, "a"), get(2, 3, "a"), miss(4, 5)}},
      {"two reads disagree about the order",
       false,
       {set(1, 3, "a"), set(2, 4, "b"), get(5, 6, "a"), get(7, 8, "b")}},
      {"a read before the write began", false, {get(1, 2, "a"), set(3, 4, "a")}},
      {"a get that ends although the key is there",
       false,
       {set(1, 2, "a"), miss(3, 4, StoreOperation::kGet)}},
      {"a get that ends while the key comes",
       true,
       {set(2, 4, "a"), miss(1, 3, StoreOperation::kGet)}},
      {"a key that was removed is read",
       false,
       {set(1, 2, "a"), remove(3, 4, true), get(5, 6, "a")}},
      {"a key is removed twice", false, {set(1, 2, "a"), remove(3, 5, true), remove(4, 6, true)}},
      {"one of two removes finds it",
       true,
       {set(1, 2, "a"), remove(3, 5, false), remove(4, 6, true)}},
  };
}

std::vector<Case> cases_of_changes() {
  return {
      {"one of two swaps wins", true, {swap(1, 4, "", "a", "a"), swap(2, 3, "", "b", "a")}},
      {"both swaps win", false, {swap(1, 4, "", "a", "a"), swap(2, 3, "", "b", "b")}},
      {"a swap ignores what it expects",
       false,
       {set(1, 2, "a"), swap(3, 4, "other", "b", "b"), get(5, 6, "b")}},
      {"a swap that failed has changed it",
       false,
       {set(1, 2, "a"), swap(3, 4, "other", "b", "a"), get(5, 6, "b")}},
  };
}

std::vector<Case> cases_of_sessions() {
  return {
      {"an unknown set happened", true, {unknown(set(1, 9, "a")), miss(2, 3), get(4, 5, "a")}},
      {"an unknown set did not happen", true, {unknown(set(1, 2, "a")), miss(3, 4)}},
      {"an unknown set happened too late",
       false,
       {unknown(set(1, 2, "a")), miss(3, 4), get(5, 6, "a")}},
      {"an unknown swap happened twice",
       false,
       {unknown(swap(1, 9, "", "a", "a")), get(2, 3, "a"), remove(4, 5, true), get(6, 7, "a")}},
      {"an owned key goes", true, {owned(set(1, 2, "a")), end_of(1, 3), miss(5, 6)}},
      {"an owned key stays", false, {owned(set(1, 2, "a")), end_of(1, 3), get(5, 6, "a")}},
      {"a key of nobody goes", false, {set(1, 2, "a"), end_of(1, 3), miss(5, 6)}},
      {"a key goes with another session", false, {owned(set(1, 2, "a")), end_of(2, 3), miss(5, 6)}},
      {"a plain set takes it from its owner",
       true,
       {owned(set(1, 2, "a")), set(3, 4, "b"), end_of(1, 5), get(7, 8, "b")}},
      {"a swap leaves the owner",
       false,
       {owned(set(1, 2, "a")), swap(3, 4, "a", "b", "b"), end_of(1, 5), get(7, 8, "b")}},
  };
}

}  // namespace

std::string test_the_checker() {
  for (const auto& cases : {cases_of_values(), cases_of_changes(), cases_of_sessions()})
    for (const Case& one : cases)
      if (is_linearizable(one.history) != one.is_right)
        return std::string("the checker takes \"") + one.name + "\" for " +
               (one.is_right ? "wrong" : "right");
  return {};
}

}  // namespace memspan::simulation
