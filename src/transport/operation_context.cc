// SPDX-License-Identifier: Apache-2.0
#include "transport/operation_context.h"

#include <algorithm>
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
  if (std::find(used_.begin(), used_.end(), &link) == used_.end()) used_.push_back(&link);
}

Status OperationContext::fence() {
  std::vector<Link*> links;
  {
    MutexLock lock(mutex_);
    links = used_;
  }
  Status first;
  for (Link* link : links)
    if (Status status = link->fence(*this); first.is_ok()) first = std::move(status);
  return first;
}

Status OperationContext::quiet() {
  std::vector<Link*> links;
  {
    MutexLock lock(mutex_);
    links = std::exchange(used_, {});
  }
  std::vector<std::uint64_t> tickets(links.size());
  for (std::size_t i = 0; i < links.size(); ++i) tickets[i] = links[i]->start_quiet(*this);
  Status first;
  for (std::size_t i = 0; i < links.size(); ++i) {
    Status status = links[i]->finish_quiet(*this, tickets[i]);
    // Timed out or interrupted: it is still outstanding.
    if (status.code() == Code::kTimeout || status.code() == Code::kSystem) use(*links[i]);
    if (first.is_ok()) first = std::move(status);
  }
  return first;
}

}  // namespace memspan
