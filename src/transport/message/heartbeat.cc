// SPDX-License-Identifier: Apache-2.0
#include "transport/message/heartbeat.h"

#include <fmt/format.h>

#include <utility>

namespace memspan {
namespace {

constexpr int kIntervalsOfStandstill = 3;

}  // namespace

Status Heartbeat::look(Clock::time_point now, std::uint64_t received) {
  const bool stood_still = now - looked_ > kIntervalsOfStandstill * interval_;
  if (std::exchange(received_, received) != received || stood_still) heard_ = now;
  looked_ = now;
  if (now - heard_ < limit_) return Status::ok();
  return {Code::kPeerLost,
          fmt::format("it has been silent for {:.1f} s", to_seconds(now - heard_))};
}

}  // namespace memspan
