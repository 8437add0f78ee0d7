// SPDX-License-Identifier: Apache-2.0
// What all processes of a job share: the program, the board, the memory of their heaps, and the
// environment. Made before the first of them is started.
#pragma once

#include <sys/resource.h>

#include <string>
#include <vector>

#include "core/fd.h"
#include "core/status.h"
#include "launcher/options.h"
#include "world/board.h"

namespace memspan::launcher {

// The file that a shell would run for `name`: with a slash as it is, else the first executable in
// PATH. kNotFound says what was looked for.
Result<std::string> find_program(const std::string& name);

// Descriptors for children get numbers from here on, so that scripts that use 3 to 9 do not
// close them by accident.
inline constexpr int kFirstChildDescriptor = 64;
Result<Fd> duplicate_high(int descriptor);

// Owns the job's shared memory. One thread at a time.
class Job {
 public:
  static Result<Job> make(Options options);

  const Options& options() const { return options_; }
  const std::string& program() const { return program_; }
  int size() const { return options_.processes; }
  const Board& board() const { return board_; }

  int board_for_children() const { return board_descriptor_.get(); }
  int heap_for_children() const { return heap_descriptor_.get(); }
  // Empty when nobody is bound, else one core a rank.
  const std::vector<int>& cores() const { return cores_; }
  // The limit on open files as it was, for the processes; the launcher's own was raised.
  const rlimit& open_files() const { return open_files_; }
  // The environment of `rank`, whose socket to the store has the number `store`.
  std::vector<std::string> environment_of(int rank, int store) const;

 private:
  Job(Options options, std::string program, Board board)
      : options_(std::move(options)), program_(std::move(program)), board_(std::move(board)) {}
  Options options_;
  std::string program_;
  Board board_;
  Fd board_descriptor_;
  Fd heap_descriptor_;
  rlimit open_files_{};
  std::vector<int> cores_;
  std::vector<std::string> environment_;  // what is the same for all
};

}  // namespace memspan::launcher
