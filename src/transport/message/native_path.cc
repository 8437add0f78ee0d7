// SPDX-License-Identifier: Apache-2.0
#include "transport/message/native_path.h"

#include <fmt/format.h>

#include "core/log.h"

namespace memspan {

bool NativePath::is_on(const RemoteRegion& region) const {
  return access_ != nullptr && region.transport_key == kNativeRegion &&
         !is_off_.load(std::memory_order_relaxed) && !Deliveries::is_running();
}

// Whether all bytes are in open, mapped windows. It opens no window for a few bytes.
bool NativePath::is_mapped(const RemotePlace& place, std::size_t bytes) {
  if (bytes == 0 || !is_on(place.region)) return false;
  MutexLock lock(mutex_);
  for (const std::uint64_t at : {place.offset, place.offset + bytes - 1}) {
    const auto found = windows_.find(key_of(place.region, at));
    if (found == windows_.end() || found->second == nullptr || !found->second->is_mapped())
      return false;
  }
  return true;
}

Result<std::size_t> NativePath::move(const OperationContext& context, MoveDirection direction,
                                     std::byte* local, const RemotePlace& place,
                                     std::size_t bytes) {
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

Result<NativePath::Window> NativePath::window(const RemoteRegion& region, std::uint64_t begin,
                                              const Deadline& deadline) {
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

Result<NativePath::Window> NativePath::ask(const RemoteRegion& region, std::uint64_t begin,
                                           const Deadline& deadline) {
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

}  // namespace memspan
