// SPDX-License-Identifier: Apache-2.0
// The stand-in's streams, each a thread with a queue, its events and its copies.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "standin.h"

namespace memspan::cuda {

struct StreamObject {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<ResultCode()>> queue;
  std::uint64_t given = 0, done = 0;
  ResultCode failure = kSuccess;
  bool is_ending = false;
  std::thread thread{[this] { run(); }};

  ~StreamObject() {
    {
      const std::lock_guard lock(mutex);
      is_ending = true;
    }
    changed.notify_all();
    thread.join();
  }
  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return is_ending || !queue.empty(); });
      if (queue.empty()) return;
      const auto work = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      const ResultCode result = work();
      lock.lock();
      if (failure == kSuccess) failure = result;
      ++done;
      changed.notify_all();
    }
  }
};

struct EventObject {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t recorded = 0, reached = 0;
};

}  // namespace memspan::cuda

namespace standin {
namespace {

// Never ended: the threads of a process that exits are cut.
StreamObject& stream_of(StreamHandle handle) {
  static StreamObject* const standard = new StreamObject;
  return handle == nullptr ? *standard : *handle;
}

// A driver moves an aligned word whole, so that it may be awaited while it is written.
template <typename Word>
bool copies_as_word(void* to, const void* from, std::size_t bytes) {
  const auto places = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
  if (bytes != sizeof(Word) || places % sizeof(Word) != 0) return false;
  const Word word = __atomic_load_n(static_cast<const Word*>(from), __ATOMIC_ACQUIRE);
  __atomic_store_n(static_cast<Word*>(to), word, __ATOMIC_RELEASE);
  return true;
}

std::atomic<std::size_t> copies_begun{0};

ResultCode copy_now(DevicePtr to, DevicePtr from, std::size_t bytes) {
  ++copies_begun;
  while (bytes > 0) {
    const Touchable destination = find(to, bytes), source = find(from, bytes);
    if (destination.at == nullptr || source.at == nullptr) return kInvalidValue;
    const std::size_t part = std::min(destination.bytes, source.bytes);
    if (!copies_as_word<std::uint32_t>(destination.at, source.at, part) &&
        !copies_as_word<std::uint64_t>(destination.at, source.at, part))
      std::memcpy(destination.at, source.at, part);
    to += part;
    from += part;
    bytes -= part;
  }
  return kSuccess;
}

ResultCode fill_now(DevicePtr to, unsigned char value, std::size_t bytes) {
  while (bytes > 0) {
    const Touchable part = find(to, bytes);
    if (part.at == nullptr) return kInvalidValue;
    std::memset(part.at, value, part.bytes);
    to += part.bytes;
    bytes -= part.bytes;
  }
  return kSuccess;
}

void await(EventObject& event, std::uint64_t place) {
  std::unique_lock lock(event.mutex);
  event.changed.wait(lock, [&] { return event.reached >= place; });
}

std::uint64_t last_of(EventObject& event) {
  const std::lock_guard lock(event.mutex);
  return event.recorded;
}

}  // namespace

ResultCode enqueue(StreamHandle handle, std::function<ResultCode()> work) {
  if (const ResultCode result = check(Needs::kContext); result != kSuccess) return result;
  StreamObject& stream = stream_of(handle);
  const std::lock_guard lock(stream.mutex);
  stream.queue.push_back(std::move(work));
  ++stream.given;
  stream.changed.notify_all();
  return kSuccess;
}

}  // namespace standin

using namespace standin;

STANDIN_EXPORT ResultCode cuStreamCreate(StreamHandle* stream, unsigned flags) {
  if (const ResultCode result = check(Needs::kContext); result != kSuccess) return result;
  if (flags > kNonBlockingStream) return kInvalidValue;
  *stream = new StreamObject;
  return kSuccess;
}

STANDIN_EXPORT ResultCode cuStreamDestroy_v2(StreamHandle stream) {
  if (const ResultCode result = check(Needs::kContext); result != kSuccess) return result;
  delete stream;
  return kSuccess;
}

STANDIN_EXPORT ResultCode cuStreamQuery(StreamHandle handle) {
  if (const ResultCode result = check(Needs::kContext); result != kSuccess) return result;
  StreamObject& stream = stream_of(handle);
  const std::lock_guard lock(stream.mutex);
  return stream.done < stream.given ? kNotReady : stream.failure;
}

STANDIN_EXPORT ResultCode cuStreamSynchronize(StreamHandle handle) {
  if (const ResultCode result = check(Needs::kContext); result != kSuccess) return result;
  StreamObject& stream = stream_of(handle);
  std::unique_lock lock(stream.mutex);
  const std::uint64_t last = stream.given;
  stream.changed.wait(lock, [&] { return stream.done >= last; });
  return stream.failure;
}

