// SPDX-License-Identifier: Apache-2.0
// Streams, events and memory of the host device.
#pragma once

#include <memspan/launch.h>
#include <memspan/memspan.h>
#include <shmem.h>

#include <cstdint>
#include <cstdio>
#include <new>

namespace example {

namespace k = memspan::kernel;

[[noreturn]] inline void fail(const char* what, const char* why) {
  std::fprintf(stderr, "%s: %s\n", what, why);
  shmem_global_exit(1);
  __builtin_unreachable();
}
inline void require(std::int32_t code) {
  if (code != 0) fail("failed", memspan_last_error());
}

inline void* allocate(std::size_t bytes) {
  return ::operator new(bytes);
}
inline void release(void* memory) {
  ::operator delete(memory);
}

class Event {
 public:
  Event() { require(memspan_event_create(&event_)); }
  ~Event() { memspan_event_destroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  memspan_event_t get() const { return event_; }

 private:
  memspan_event_t event_ = nullptr;
};

class Stream {
 public:
  Stream() { require(memspan_stream_create(&stream_)); }
  ~Stream() { memspan_stream_destroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  template <typename Kernel, typename... Arguments>
  void launch(unsigned blocks, Kernel kernel, Arguments... arguments) {
    require(memspan::launch(stream_, blocks, kernel, arguments...));
  }
  void record(const Event& event) { require(memspan_event_record(event.get(), stream_)); }
  void wait(const Event& event) { require(memspan_stream_wait_event(stream_, event.get())); }
  void synchronize() { require(memspan_stream_synchronize(stream_, UINT32_MAX)); }

 private:
  memspan_stream_t stream_ = nullptr;
};

}  // namespace example
