// SPDX-License-Identifier: Apache-2.0
#include "top/screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

namespace memspan::top {
namespace {

// ECMA-48: the other screen, without a cursor, and back.
constexpr std::string_view kEnter = "\033[?1049h\033[?25l";
constexpr std::string_view kLeave = "\033[?25h\033[?1049l";
constexpr std::string_view kHome = "\033[H";
constexpr std::string_view kClearLine = "\033[K";
constexpr std::string_view kClearBelow = "\033[J";

termios before{};
volatile std::sig_atomic_t is_asked_to_end = 0;

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // the terminal is gone: the next key says so
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void note_end(int) {
  is_asked_to_end = 1;
}

void set_handlers(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;  // without SA_RESTART, so that poll() ends
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaction(number, &action, nullptr);
}

void note_nothing(int) {}

}  // namespace

Status Screen::check() {
  if (isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1) return Status::ok();
  return {Code::kInvalidArgument,
          "stdin and stdout are not both a terminal; --once and --json need none"};
}

Screen::Screen() {
  tcgetattr(STDIN_FILENO, &before);
  termios raw = before;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  set_handlers(note_end);
  struct sigaction action {};
  action.sa_handler = note_nothing;
  sigaction(SIGWINCH, &action, nullptr);
  write_all(kEnter);
}

Screen::~Screen() {
  write_all(kLeave);
  tcsetattr(STDIN_FILENO, TCSANOW, &before);
  set_handlers(SIG_DFL);
}

void Screen::show(const std::vector<std::string>& lines) {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
    size = {.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
  std::string text(kHome);
  const std::size_t count = std::min<std::size_t>(lines.size(), size.ws_row);
  for (std::size_t i = 0; i < count; ++i) {
    text += std::string_view(lines[i]).substr(0, size.ws_col);
    text += kClearLine;
    if (i + 1 < count) text += "\r\n";
  }
  if (count < size.ws_row) text += "\r\n" + std::string(kClearBelow);
  write_all(text);
}

char Screen::key(Deadline deadline) {
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  const int ready = poll(&input, 1, deadline.remaining_poll_ms());
  if (is_asked_to_end != 0) return 'q';
  if (ready <= 0) return 0;
  char letter = 0;
  const ssize_t taken = read(STDIN_FILENO, &letter, 1);
  if (taken == 1) return letter;
  return (input.revents & (POLLHUP | POLLERR)) != 0 || taken == 0 ? 'q' : '\0';
}

}  // namespace memspan::top