STANDIN_EXPORT ResultCode cuStreamWaitEvent(StreamHandle stream, EventHandle event,
                                            unsigned /*flags*/) {
  return enqueue(stream, [event, place = last_of(*event)] {
    await(*event, place);
    return kSuccess;
  });
}

// Looks again and again, as what comes there says nothing; ends with the process.
STANDIN_EXPORT ResultCode cuStreamWaitValue32_v2(StreamHandle stream, DevicePtr word,
                                                 std::uint32_t value, unsigned flags) {
  if (word % sizeof value != 0 || flags > kWaitUntilEqual || find(word, sizeof value).at == nullptr)
    return kInvalidValue;
  return enqueue(stream, [=] {
    while (true) {
      std::uint32_t now = 0;
      const ResultCode looked = copy_now(reinterpret_cast<DevicePtr>(&now), word, sizeof now);
      if (looked != kSuccess) return looked;
      const bool is_there =
          flags == kWaitUntilEqual ? now == value : static_cast<std::int32_t>(now - value) >= 0;
      if (is_there) return kSuccess;
      std::this_thread::yield();
    }
  });
}

STANDIN_EXPORT ResultCode cuLaunchHostFunc(StreamHandle stream, HostFunction function, void* data) {
  return enqueue(stream, [=] {
    is_in_call_of_stream = true;
    function(data);
    is_in_call_of_stream = false;
    return kSuccess;
  });
}

// Memory of the host that is not pinned is taken at once, whatever the stream was given before, and
// a copy to it waits for the stream within the call, as driver 580 does.
STANDIN_EXPORT ResultCode cuMemcpyAsync(DevicePtr to, DevicePtr from, std::size_t bytes,
                                        StreamHandle stream) {
  if (!is_touchable(to, bytes) || !is_touchable(from, bytes)) return kInvalidValue;
  std::function<ResultCode()> work = [=] { return copy_now(to, from, bytes); };
  if (is_plain(from)) {
    const auto* first = reinterpret_cast<const std::byte*>(from);
    work = [=, taken = std::vector<std::byte>(first, first + bytes)] {
      return copy_now(to, reinterpret_cast<DevicePtr>(taken.data()), bytes);
    };
  }
  const ResultCode given = enqueue(stream, std::move(work));
  return given == kSuccess && is_plain(to) ? cuStreamSynchronize(stream) : given;
}

STANDIN_EXPORT ResultCode cuMemcpy(DevicePtr to, DevicePtr from, std::size_t bytes) {
  if (const ResultCode result = check(Needs::kContext); result != kSuccess) return result;
  return copy_now(to, from, bytes);
}

STANDIN_EXPORT ResultCode cuMemcpyHtoDAsync_v2(DevicePtr to, const void* from, std::size_t bytes,
                                               StreamHandle stream) {
  return cuMemcpyAsync(to, reinterpret_cast<DevicePtr>(from), bytes, stream);
}

STANDIN_EXPORT ResultCode cuMemcpyDtoHAsync_v2(void* to, DevicePtr from, std::size_t bytes,
                                               StreamHandle stream) {
  return cuMemcpyAsync(reinterpret_cast<DevicePtr>(to), from, bytes, stream);
}

STANDIN_EXPORT ResultCode cuMemsetD8Async(DevicePtr to, unsigned char value, std::size_t bytes,
                                          StreamHandle stream) {
  if (!is_touchable(to, bytes)) return kInvalidValue;
  return enqueue(stream, [=] { return fill_now(to, value, bytes); });
}

STANDIN_EXPORT ResultCode cuEventCreate(EventHandle* event, unsigned /*flags*/) {
  if (const ResultCode result = check(Needs::kContext); result != kSuccess) return result;
  *event = new EventObject;
  return kSuccess;
}

STANDIN_EXPORT ResultCode cuEventRecord(EventHandle event, StreamHandle stream) {
  std::uint64_t place = 0;
  {
    const std::lock_guard lock(event->mutex);
    place = ++event->recorded;
  }
  return enqueue(stream, [=] {
    {
      const std::lock_guard lock(event->mutex);
      event->reached = place;
    }
    event->changed.notify_all();
    return kSuccess;
  });
}

STANDIN_EXPORT ResultCode cuEventQuery(EventHandle event) {
  const std::lock_guard lock(event->mutex);
  return event->reached < event->recorded ? kNotReady : kSuccess;
}

STANDIN_EXPORT ResultCode cuEventSynchronize(EventHandle event) {
  await(*event, last_of(*event));
  return kSuccess;
}

STANDIN_EXPORT ResultCode cuEventDestroy_v2(EventHandle event) {
  delete event;
  return kSuccess;
}

// How many copies this process has begun: for tests that do something while one runs.
STANDIN_EXPORT std::size_t standin_copies_begun() {
  return copies_begun;
}
