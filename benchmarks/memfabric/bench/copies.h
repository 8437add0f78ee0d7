// SPDX-License-Identifier: Apache-2.0
// One process that copies and another whose memory it is: what moves the pieces, the library and
// the bare way, is a `Reach`.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>

#include "workload.h"

namespace bench {

enum class Direction { kWrite, kRead };

// Copies between the local memory and the other process's. Ends the program on failure.
class Reach {
 public:
  virtual ~Reach() = default;
  virtual char* local() = 0;
  // Arranges the arrays for a workload; what follows is about it.
  virtual void prepare(const Workload& work, Direction direction) = 0;
  virtual void ours() = 0;
  virtual void bare() = 0;
  // The other's memory by the bare way that has no part in `ours`: [at, at + bytes).
  virtual void peek(std::size_t at, void* to, std::size_t bytes) = 0;
  virtual void poke(std::size_t at, const void* from, std::size_t bytes) = 0;
};

// Measures all workloads in both directions as "<prefix>_write_<workload>" and "..._read_...";
// false when a byte is wrong.
bool measure_copies(const char* prefix, Reach& reach);

// What two processes tell each other, over pipes that are made before they are.
class Talk {
 public:
  Talk();
  ~Talk();
  Talk(const Talk&) = delete;
  Talk& operator=(const Talk&) = delete;

  template <typename T>
  void tell(int other, const T& word) {
    send(other, &word, sizeof word);
  }
  template <typename T>
  T hear(int mine) {
    T word;
    receive(mine, &word, sizeof word);
    return word;
  }

 private:
  void send(int to, const void* word, std::size_t bytes);
  void receive(int mine, void* word, std::size_t bytes);
  int pipes_[2][2];
};

constexpr int kInitiator = 0, kOwner = 1;

// Two processes: `owner` lends its memory and returns when it is told to; an exit code.
int run_pair(const std::function<int(Talk&)>& initiator, const std::function<int(Talk&)>& owner);

// An anonymous mapping of this process (or, shared, of those that it forks), every page there.
char* map_memory(std::size_t bytes, bool is_shared);

// The groups: exit codes.
int copy_big_memory();
int copy_ordinary();  // transfers to memory that a program has
int copy_mapped();    // transfers to memory that the library gave
int copy_adopted();   // transfers to memory that a program has, with adopted pages
int register_memory();
int start_pools();
int join_and_leave();

}  // namespace bench
