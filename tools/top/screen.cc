// SPDX-License-Identifier: Apache-2.0
#include "top/screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <string_view>
#include <utility>

#include "top/scroll.h"

namespace memspan::top {
namespace {

// ECMA-48: the other screen, without a cursor, and back.
constexpr std::string_view kEnter = "\033[?1049h\033[?25l";
constexpr std::string_view kLeave = "\033[?25h\033[?1049l";
constexpr std::string_view kHome = "\033[H";
constexpr std::string_view kClearLine = "\033[K";
constexpr std::string_view kClearBelow = "\033[J";

// A terminal's sequences for keys: these after ESC and '[' or 'O'.
constexpr char kEscape = '\033';
constexpr std::array<std::pair<std::string_view, char>, 4> kSequences{
    {{"A", kLineUp}, {"B", kLineDown}, {"5~", kPageUp}, {"6~", kPageDown}}};

termios settings_before{};
// The handled signals are blocked but in ppoll(): one that came just before it would be lost.
sigset_t mask_of_waits;
volatile std::sig_atomic_t is_asked_to_end = 0;

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // the terminal is gone: the next key reports it
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

// One typed letter; 0 and 'q' as Screen::key().
char letter(Deadline deadline) {
  if (is_asked_to_end != 0) return 'q';
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  const auto left =
      std::chrono::nanoseconds(std::chrono::milliseconds(deadline.remaining_poll_ms()));
  const timespec limit{.tv_sec = left.count() / 1'000'000'000,
                       .tv_nsec = left.count() % 1'000'000'000};
  const int ready = ppoll(&input, 1, left.count() < 0 ? nullptr : &limit, &mask_of_waits);
  if (is_asked_to_end != 0) return 'q';
  if (ready <= 0) return 0;
  char typed = 0;
  const ssize_t taken = read(STDIN_FILENO, &typed, 1);
  if (taken == 1) return typed;
  return (input.revents & (POLLHUP | POLLERR)) != 0 || taken == 0 ? 'q' : '\0';
}

}  // namespace

Status Screen::check() {
  if (isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1) return Status::ok();
  return {Code::kInvalidArgument,
          "stdin and stdout are not both a terminal; --once and --json need none"};
}

Screen::Screen() {
  tcgetattr(STDIN_FILENO, &settings_before);
  termios raw = settings_before;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  set_handlers(note_end);
  struct sigaction action {};
  action.sa_handler = note_nothing;
  sigaction(SIGWINCH, &action, nullptr);
  sigset_t handled;
  sigemptyset(&handled);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH}) sigaddset(&handled, number);
  sigprocmask(SIG_BLOCK, &handled, &mask_of_waits);
  write_all(kEnter);
}

Screen::~Screen() {
  write_all(kLeave);
  tcsetattr(STDIN_FILENO, TCSANOW, &settings_before);
  set_handlers(SIG_DFL);
  sigprocmask(SIG_SETMASK, &mask_of_waits, nullptr);
}

Size Screen::size() const {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
    return {.rows = 24, .columns = 80};
  return {.rows = size.ws_row, .columns = size.ws_col};
}

void Screen::show(const std::vector<std::string>& lines) {
  const Size room = size();
  std::string text(kHome);
  const std::size_t count = std::min(lines.size(), room.rows);
  for (std::size_t i = 0; i < count; ++i) {
    text += std::string_view(lines[i]).substr(0, room.columns);
    text += kClearLine;
    if (i + 1 < count) text += "\r\n";
  }
  if (count < room.rows) text += "\r\n" + std::string(kClearBelow);
  write_all(text);
}

char Screen::key(Deadline deadline) {
  const char first = letter(deadline);
  if (first != kEscape) return first;
  // The rest of a key's sequence arrives at once, or soon on a slow line.
  const Deadline soon = Deadline::after(std::chrono::milliseconds(100));
  const char second = letter(soon);
  if (second != '[' && second != 'O') return second;
  std::string sequence;
  do {
    sequence += letter(soon);
  } while (sequence.back() != 0 && (sequence.back() < '@' || sequence.back() > '~'));
  for (const auto& [name, key] : kSequences)
    if (sequence == name) return key;
  return 0;
}

}  // namespace memspan::top
