// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/peer.h"

#include "core/remedy.h"

namespace memspan::transfer {

namespace {

MEMSPAN_REMEDY(kNotRegistered, "not-registered",
               "The peer has not registered this memory, or not all of its bytes.",
               "Register it on the peer before the transfer begins, up to the last byte.");

}  // namespace

MEMSPAN_REMEDY(kNoEndpoint, "no-endpoint", "No process has an endpoint of that name at this store.",
               "Compare the name and the store URL of both processes; is the peer running?");

Status not_registered(const Piece& piece, std::uint64_t number, const std::string& endpoint,
                      const std::string& nearest) {
  return {Code::kNotFound,
          fmt::format(
              "piece {}: {} bytes at {:#x} are not entirely in what endpoint {} has registered; "
              "{}{}",
              number, piece.bytes, piece.remote, endpoint, nearest, kNotRegistered)};
}

const std::atomic<std::uint64_t> Peer::kAlwaysOpen{kOpen};

bool Peer::is_live() {
  if (has_ended()) return false;
  if (state_->load(std::memory_order_acquire) != kOpen) {
    end(End::kEnded);
    return false;
  }
  // No process number comes again within a tick, since all others are given out before.
  const Clock::rep now = last_tick().time_since_epoch().count();
  if (now == looked_at_.load(std::memory_order_relaxed)) return true;
  if (is_gone()) {
    end(End::kDied);
    return false;
  }
  looked_at_.store(now, std::memory_order_relaxed);
  return true;
}

Status Peer::why_not_live() const {
  const End end = end_.load(std::memory_order_acquire);
  if (end == End::kNone) [[likely]]
    return Status::ok();
  const auto text = [this](const char* what) {
    const bool is_remote = state_ == &kAlwaysOpen;
    return fmt::format(
        "{}: {} {}", record_.name,
        is_remote ? record_.who.name() : fmt::format("process {}", record_.who.process), what);
  };
  if (end == End::kEnded)
    return {Code::kNotFound, "there is no endpoint " + text("has destroyed it") + kNoEndpoint};
  // The store may notice a death before the process is quite gone.
  const char* const what = end == End::kDied || is_gone() ? "has died"
                           : end == End::kLost
                               ? "cannot be reached: it has died, is stopped or is cut off"
                               : "has left the store, or begun another program";
  return {Code::kPeerLost, "endpoint " + text(what)};
}

}  // namespace memspan::transfer
