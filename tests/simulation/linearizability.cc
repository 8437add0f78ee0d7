// SPDX-License-Identifier: Apache-2.0
#include "simulation/linearizability.h"

#include <algorithm>
#include <string>
#include <unordered_set>

namespace memspan::simulation {
namespace {

// Whatever the key is, an operation with this answer did not change it.
bool only_looked(const Operation& operation) {
  if (!operation.answer) return false;
  const StoreRequest& request = operation.request;
  switch (request.operation) {
    case StoreOperation::kGet:
    case StoreOperation::kGetNow:
      return true;
    case StoreOperation::kRemove:
      return operation.answer->number == 0;
    case StoreOperation::kCompareAndSwap:
      return operation.answer->value != request.value;
    default:
      return operation.answer->code != Code::kOk;
  }
}

// The situation: which operations are settled (done, or left out) and what the key is then.
//
//   history, by begin   [ settled ... settled | open  settled  open  open ... ]
//                                             first_
//
// An open operation may be next when no other open one had ended before it began.
class Search {
 public:
  explicit Search(std::vector<Operation> history) : history_(std::move(history)) {
    std::sort(history_.begin(), history_.end(),
              [](const auto& a, const auto& b) { return a.begin < b.begin; });
    settled_.assign(history_.size(), '0');
  }

  bool succeeds(const KeyState& key) {
    while (first_ < history_.size() && settled_[first_] == '1') ++first_;
    if (first_ == history_.size()) return true;
    if (!seen_.insert(name_of(key)).second) return false;
    const std::vector<std::size_t> next = candidates();
    // Whoever only looked and would see the right thing now may as well look now.
    for (std::size_t i : next)
      if (only_looked(history_[i]) && take_step(key, history_[i])) return settle_and_go_on(i, key);
    for (std::size_t i : next) {
      const auto step = take_step(key, history_[i]);
      if (step && settle_and_go_on(i, step->after)) return true;
      const bool may_be_left_out = !history_[i].answer && !history_[i].is_end_of_session;
      if (may_be_left_out && settle_and_go_on(i, key)) return true;
    }
    return false;
  }

 private:
  bool settle_and_go_on(std::size_t i, const KeyState& key) {
    const std::size_t first = first_;
    settled_[i] = '1';
    const bool found = succeeds(key);
    settled_[i] = '0';
    first_ = first;
    return found;
  }

  std::vector<std::size_t> candidates() const {
    std::vector<std::size_t> open;
    std::uint64_t first_end = UINT64_MAX;
    for (std::size_t i = first_; i < history_.size() && history_[i].begin < first_end; ++i) {
      if (settled_[i] == '1') continue;
      open.push_back(i);
      first_end = std::min(first_end, history_[i].end);
    }
    return open;
  }

  std::string name_of(const KeyState& key) const {
    const std::size_t last = settled_.rfind('1');
    const std::size_t known = last == std::string::npos || last < first_ ? first_ : last + 1;
    std::string name = std::to_string(first_) + ' ' + settled_.substr(first_, known - first_) +
                       ' ' + std::to_string(key.owner);
    return key.value ? name + '=' + *key.value : name;
  }

  std::vector<Operation> history_;
  std::string settled_;  // '1' for each that is
  std::size_t first_ = 0;
  std::unordered_set<std::string> seen_;
};

}  // namespace

bool is_linearizable(std::vector<Operation> history) {
  return Search(std::move(history)).succeeds({});
}

}  // namespace memspan::simulation
