// SPDX-License-Identifier: Apache-2.0
#include "transport/operation_context.h"

#include <atomic>
#include <utility>

#include "transport/link.h"

namespace memspan {
namespace {

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

OperationContext::OperationContext() : id_(next_id()) {}

void OperationContext::use(Link& link) {
  MutexLock lock(mutex_);
  for (Use& use : used_)
    if (use.link == &link) return static_cast<void>(++use.count);
  used_.push_back({&link, 1});
}

std::vector<OperationContext::Use> OperationContext::uses() {
  MutexLock lock(mutex_);
  return used_;
}

void OperationContext::forget(const Use& use) {
  MutexLock lock(mutex_);
  std::erase_if(
      used_, [&](const Use& other) { return other.link == use.link && other.count == use.count; });
}

Status OperationContext::fence() {
  Status first;
  for (const Use& use : uses())
    if (Status status = use.link->fence(*this); first.is_ok()) first = std::move(status);
  return first;
}

// Another thread's quiet at the same time asks the same links, whose operations are not complete
// yet.
Status OperationContext::quiet() {
  const std::vector<Use> used = uses();
  std::vector<std::uint64_t> tickets(used.size());
  for (std::size_t i = 0; i < used.size(); ++i) tickets[i] = used[i].link->start_quiet(*this);
  Status first;
  for (std::size_t i = 0; i < used.size(); ++i) {
    Status status = used[i].link->finish_quiet(*this, tickets[i]);
    // Timed out or interrupted: it is still outstanding.
    if (status.code() != Code::kTimeout && status.code() != Code::kSystem) forget(used[i]);
    if (first.is_ok()) first = std::move(status);
  }
  return first;
}

}  // namespace memspan
