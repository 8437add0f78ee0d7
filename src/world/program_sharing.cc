// SPDX-License-Identifier: Apache-2.0
#include "world/program_sharing.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "core/log.h"
#include "memory/address_plan.h"
#include "world/launch.h"

namespace memspan {
namespace {

// A launched program may start others before it joins, and those inherit its rank: the first has
// the place, until it is gone.
bool claim_place(BoardPeer& self) {
  const pid_t me = getpid();
  pid_t owner = self.data_owner.load(std::memory_order_acquire);
  if (owner == me) return true;
  if (owner != 0 && (kill(owner, 0) == 0 || errno != ESRCH)) return false;
  return self.data_owner.compare_exchange_strong(owner, me, std::memory_order_acq_rel);
}

Status move(const ProgramData& data, const Board& board, const Pages& heap, int rank) {
  if (data.bytes > kProgramDataBytes)
    return {Code::kOutOfMemory, fmt::format("the program's variables have {} bytes, {} fit",
                                            data.bytes, kProgramDataBytes)};
  if (!claim_place(board.peer(rank)))
    return {Code::kUnavailable, fmt::format("process {} has the place of this rank",
                                            board.peer(rank).data_owner.load())};
  MEMSPAN_PASS(move_program_data(data, heap, program_data_offset(board, rank)));
  // Pairs with the acquire in World::connect_program_data(); the meeting in between is enough.
  board.peer(rank).program.store(data.identity, std::memory_order_release);
  return Status::ok();
}

// Descriptors of the launcher are left as they are.
Result<Fd> copy_of(int descriptor) {
  Fd own(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (!own.is_valid()) return Status::from_errno("duplicating a descriptor of the launcher");
  return own;
}

Status share_with_launch(const Launch& launch) {
  MEMSPAN_TRY_ASSIGN(Fd board_descriptor, copy_of(launch.board), "sharing variables");
  MEMSPAN_TRY_ASSIGN(const Board board, Board::attach(std::move(board_descriptor)), "sharing");
  // The launcher reads it when the job is over, so no other line orders it.
  board.header().library_seen.store(1, std::memory_order_relaxed);
  const ProgramData data = find_program_data();
  if (data.is_empty()) return Status::ok();
  MEMSPAN_TRY_ASSIGN(Fd heap_descriptor, copy_of(launch.heap), "sharing variables");
  MEMSPAN_TRY_ASSIGN(const Pages heap, Pages::adopt(std::move(heap_descriptor)), "sharing");
  if (launch.rank >= board.peers() || board.peers() == 1) return Status::ok();
  return move(data, board, heap, launch.rank);
}

}  // namespace

std::size_t program_data_offset(const Board& board, int rank) {
  return (static_cast<std::size_t>(rank) + 1) * board.header().heap_stride - kProgramDataBytes;
}

void share_program_data_at_start() {
  auto launch = Launch::from_environment();
  // What goes wrong here goes wrong once more, with a line, in share_program_data().
  if (launch.is_ok() && *launch) static_cast<void>(share_with_launch(**launch).is_ok());
}

ProgramData share_program_data(const Board& board, const Pages& heap, int rank) {
  const ProgramData data = find_program_data();
  if (data.is_empty() || board.peers() == 1) return data;
  const Status status = move(data, board, heap, rank);
  if (status.is_ok()) return data;
  log_line(LogLevel::kWarn,
           fmt::format("global and static variables are not symmetric: {}", status.message()));
  return {};
}

}  // namespace memspan
