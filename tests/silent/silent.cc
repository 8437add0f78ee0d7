// SPDX-License-Identifier: Apache-2.0
#include "silent/silent.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <thread>

namespace silent {

namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

void say(const std::string& line) {
  const std::string whole = line + "\n";
  if (write(STDOUT_FILENO, whole.data(), whole.size()) < 0) _exit(9);
}

// A byte at a time: none is read ahead.
bool hear(std::string* line = nullptr) {
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) == 1) {
    if (byte == '\n') return true;
    if (line != nullptr) *line += byte;
  }
  return false;
}
std::vector<std::string> words_of(const std::string& line) {
  std::istringstream text(line);
  return {std::istream_iterator<std::string>(text), {}};
}

void say_handled(int) {
  static const char kText[] = "handled\n";
  if (write(STDOUT_FILENO, kText, sizeof kText - 1) < 0) _exit(9);
}

// Operations with those that are well, all the time.
class Others {
 public:
  explicit Others(Face& face)
      : thread_([this, &face] {
          block_signals();
          while (!is_over_) {
            for (int rank = kNear; rank < face.size; ++rank) once(face, rank);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
        }) {}

  // Returns once the thread has begun.
  void await_first() {
    while (count_ == 0) std::this_thread::yield();
  }

  void stop() {
    is_over_ = true;
    thread_.join();
    say("others " + std::to_string(longest_) + " " + std::to_string(count_) + " " + failure_);
  }

  static void block_signals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
  }

 private:
  void once(Face& face, int rank) {
    const auto begin = Clock::now();
    const bool is_well = face.touch(rank);
    const double took = ms_since(begin);
    if (took > longest_) longest_ = took;
    ++count_;
    if (!is_well && failure_.empty()) failure_ = std::to_string(rank) + " " + face.reason();
  }

  std::atomic<bool> is_over_{false};
  double longest_ = 0;
  std::atomic<long> count_{0};
  std::string failure_;
  std::thread thread_;
};

// Pours until nothing goes through any more: a quarter of a second without progress.
class Filler {
 public:
  explicit Filler(Face& face)
      : thread_([this, &face] {
          Others::block_signals();
          while (!is_over_ && face.pour()) ++done_;
          is_over_ = true;
        }) {
    long seen = -1;
    for (auto since = Clock::now(); ms_since(since) < 250 && !is_over_;) {
      if (const long now = done_; now != seen) {
        seen = now;
        since = Clock::now();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (is_over_)
      fail("the connection took no end of bytes, or the operation failed: " + face.reason());
  }

  void stop() {
    is_over_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> is_over_{false};
  std::atomic<long> done_{0};
  std::thread thread_;
};

void call_and_end(Face& face, const Call& call, bool does_fill) {
  std::unique_ptr<Filler> filler;
  if (does_fill) filler = std::make_unique<Filler>(face);
  std::optional<Others> others;
  if (!call.is_end) others.emplace(face);
  if (others) others->await_first();
  say("begins");
  auto begin = Clock::now();
  const int code = call.make();
  say("returned " + std::to_string(code) + " " + std::to_string(ms_since(begin)));
  say("reason " + face.reason());
  if (others) others->stop();
  hear();
  if (filler) filler->stop();
  if (call.is_end) return;
  begin = Clock::now();
  const int end = face.end();
  say("ended " + std::to_string(end) + " " + std::to_string(ms_since(begin)));
  if (end != 0) say("reason " + face.reason());
}

int number_in(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) fail(std::string(variable) + " is not set");
  return std::atoi(text);
}

}  // namespace

const char* name_of(Ends ends) {
  switch (ends) {
    case Ends::kAtOnce:
      return "at-once";
    case Ends::kSoon:
      return "soon";
    case Ends::kWithPeer:
      return "with-peer";
    case Ends::kInTime:
      return "in-time";
    case Ends::kSilence:
      return "silence";
    case Ends::kLost:
      return "lost";
  }
  return "";
}

unsigned start_limit() {
  return std::getenv("SILENT_START_LIMIT") != nullptr
             ? static_cast<unsigned>(number_in("SILENT_START_LIMIT"))
             : 20;
}

void fail(const std::string& text) {
  say("failed " + text);
  _exit(8);
}

int main_of(Face& face, int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  std::vector<Call> calls = face.calls();
  if (what == "list") {
    for (const Call& call : calls)
      std::cout << call.name << ' ' << name_of(call.near) << ' ' << name_of(call.far)
                << (call.is_end ? " end\n" : "\n");
    return 0;
  }
  if (what != "run" || argc < 3) fail("use: list | run CALL [fill]");
  const auto leave = [] { std::exit(0); };
  calls.push_back(
      {"exit", Ends::kAtOnce, Ends::kAtOnce, [leave] { return leave(), 0; }, leave, true});
  face.rank = number_in("RANK");
  face.size = number_in("WORLD_SIZE");
  for (const Call& call : calls) {
    if (call.name != argv[2]) continue;
    struct sigaction action = {};
    action.sa_handler = say_handled;
    sigaction(SIGUSR1, &action, nullptr);
    say("starts");
    face.begin();
    say("ready " + face.address());
    std::string addresses;
    if (!hear(&addresses)) return 0;
    face.meet(words_of(addresses));
    say("met");
    if (!hear()) return 0;
    if (face.rank == kCaller) {
      call_and_end(face, call, argc > 3);
      return 0;
    }
    if (call.help) call.help();
    hear();
    if (!call.is_end) face.end();
    return 0;
  }
  fail("there is no call \"" + std::string(argv[2]) + "\"");
}

}  // namespace silent
