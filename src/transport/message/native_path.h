// SPDX-License-Identifier: Apache-2.0
// The path to one peer's memory without the peer's processor, for large puts and gets of a link by
// messages, in builds with MEMSPAN_NATIVE_RMA (docs/design/0014-native-rma.md). At the first use of
// a window it asks the owner for the key, and it keeps what the key opens.
//
// A put is complete when its call returns, and earlier posts are applied before it begins. So a
// link keeps its order on either path.
#pragma once

#include <fmt/format.h>

#include <tuple>

#include "core/log.h"
#include "transport/link.h"
#include "transport/message/carrier.h"
#include "transport/message/requester.h"

namespace memspan::inline transport {

// The smallest native size; gets from open, mapped windows are native at any size. A native put
// waits about 2 us for the network's acknowledgment; frames of smaller puts do not wait. At 200
// Gbit/s this many bytes take 2.6 us.
inline constexpr std::size_t kNativeFrom = std::size_t{64} << 10;

// Thread-safe.
class NativePath {
 public:
  // `access` null: no native operations.
  NativePath(Requester& requester, NativeAccess* access) : requester_(requester), access_(access) {}

  // Returns how many bytes, from the first one, were moved; messages move the rest. kTimeout,
  // kPeerLost and interrupts as in Link.
  Result<std::size_t> move(const OperationContext& context, MoveDirection direction,
                           std::byte* local, const RemotePlace& place, std::size_t bytes) {
    const bool is_put = direction == MoveDirection::kPut;
    if (bytes < kNativeFrom && (is_put || !is_mapped(place, bytes))) return std::size_t{0};
    if (!is_on(place.region)) return std::size_t{0};
    const Deadline deadline = context.deadline();
    const GiveUp give_up = [&]() -> Status {
      MEMSPAN_PASS(lost());
      if (deadline.has_passed())
        return {Code::kTimeout, fmt::format("{} did not take it in time", requester_.name())};
      return is_interrupted() ? interruption() : Status::ok();
    };
    std::size_t done = 0;
    while (done < bytes) {
      const std::uint64_t offset = place.offset + done;
      const std::uint64_t begin = offset / kNativeWindow * kNativeWindow;
      const auto count = std::min<std::size_t>(bytes - done, begin + kNativeWindow - offset);
      MEMSPAN_PASS_ASSIGN(const Window memory, window(place.region, begin, deadline));
      if (memory == nullptr) break;
      {
        const Turn turn(requester_.engine);
        MEMSPAN_PASS(requester_.settle(deadline));
      }
      requester_.engine.rest_progress();  // this thread may wait
      const Status moved = memory->move(direction, local + done, offset - begin, count, give_up);
      if (!moved.is_ok()) is_off_.store(true, std::memory_order_relaxed);
      // Messages move the rest, or the caller gets the reason.
      if (moved.code() == Code::kUnavailable) {
        log_line(LogLevel::kInfo, fmt::format("{} is reached by messages again: {}",
                                              requester_.name(), moved.message()));
        break;
      }
      MEMSPAN_PASS(moved);
      // Memory of a dead peer may still be mapped.
      MEMSPAN_PASS(lost());
      done += count;
    }
    MessageCore& core = requester_.core;
    if (done > 0)
      (is_put ? core.native_puts : core.native_gets).fetch_add(1, std::memory_order_relaxed);
    return done;
  }

 private:
  using Window = std::shared_ptr<NativeMemory>;  // shared by the table and calls
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;  // RegionId, window

  static Key key_of(const RemoteRegion& region, std::uint64_t offset) {
    return {region.id.number, region.id.generation, offset / kNativeWindow};
  }
  Status lost() {
    const Turn turn(requester_.engine);
    return requester_.lost();
  }

  bool is_on(const RemoteRegion& region) const {
    return access_ != nullptr && region.transport_key == kNativeRegion &&
           !is_off_.load(std::memory_order_relaxed) && !Deliveries::is_running();
  }

  // Whether all bytes are in open, mapped windows. It opens no window for a few bytes.
  bool is_mapped(const RemotePlace& place, std::size_t bytes) {
    if (bytes == 0 || !is_on(place.region)) return false;
    MutexLock lock(mutex_);
    for (const std::uint64_t at : {place.offset, place.offset + bytes - 1}) {
      const auto found = windows_.find(key_of(place.region, at));
      if (found == windows_.end() || found->second == nullptr || !found->second->is_mapped())
        return false;
    }
    return true;
  }

  // Null: use messages.
  Result<Window> window(const RemoteRegion& region, std::uint64_t begin, const Deadline& deadline) {
    const Key key = key_of(region, begin);
    {
      MutexLock lock(mutex_);
      if (const auto found = windows_.find(key); found != windows_.end()) return found->second;
    }
    Result<Window> opened = ask(region, begin, deadline);
    if (!opened.is_ok()) return opened;
    MutexLock lock(mutex_);
    // Another thread may also have asked.
    return windows_.try_emplace(key, std::move(opened).value()).first->second;
  }

  Result<Window> ask(const RemoteRegion& region, std::uint64_t begin, const Deadline& deadline) {
    std::vector<std::byte> text(kMostKey);
    Completion completion;
    {
      const Turn turn(requester_.engine);
      MEMSPAN_PASS_ASSIGN(
          const std::uint64_t asked,
          requester_.request({{.type = FrameType::kKey,
                               .region = region.id,
                               .offset = begin,
                               .length = text.size(),
                               .operand = std::min(kNativeWindow, region.bytes - begin)},
                              text.data(),
                              0,
                              &completion},
                             deadline));
      MEMSPAN_PASS(requester_.wait(asked, deadline, &completion));
    }
    // Messages get the refusal again, as the operation's answer.
    if (!completion.status.is_ok() || completion.value == 0) return Window();
    auto opened =
        access_->open({reinterpret_cast<const char*>(text.data()), std::size_t{completion.value}});
    if (!opened.is_ok()) {
      is_off_.store(true, std::memory_order_relaxed);
      log_line(LogLevel::kInfo, fmt::format("{} is reached by messages only: {}", requester_.name(),
                                            opened.status().message()));
      return Window();
    }
    log_line(LogLevel::kInfo,
             fmt::format("{}: large puts and gets use {}, from {} MiB of region {} on",
                         requester_.name(), (*opened)->lane(), begin >> 20, region.id.number));
    return Window(std::move(opened).value());
  }

  Requester& requester_;
  NativeAccess* const access_;
  // The peer has no native path, or it has failed.
  std::atomic<bool> is_off_{false};
  Mutex mutex_;
  std::map<Key, Window> windows_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan::inline transport
