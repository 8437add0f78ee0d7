// SPDX-License-Identifier: Apache-2.0
// Every call that may block, made while one process of the job is silent and alive. A program has
// the calls of one face:
//   PROGRAM list             each call with what ends it: NAME NEAR FAR [end]
//   PROGRAM run CALL [fill]  a process of the job; CALL may also be "exit", which ends the process.
//   Rank 0 makes the call, rank 1 is the silent one,
//                            2 is on the host of 0, 3 on a host of its own.
// Each says "ready ADDRESS", is told the addresses of all in a line on stdin, and says "met". The
// next line lets rank 0 begin, and the others help or end. With `fill` rank 0 has filled its
// connection to rank 1 before. It says, for the harness:
//   handled             a handler of a signal ran
//   returned CODE MS    the call is over; CODE 0 is success
//   reason TEXT
//   others MS COUNT [RANK TEXT]
//                       the longest of COUNT operations that another thread had with 2 and 3,
//                       and the first that failed
//   ended CODE MS       and the face is shut down, after another line on stdin
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace silent {

enum Rank { kCaller, kSilent, kNear, kFar };

// What ends a call if the silent process stays silent.
enum class Ends {
  kAtOnce,    // it does not need that process
  kSoon,      // it gives that process a second
  kWithPeer,  // nothing but that process
  kInTime,    // its own time-out, kTimeout
  kSilence,   // it succeeds without that process, after MEMSPAN_SILENCE_LIMIT
  kLost,      // the process is given up as lost (MEMSPAN_SILENCE_LIMIT)
};
const char* name_of(Ends ends);

inline constexpr int kTimeout = 2;  // s: every time-out that a face has
unsigned start_limit();             // s: the time-out of a start; SILENT_START_LIMIT, else 20

struct Call {
  std::string name;
  Ends near;                        // the silent process is on this host
  Ends far;                         // on another one
  std::function<int()> make;        // its code; 0 is success
  std::function<void()> help = {};  // what the others do, once they may
  bool is_end = false;              // nothing can be called after it
};

class Face {
 public:
  virtual ~Face() = default;
  virtual std::vector<Call> calls() = 0;
  // Joins the job.
  virtual void begin() = 0;
  // Where others find its memory; one word.
  virtual std::string address() { return "-"; }
  // Uses every connection once, so that it is there.
  virtual void meet(const std::vector<std::string>& addresses) = 0;
  // One operation with a process that is well.
  virtual bool touch(int rank) = 0;
  // One operation that moves much to the silent process; false when it failed.
  virtual bool pour() = 0;
  // The text of the last failure of this thread, or "".
  virtual std::string reason() = 0;
  virtual int end() = 0;

  int rank = 0;
  int size = 0;
};

int main_of(Face& face, int argc, char** argv);

// Ends the process with the text.
[[noreturn]] void fail(const std::string& text);
inline void need(bool holds, const char* what) {
  if (!holds) fail(what);
}
// The text is asked for afterwards.
inline void need(bool holds, const char* (*why)()) {
  if (!holds) fail(why());
}

}  // namespace silent
