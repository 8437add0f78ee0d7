// SPDX-License-Identifier: Apache-2.0
// How the processes' output reaches the launcher's stdout and stderr (I/O forwarding).
//
//              | stdout of a process, live            | buffered    | stderr
//   no label   | one pseudo-terminal for all of them  | ours        | ours
//   --label    | a pseudo-terminal each               | a pipe each | a pipe each
//
// If our stdout is a terminal or /dev/null, processes without a label write to it directly. stderr
// needs no pseudo-terminal, since the libraries send each line of it in any case.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "core/fd.h"
#include "core/status.h"
#include "launcher/forwarded_output.h"
#include "launcher/options.h"
#include "launcher/output_sink.h"
#include "launcher/watch.h"

namespace memspan::launcher {

// The stdout of a process.
enum class Channel { kOwn, kPipe, kTerminal };
Channel choose_channel(const Options& options);

// One thread.
class Forwarding : NotCopyable {
 public:
  // The loop must outlive it.
  static Result<std::unique_ptr<Forwarding>> make(const Options& options, Channel channel,
                                                  EventLoop& loop);
  ~Forwarding() = default;

  // The ends for the process of `rank`, called in the order of ranks; a descriptor that stays
  // invalid means the launcher's own.
  Status open(int rank, Fd& output, Fd& errors);

  // Writes what has come, as far as the readers take it.
  void flush();
  // The process of `rank` has ended: takes what it left.
  void finish(int rank);
  // All processes have ended.
  void finish_all();

  // Bytes that the reader of the launcher's output has not taken.
  std::size_t pending() const;
  // The errno with which a write failed since the last close_lost(), else 0. Before that call, the
  // processes that may write should get the SIGPIPE of a pipe of their own.
  int lost_reader() const;
  void close_lost();

 private:
  // One of the launcher's two outputs, with all that goes there.
  struct Stream {
    explicit Stream(int descriptor) : sink(descriptor) {}
    OutputSink sink;
    Watch target;  // while the reader does not take everything
    std::vector<ForwardedOutput> sources;
    bool has_paused = false;    // a source, since the sink is full
    bool is_abandoned = false;  // close_lost() has closed the sources
  };

  Forwarding(const Options& options, Channel channel, EventLoop& loop);
  Status add_source(Stream& stream, const std::string& label, Fd reader);
  Result<Fd> open_pipe(Stream& stream, const std::string& label);
  Result<Fd> open_terminal(Stream& stream, const std::string& label);
  Status watch(Stream& stream, std::size_t source);
  void serve(Stream& stream, std::size_t source);
  void flush(Stream& stream);

  const Label label_;
  Channel channel_;
  EventLoop& loop_;
  std::array<Stream, 2> streams_{Stream(1), Stream(2)};
  Fd keeper_;  // the writing end of the terminal for all, so that it ends with no process
};

}  // namespace memspan::launcher
