// SPDX-License-Identifier: Apache-2.0
// torch.distributed.monitored_barrier: every rank sends rank 0 a message. Rank 0 names those that
// are not there in time, or answers all.
#pragma once

#include <memspan/group.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "group_works.h"

namespace memspan::tensors {

class MonitoredBarrier {
 public:
  // `number` says which one of the group it is; `limit` bounds all of it.
  MonitoredBarrier(memspan_group_t group, int64_t number, Milliseconds limit)
      : group_(group),
        tag_(kFirstTag + number),
        limit_(limit),
        end_(Clock::now() + limit),
        rank_(memspan_group_rank(group)),
        size_(memspan_group_size(group)) {}

  void run(bool waits_for_all) {
    if (rank_ == 0)
      monitor(waits_for_all);
    else
      take_part();
  }

 private:
  using Clock = std::chrono::steady_clock;
  // Beyond all tags of PyTorch's, which are ints.
  static constexpr int64_t kFirstTag = int64_t{1} << 40;

  // An empty message, taken back when nobody wants it any more.
  class Message {
   public:
    Message(memspan_group_t group, int member, int64_t tag, bool is_sent) {
      check(is_sent ? memspan_group_send(group, member, tag, nullptr, 0, &request_)
                    : memspan_group_receive(group, member, tag, nullptr, 0, &request_));
    }
    ~Message() {
      if (request_ != nullptr) memspan_group_request_free(request_);
    }
    Message(Message&& other) noexcept : request_(std::exchange(other.request_, nullptr)) {}
    Message& operator=(Message&&) = delete;
    int32_t wait(uint32_t timeout_ms) const {
      const Interruptible interruptible;
      const int32_t code = memspan_group_wait(request_, timeout_ms);
      if (code != SMEM_OK) throw_if_interrupted();
      return code;
    }

   private:
    memspan_group_request_t request_ = nullptr;
  };

  bool is_late() const { return Clock::now() >= end_; }
  uint32_t left() const {
    return milliseconds(std::chrono::ceil<Milliseconds>(end_ - Clock::now()));
  }
  std::string in_limit() const { return std::to_string(limit_.count()) + " ms"; }

  void monitor(bool waits_for_all) {
    std::vector<Message> arrivals;
    for (int member = 1; member < size_; ++member)
      arrivals.emplace_back(group_, member, tag_, false);
    std::string missing;
    int missed = 0;
    for (int member = 1; member < size_; ++member) {
      TORCH_CHECK_WITH(DistBackendError, waits_for_all || !is_late(),
                       "Rank 0 timed out in monitoredBarrier after ", in_limit(), ": ", member - 1,
                       " of the others had come");
      if (arrivals[static_cast<size_t>(member - 1)].wait(left()) == SMEM_OK) continue;
      missing += (missed++ == 0 ? "" : ", ") + std::to_string(member);
      if (!waits_for_all) break;
    }
    TORCH_CHECK_WITH(DistBackendError, missed == 0, missed > 1 ? "Ranks " : "Rank ", missing,
                     " failed to pass monitoredBarrier in ", in_limit(), ": ",
                     memspan_last_error());
    std::vector<Message> answers;
    for (int member = 1; member < size_; ++member) answers.emplace_back(group_, member, tag_, true);
    for (const Message& answer : answers) check(answer.wait(0));
  }

  void take_part() {
    const Message arrival(group_, 0, tag_, true);
    const Message answer(group_, 0, tag_, false);
    int32_t code = arrival.wait(left());
    if (code == SMEM_OK) code = answer.wait(left());
    TORCH_CHECK_WITH(
        DistBackendError, code == SMEM_OK, "Rank ", rank_,
        " successfully reached monitoredBarrier, but received errors while waiting for "
        "send/recv from rank 0: ",
        memspan_last_error());
  }

  const memspan_group_t group_;
  const int64_t tag_;
  const Milliseconds limit_;
  const Clock::time_point end_;
  const int rank_;
  const int size_;
};

}  // namespace memspan::tensors
