// SPDX-License-Identifier: Apache-2.0
// The back end of <memspan/kernel.h> for kernels on a device, over the state that the library has
// given it (<memspan/kernel_state.h>). Programs include <memspan/kernel.h>. C++17.
//
// PEs whose memory the device reaches are loads, stores and atomics at a distance from this PE's
// own memory. Everything else the host does, asked through a ring: PEs on other hosts, addresses
// that the device does not reach, mistakes (which the host names), barriers.
//
// What it stands on is namespace memspan::kernel::primitive, of <memspan/kernel_cuda.h> on CUDA:
//
//   MEMSPAN_KERNEL_FUNCTION             what stands before a function that is in line
//   MEMSPAN_KERNEL_OUT_OF_LINE            and before one that is not, since it is long and waits
//   state()                             this translation unit's copy
//   block() blocks() thread() threads() of this thread
//   Group<scope>                        the threads of a scope (kernel_copy.h)
//   sync_block() sync_grid(call)        all threads meet, and see what the others stored
//   load_relaxed load_acquire store_relaxed store_release add exchange compare_exchange bit_and
//   bit_or bit_xor fence                atomic for all PEs and the host
//   take_ticket(counter)                the next number, among the device's threads
//   pause() end(call, why)              a short rest; the kernel's failure, with a line
#ifndef MEMSPAN_KERNEL_DEVICE_H
#define MEMSPAN_KERNEL_DEVICE_H

#include <cstddef>
#include <cstdint>

#include "kernel_calls.h"
#include "kernel_copy.h"
#include "kernel_ring.h"
#include "kernel_state.h"
#include "kernel_types.h"

