// SPDX-License-Identifier: Apache-2.0
// A pseudo-terminal that passes on bytes as they are. Writers take it for a terminal, so the
// standard libraries (C, Fortran, Python) send each line when it ends.
#pragma once

#include "core/fd.h"
#include "core/status.h"

namespace memspan::launcher {

// The end to read from. Reading never waits; EIO means that no process has the other end.
Result<Fd> open_pseudo_terminal();
// Another end to write to, with its own state. It never becomes a controlling terminal.
Result<Fd> open_terminal_writer(int reader);

}  // namespace memspan::launcher
