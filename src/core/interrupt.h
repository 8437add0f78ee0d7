// SPDX-License-Identifier: Apache-2.0
// How a language binding ends the waits of its own thread, as Python does for Ctrl-C.
//
// A thread may have an interrupt handler (memspan/memspan.h). A wait of that thread calls it every
// kInterruptPeriod, with none of the locks that the wait itself uses. Once it said so, all waits of
// the thread end until a handler is set again. Threads without one, which all of the library's own
// are, sleep as long as they like.
#pragma once

#include <chrono>
#include <string>

#include "core/clock.h"
#include "core/mutex.h"
#include "core/status.h"

namespace memspan {

// Not 0: the call is to end.
using InterruptHandler = int (*)();

// A person takes a tenth of a second for at once, and the handler may have to wait for a lock of
// its own.
inline constexpr auto kInterruptPeriod = std::chrono::milliseconds(40);

// Of the calling thread; the one before.
InterruptHandler set_thread_interrupt_handler(InterruptHandler handler);
bool is_interruptible();  // it has one
// Calls the handler when its time has come. Not with a lock that others hold in calls of the
// library, since they may have what the handler waits for.
bool is_interrupted();
// The same, without the mutex meanwhile.
bool is_interrupted(Mutex& held) MEMSPAN_REQUIRES(held);
// How long the next sleep may be, so that the handler is called in time.
Deadline until_next_look(const Deadline& deadline);
// As changed.wait_until(mutex, deadline), and false also when the thread is interrupted.
bool wait_interruptibly(ConditionVariable& changed, Mutex& mutex, const Deadline& deadline)
    MEMSPAN_REQUIRES(mutex);
// Why such a wait gave up: the interruption, else kTimeout with that text.
Status end_of_wait(std::string on_timeout);
// The failure of a call that was interrupted.
Status interruption();

}  // namespace memspan