namespace memspan::kernel::device {

// The PE's copy of [address, address + bytes), or null when the device does not reach it.
MEMSPAN_KERNEL_FUNCTION void* reach(const void* address, std::size_t bytes, int pe) {
  const memspan_kernel_state& state = primitive::state();
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t offset = place - state.heap_base;
  if (offset >= state.heap_bytes || bytes > state.heap_bytes - offset || is_far(pe)) return nullptr;
  return reinterpret_cast<void*>(
      place + static_cast<std::uintptr_t>(state.distances[pe - state.first_near]));
}

// The same for rows, from the lowest address to the highest.
MEMSPAN_KERNEL_FUNCTION void* reach_rows(const void* address, std::ptrdiff_t pitch,
                                         const backend::ByteRows& shape, int pe) {
  const std::ptrdiff_t last = pitch * static_cast<std::ptrdiff_t>(shape.rows - 1);
  const auto* const first = static_cast<const unsigned char*>(address) + (last < 0 ? last : 0);
  const auto span = static_cast<std::size_t>(last < 0 ? -last : last) + shape.bytes;
  void* const reached = reach(first, span, pe);
  return reached == nullptr ? nullptr
                            : static_cast<unsigned char*>(reached) - (last < 0 ? last : 0);
}

// The threads do not meet after these four.
template <typename Group>
MEMSPAN_KERNEL_FUNCTION void put(const Group& group, void* dest, const void* source,
                                 std::size_t bytes, int pe) {
  if (void* const reached = reach(dest, bytes, pe); reached != nullptr)
    copy(group, reached, source, bytes);
  else if (bytes != 0)
    FarRows<Group>(group, MEMSPAN_KERNEL_ASK_PUT, pe)
        .move(dest, 0, const_cast<void*>(source), 0, bytes, 1);
}
template <typename Group>
MEMSPAN_KERNEL_FUNCTION void get(const Group& group, void* dest, const void* source,
                                 std::size_t bytes, int pe) {
  if (void* const reached = reach(source, bytes, pe); reached != nullptr)
    copy(group, dest, reached, bytes);
  else if (bytes != 0)
    FarRows<Group>(group, MEMSPAN_KERNEL_ASK_GET, pe)
        .move(const_cast<void*>(source), 0, dest, 0, bytes, 1);
}
template <typename Group>
MEMSPAN_KERNEL_OUT_OF_LINE void put_rows(const Group& group, void* dest, const void* source,
                                         const backend::ByteRows& shape, int pe) {
  if (shape.rows == 0 || shape.bytes == 0) return;
  if (void* const reached = reach_rows(dest, shape.dest_pitch, shape, pe); reached != nullptr)
    copy_rows(group, reached, source, shape);
  else
    FarRows<Group>(group, MEMSPAN_KERNEL_ASK_PUT, pe)
        .move(dest, shape.dest_pitch, const_cast<void*>(source), shape.source_pitch, shape.bytes,
              shape.rows);
}
template <typename Group>
MEMSPAN_KERNEL_OUT_OF_LINE void get_rows(const Group& group, void* dest, const void* source,
                                         const backend::ByteRows& shape, int pe) {
  if (shape.rows == 0 || shape.bytes == 0) return;
  if (void* const reached = reach_rows(source, shape.source_pitch, shape, pe); reached != nullptr)
    copy_rows(group, dest, reached, shape);
  else
    FarRows<Group>(group, MEMSPAN_KERNEL_ASK_GET, pe)
        .move(const_cast<void*>(source), shape.source_pitch, dest, shape.dest_pitch, shape.bytes,
              shape.rows);
}

// The value before. `operation` is a constant where this is called.
template <typename Word>
MEMSPAN_KERNEL_FUNCTION Word apply(int operation, Word* word, Word operand, Word compare) {
  switch (operation) {
    case MEMSPAN_KERNEL_FETCH:
      return primitive::load_relaxed(word);
    case MEMSPAN_KERNEL_SET:
    case MEMSPAN_KERNEL_SWAP:
      return primitive::exchange(word, operand);
    case MEMSPAN_KERNEL_COMPARE_SWAP:
      return primitive::compare_exchange(word, compare, operand);
    case MEMSPAN_KERNEL_ADD:
      return primitive::add(word, operand);
    case MEMSPAN_KERNEL_AND:
      return primitive::bit_and(word, operand);
    case MEMSPAN_KERNEL_OR:
      return primitive::bit_or(word, operand);
    default:
      return primitive::bit_xor(word, operand);
  }
}

template <typename Word>
MEMSPAN_KERNEL_FUNCTION Word* reach_word(const void* word, int pe) {
  if (reinterpret_cast<std::uintptr_t>(word) % sizeof(Word) != 0) return nullptr;
  return static_cast<Word*>(reach(word, sizeof(Word), pe));
}

// By the host.
template <typename Word>
MEMSPAN_KERNEL_OUT_OF_LINE Word ask_atomic(int operation, bool is_change, const void* word,
                                           Word operand, Word compare, int pe) {
  memspan_kernel_question question{};
  question.operation = is_change ? MEMSPAN_KERNEL_ASK_CHANGE : MEMSPAN_KERNEL_ASK_FETCH;
  question.is_posted = is_change && is_far(pe) ? 1 : 0;
  question.pe = pe;
  question.atomic_kind = static_cast<std::uint32_t>(operation);
  question.atomic_width = sizeof(Word);
  question.address = reinterpret_cast<std::uintptr_t>(word);
  question.operand = operand;
  question.compare = compare;
  return static_cast<Word>(ask("atomic", primitive::state().requests, question));
}

MEMSPAN_KERNEL_OUT_OF_LINE int ask_about_team(std::uint32_t what, int team, int pe,
                                              int other_team) {
  memspan_kernel_question question{};
  question.operation = what;
  question.team = team;
  question.pe = pe;
  question.other_team = other_team;
  return static_cast<int>(ask("a query of a team", primitive::state().requests, question));
}

// Null: the host is to be asked.
MEMSPAN_KERNEL_FUNCTION const memspan_kernel_team* find_team(int team) {
  const memspan_kernel_state& state = primitive::state();
  if (state.teams == nullptr || team < 0) return nullptr;
  const memspan_kernel_team* const entry =
      &state.teams[team == kWorld ? MEMSPAN_KERNEL_TEAMS : team % MEMSPAN_KERNEL_TEAMS];
  return entry->n_pes != 0 && entry->number == team ? entry : nullptr;
}
MEMSPAN_KERNEL_FUNCTION int member_of(const memspan_kernel_team& team, int pe) {
  if (team.stride == 0) return pe == team.start ? 0 : -1;
  const int distance = pe - team.start;
  const int member = distance / team.stride;
  return distance % team.stride == 0 && member >= 0 && member < team.n_pes ? member : -1;
}

// All threads of the grid; then one of them asks the host to meet the others.
MEMSPAN_KERNEL_OUT_OF_LINE void meet(const char* call, std::uint32_t how, int team) {
  primitive::fence();
  primitive::sync_grid(call);
  if (primitive::block() == 0 && primitive::thread() == 0) {
    primitive::fence();
    memspan_kernel_question question{};
    if (how == MEMSPAN_KERNEL_ASK_BARRIER && primitive::state().has_far_pes != 0) {
      question.operation = MEMSPAN_KERNEL_ASK_QUIET;
      ask(call, primitive::state().requests, question);
    }
    question.operation = how;
    question.team = team;
    ask(call, primitive::state().meetings, question);
  }
  primitive::sync_grid(call);
}

}  // namespace memspan::kernel::device

