// SPDX-License-Identifier: Apache-2.0
// A pseudo-terminal that passes on bytes as they are. What writes to it believes that somebody
// reads along, and the standard libraries (C, Fortran, Python) then send each line when it ends.
#pragma once

#include "core/fd.h"
#include "core/status.h"

namespace memspan::launcher {

// The end to read from; reading never waits, and fails with EIO when nobody has the other end.
Result<Fd> open_pseudo_terminal();
// Another end to write to, with a state of its own. It becomes nobody's controlling terminal.
Result<Fd> open_terminal_writer(int reader);

}  // namespace memspan::launcher
