// SPDX-License-Identifier: Apache-2.0
// Ending the process at once, from any thread.
#pragma once

namespace memspan {

// Writes the buffers of stdio and ends the process as _exit() does. It gives up after a second, and
// the rest is lost: a thread that waits for a line of standard input holds that stream for as long,
// and a full pipe takes nothing.
[[noreturn]] void flush_and_exit(int code);

}  // namespace memspan