namespace memspan::kernel::backend {

MEMSPAN_KERNEL_FUNCTION int my_pe() {
  return primitive::state().version == 0 ? -1 : primitive::state().my_pe;
}
MEMSPAN_KERNEL_FUNCTION int n_pes() {
  return primitive::state().version == 0 ? -1 : primitive::state().n_pes;
}
MEMSPAN_KERNEL_FUNCTION int team_my_pe(Team team) {
  const memspan_kernel_team* const found = device::find_team(team);
  return found != nullptr ? found->my_pe
                          : device::ask_about_team(MEMSPAN_KERNEL_ASK_TEAM_MY_PE, team, 0, 0);
}
MEMSPAN_KERNEL_FUNCTION int team_n_pes(Team team) {
  const memspan_kernel_team* const found = device::find_team(team);
  return found != nullptr ? found->n_pes
                          : device::ask_about_team(MEMSPAN_KERNEL_ASK_TEAM_N_PES, team, 0, 0);
}
MEMSPAN_KERNEL_FUNCTION int team_translate_pe(Team from, int pe, Team to) {
  const memspan_kernel_team* const source = device::find_team(from);
  const memspan_kernel_team* const dest = device::find_team(to);
  if (source == nullptr || dest == nullptr)
    return device::ask_about_team(MEMSPAN_KERNEL_ASK_TRANSLATE, from, pe, to);
  if (pe < 0 || pe >= source->n_pes) return -1;
  return device::member_of(*dest, source->start + pe * source->stride);
}
MEMSPAN_KERNEL_FUNCTION unsigned block() {
  return primitive::block();
}
MEMSPAN_KERNEL_FUNCTION unsigned blocks() {
  return primitive::blocks();
}
MEMSPAN_KERNEL_FUNCTION unsigned thread() {
  return primitive::thread();
}
MEMSPAN_KERNEL_FUNCTION unsigned threads() {
  return primitive::threads();
}
template <Scope scope>
MEMSPAN_KERNEL_FUNCTION bool is_leader() {
  return primitive::Group<scope>().index() == 0;
}
MEMSPAN_KERNEL_FUNCTION void* ptr(const void* address, int pe) {
  return device::reach(address, 1, pe);
}

template <Scope scope>
MEMSPAN_KERNEL_FUNCTION void put_nbi(void* dest, const void* source, std::size_t bytes, int pe) {
  device::put(primitive::Group<scope>(), dest, source, bytes, pe);
}
template <Scope scope>
MEMSPAN_KERNEL_FUNCTION void put(void* dest, const void* source, std::size_t bytes, int pe) {
  put_nbi<scope>(dest, source, bytes, pe);
  primitive::Group<scope>().sync();
}
template <Scope scope>
MEMSPAN_KERNEL_FUNCTION void get(void* dest, const void* source, std::size_t bytes, int pe) {
  device::get(primitive::Group<scope>(), dest, source, bytes, pe);
  primitive::Group<scope>().sync();
}
template <Scope scope>
MEMSPAN_KERNEL_FUNCTION void put_rows(void* dest, const void* source, const ByteRows& shape,
                                      int pe) {
  device::put_rows(primitive::Group<scope>(), dest, source, shape, pe);
  primitive::Group<scope>().sync();
}
template <Scope scope>
MEMSPAN_KERNEL_FUNCTION void get_rows(void* dest, const void* source, const ByteRows& shape,
                                      int pe) {
  device::get_rows(primitive::Group<scope>(), dest, source, shape, pe);
  primitive::Group<scope>().sync();
}

// One store or load that never tears, where the device reaches the word.
template <typename Word>
MEMSPAN_KERNEL_FUNCTION void put_word(void* dest, Word value, int pe) {
  if (auto* const reached = device::reach_word<Word>(dest, pe); reached != nullptr)
    primitive::store_relaxed(reached, value);
  else
    put<Scope::kThread>(dest, &value, sizeof value, pe);
}
template <typename Word>
MEMSPAN_KERNEL_FUNCTION void get_word(Word* value, const void* source, int pe) {
  if (auto* const reached = device::reach_word<Word>(source, pe); reached != nullptr)
    *value = primitive::load_relaxed(reached);
  else
    get<Scope::kThread>(value, source, sizeof *value, pe);
}

template <typename Word>
MEMSPAN_KERNEL_FUNCTION Word fetch_atomic(int operation, const void* word, Word operand,
                                          Word compare, int pe) {
  auto* const reached = device::reach_word<Word>(word, pe);
  if (reached == nullptr || primitive::state().has_native_atomics == 0)
    return device::ask_atomic(operation, false, word, operand, compare, pe);
  return device::apply(operation, reached, operand, compare);
}
template <typename Word>
MEMSPAN_KERNEL_FUNCTION void change_atomic(int operation, void* word, Word operand, int pe) {
  auto* const reached = device::reach_word<Word>(word, pe);
  if (reached != nullptr && operation == MEMSPAN_KERNEL_SET)
    primitive::store_relaxed(reached, operand);
  else if (reached == nullptr || primitive::state().has_native_atomics == 0)
    device::ask_atomic(operation, true, word, operand, Word{0}, pe);
  else
    device::apply(operation, reached, operand, Word{0});
}

MEMSPAN_KERNEL_FUNCTION void fence() {
  primitive::fence();
  if (primitive::state().has_far_pes == 0) return;
  memspan_kernel_question question{};
  question.operation = MEMSPAN_KERNEL_ASK_FENCE;
  question.is_posted = 1;
  device::ask("fence", primitive::state().requests, question);
}
// For what goes to this PE.
MEMSPAN_KERNEL_FUNCTION void fence_to(int pe) {
  if (device::is_far(pe))
    fence();
  else
    primitive::fence();
}
MEMSPAN_KERNEL_FUNCTION void quiet() {
  primitive::fence();
  if (primitive::state().has_far_pes == 0) return;
  memspan_kernel_question question{};
  question.operation = MEMSPAN_KERNEL_ASK_QUIET;
  device::ask("quiet", primitive::state().requests, question);
}

// A word of this PE as it is now.
template <typename T>
MEMSPAN_KERNEL_FUNCTION T load(const T* word) {
  return primitive::load_acquire(word);
}
template <typename Ready>
MEMSPAN_KERNEL_FUNCTION void wait(const char* call, Ready ready) {
  device::wait_until(call, MEMSPAN_KERNEL_PEER_DIED, ready);
}

MEMSPAN_KERNEL_FUNCTION void sync_block() {
  primitive::sync_block();
}
MEMSPAN_KERNEL_FUNCTION void sync_grid() {
  primitive::sync_grid("sync_grid");
}
MEMSPAN_KERNEL_FUNCTION void sync(Team team) {
  device::meet("sync", MEMSPAN_KERNEL_ASK_SYNC, team);
}
MEMSPAN_KERNEL_FUNCTION void barrier(Team team) {
  device::meet("barrier", MEMSPAN_KERNEL_ASK_BARRIER, team);
}

}  // namespace memspan::kernel::backend

#endif  // MEMSPAN_KERNEL_DEVICE_H
