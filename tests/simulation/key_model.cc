// SPDX-License-Identifier: Apache-2.0
#include "simulation/key_model.h"

#include <fmt/format.h>

#include <utility>

namespace memspan::simulation {
namespace {

// What the store would have answered; only what matters is filled in.
struct Outcome {
  Step step;
  Code code = Code::kOk;
  std::string value = {};
  std::int64_t number = 0;
};

Outcome changed(const KeyState& before, const Operation& operation, std::string value) {
  const StoreRequest& request = operation.request;
  SessionId owner = before.value ? before.owner : 0;
  if (request.operation == StoreOperation::kSet) owner = 0;
  if (request.is_owned) owner = operation.session;
  return {.step = {.after = {std::move(value), owner}, .has_changed = true}};
}

Outcome unchanged(const KeyState& before, Code code, std::string value = {}) {
  return {.step = {.after = before}, .code = code, .value = std::move(value)};
}

Outcome swap(const KeyState& before, const Operation& operation) {
  const std::string old = before.value.value_or("");
  if (old != operation.request.expected) return unchanged(before, Code::kOk, old);
  Outcome outcome = changed(before, operation, operation.request.value);
  outcome.value = operation.request.value;
  return outcome;
}

Outcome remove(const KeyState& before) {
  const bool was_there = before.value.has_value();
  return {.step = {.after = {}, .has_changed = was_there}, .number = was_there ? 1 : 0};
}

Outcome run(const KeyState& before, const Operation& operation) {
  switch (operation.request.operation) {
    case StoreOperation::kSet:
      return changed(before, operation, operation.request.value);
    case StoreOperation::kCompareAndSwap:
      return swap(before, operation);
    case StoreOperation::kRemove:
      return remove(before);
    case StoreOperation::kGet:
      return unchanged(before, before.value ? Code::kOk : Code::kTimeout,
                       before.value.value_or(""));
    default:  // get_now
      return unchanged(before, before.value ? Code::kOk : Code::kNotFound,
                       before.value.value_or(""));
  }
}

}  // namespace

std::optional<Step> take_step(const KeyState& before, const Operation& operation) {
  if (operation.is_end_of_session) {
    if (!before.value || before.owner != operation.session) return Step{.after = before};
    return Step{.after = {}, .has_changed = true};
  }
  Outcome outcome = run(before, operation);
  if (const auto& answer = operation.answer;
      answer && (answer->code != outcome.code || answer->value != outcome.value ||
                 answer->number != outcome.number))
    return std::nullopt;
  return std::move(outcome.step);
}

std::string describe(const Operation& operation) {
  const std::string head =
      fmt::format("{:5}-{:5} session {:2} ", operation.begin, operation.end, operation.session);
  if (operation.is_end_of_session) return head + "ends";
  const StoreRequest& request = operation.request;
  const std::string asked =
      fmt::format("{} {}value \"{}\" expected \"{}\"", operation_name(request.operation),
                  request.is_owned ? "owned " : "", request.value, request.expected);
  if (!operation.answer) return head + asked + ": unknown";
  return head + asked +
         fmt::format(": {} value \"{}\" number {}", code_name(operation.answer->code),
                     operation.answer->value.text(), operation.answer->number);
}

}  // namespace memspan::simulation
