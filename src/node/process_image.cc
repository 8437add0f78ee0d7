// SPDX-License-Identifier: Apache-2.0
#include "node/process_image.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <string>

namespace memspan {
namespace {

// A line is "ADDRESSES RIGHTS OFFSET DEVICE INODE PATH".
bool is_of_inode(const std::string& line, const std::string& inode) {
  std::size_t at = 0;
  for (int field = 0; field < 4; ++field) {
    at = line.find(' ', at);
    if (at == std::string::npos) return false;
    ++at;
  }
  return line.compare(at, inode.size(), inode) == 0;
}

}  // namespace

bool has_replaced_program(const NodeSegment& segment, pid_t process) {
  struct stat info {};
  if (fstat(segment.descriptor(), &info) != 0) return false;
  // Also checks the name, because other file systems count their inodes by themselves.
  const std::string inode = fmt::format("{} ", info.st_ino);
  errno = 0;
  std::ifstream maps(fmt::format("/proc/{}/maps", process));
  // Access is denied: it now runs a program of another user.
  if (!maps.is_open()) return errno == EACCES || errno == EPERM;
  bool has_lines = false;  // a process that is ending has no memory
  for (std::string line; std::getline(maps, line); has_lines = true)
    if (is_of_inode(line, inode) && line.find("memspan-node") != std::string::npos) return false;
  return has_lines;
}

bool mark_replaced(const NodeSegment& segment, int rank) {
  const PeerSlot& peer = segment.peer(rank);
  if (peer.state.load(std::memory_order_acquire) != PeerState::kJoined) return false;
  return has_replaced_program(segment, peer.pid.load(std::memory_order_relaxed)) &&
         segment.mark_lost(rank, kReplacedProgram);
}

}  // namespace memspan
