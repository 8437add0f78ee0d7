// SPDX-License-Identifier: Apache-2.0
#include "copies.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "example.h"
#include "measure.h"

namespace bench {
namespace {

std::size_t seed_of(std::size_t piece, Direction direction) {
  return 2 * piece + (direction == Direction::kWrite ? 0 : 1);
}

// The source has what it must have, the destination something else.
void prepare_bytes(Reach& reach, const Workload& work, Direction direction) {
  std::vector<char> bytes;
  for (std::size_t i = 0; i < work.pieces.size(); ++i) {
    const Piece& piece = work.pieces[i];
    bytes.resize(piece.bytes);
    const std::size_t seed = seed_of(i, direction);
    const bool is_write = direction == Direction::kWrite;
    example::fill(reach.local() + piece.local, piece.bytes, is_write ? seed : ~seed);
    example::fill(bytes.data(), piece.bytes, is_write ? ~seed : seed);
    reach.poke(piece.remote, bytes.data(), piece.bytes);
  }
}

std::size_t count_wrong(Reach& reach, const Workload& work, Direction direction) {
  std::size_t wrong = 0;
  std::vector<char> bytes;
  for (std::size_t i = 0; i < work.pieces.size(); ++i) {
    const Piece& piece = work.pieces[i];
    const char* arrived = reach.local() + piece.local;
    if (direction == Direction::kWrite) {
      bytes.resize(piece.bytes);
      reach.peek(piece.remote, bytes.data(), piece.bytes);
      arrived = bytes.data();
    }
    wrong += example::wrong_bytes(arrived, piece.bytes, seed_of(i, direction));
  }
  return wrong;
}

bool measure(const char* prefix, Reach& reach, const Workload& work, Direction direction) {
  const std::string name =
      std::string(prefix) + (direction == Direction::kWrite ? "_write_" : "_read_") + work.name;
  prepare_bytes(reach, work, direction);
  reach.prepare(work, direction);
  reach.ours();
  if (const std::size_t wrong = count_wrong(reach, work, direction); wrong != 0) {
    std::printf("# ERROR %s %zu: %zu wrong bytes\n", name.c_str(), work.size, wrong);
    return false;
  }
  compare(
      name, work.size, [&] { reach.ours(); }, [&] { reach.bare(); });
  return true;
}

}  // namespace

bool measure_copies(const char* prefix, Reach& reach) {
  bool is_right = true;
  for (const Workload& work : all_workloads(options.memory))
    for (const Direction direction : {Direction::kWrite, Direction::kRead})
      is_right = measure(prefix, reach, work, direction) && is_right;
  return is_right;
}

Talk::Talk() {
  for (auto& pipe : pipes_)
    if (::pipe(pipe) != 0) example::leave(example::kFailed, "no pipe");
}

Talk::~Talk() {
  for (auto& pipe : pipes_)
    for (const int end : pipe) ::close(end);
}

void Talk::send(int to, const void* word, std::size_t bytes) {
  if (::write(pipes_[to][1], word, bytes) != static_cast<ssize_t>(bytes))
    example::leave(example::kFailed, "a pipe cannot be written");
}

void Talk::receive(int mine, void* word, std::size_t bytes) {
  if (::read(pipes_[mine][0], word, bytes) != static_cast<ssize_t>(bytes))
    example::leave(example::kFailed, "a pipe cannot be read");
}

int run_pair(const std::function<int(Talk&)>& initiator, const std::function<int(Talk&)>& owner) {
  Talk talk;
  return example::run_ranks(0, 2, 300, [&](int rank) {
    bind_to(rank);
    return rank == kInitiator ? initiator(talk) : owner(talk);
  });
}

char* map_memory(std::size_t bytes, bool is_shared) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              (is_shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    example::leave(example::kFailed, "no memory of " + std::to_string(bytes) + " bytes");
  std::memset(memory, 1, bytes);
  return static_cast<char*>(memory);
}

}  // namespace bench
