// SPDX-License-Identifier: Apache-2.0
#include "launcher/pseudo_terminal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>

namespace memspan::launcher {

Result<Fd> open_pseudo_terminal() {
  Fd reader(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  if (!reader.is_valid()) return Status::from_errno("opening a pseudo-terminal");
  int locked = 0;
  termios settings{};
  // Asked of this end, the settings are those of the other one.
  if (ioctl(reader.get(), TIOCSPTLCK, &locked) != 0 || tcgetattr(reader.get(), &settings) != 0)
    return Status::from_errno("setting up a pseudo-terminal");
  cfmakeraw(&settings);  // no carriage return before a new line, no echo
  if (tcsetattr(reader.get(), TCSANOW, &settings) != 0)
    return Status::from_errno("setting up a pseudo-terminal");
  return reader;
}

Result<Fd> open_terminal_writer(int reader) {
  // By the descriptor: the folder in which the other end has its name may not be mounted.
  Fd writer(ioctl(reader, TIOCGPTPEER, O_WRONLY | O_NOCTTY | O_CLOEXEC));
  if (!writer.is_valid()) return Status::from_errno("opening a pseudo-terminal's other end");
  return writer;
}

}  // namespace memspan::launcher
