// SPDX-License-Identifier: Apache-2.0
// Objects that outlive what uses them. Exit handlers and threads that still run may call the
// library after the destructors of its global and thread-local objects: none of these has one.
// clang checks that (-Wexit-time-destructors); a function's own object is made with `new` and
// stays.
#pragma once

#include <utility>

namespace memspan::inline core {

// Calls `end` once when the calling thread ends; in the main thread, before the exit handlers. At
// most eight functions.
void at_thread_end(void (*end)());

template <typename T>
struct ThreadObject {
  static inline constinit thread_local T* own = nullptr;
  static void destroy() { delete std::exchange(own, nullptr); }
};

// The calling thread's T, made at its first use and destroyed with the thread; a later use makes
// another one. One for each type: the caller declares a type of its own. On the heap, because a
// library that is loaded later has little room for thread-local data.
template <typename T>
T& thread_object() {
  T*& own = ThreadObject<T>::own;
  if (own == nullptr) [[unlikely]] {
    own = new T;
    at_thread_end(ThreadObject<T>::destroy);
  }
  return *own;
}

// Ends the process at once, from any thread. Writes the buffers of stdio and ends the process as
// _exit() does. It gives up after a second, and the rest is lost: a thread that waits for a line of
// standard input holds that stream for as long, and a full pipe takes nothing.
[[noreturn]] void flush_and_exit(int code);

}  // namespace memspan::inline core
