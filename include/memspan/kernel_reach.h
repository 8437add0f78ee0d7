// SPDX-License-Identifier: Apache-2.0
// What kernels on a device do to memory of PEs that they reach, and how the host does it for
// others. Programs include <memspan/kernel.h>. C++17.
#ifndef MEMSPAN_KERNEL_REACH_H
#define MEMSPAN_KERNEL_REACH_H

#include <cstddef>
#include <cstdint>

#include "kernel_calls.h"
#include "kernel_copy.h"
#include "kernel_ring.h"
#include "kernel_state.h"
#include "kernel_types.h"

namespace memspan::kernel::device {

// Whether [address, address + bytes) is in the symmetric heap in memory of the device.
MEMSPAN_KERNEL_FUNCTION bool is_on_device(const void* address, std::size_t bytes) {
  const memspan_kernel_state& state = primitive::state();
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(address) - state.device_heap_base;
  return offset < state.device_heap_bytes && bytes <= state.device_heap_bytes - offset;
}

// At a distance that the state gives, or null if it has none.
MEMSPAN_KERNEL_FUNCTION void* at_distance(const void* address, const std::int64_t* distances,
                                          int pe) {
  if (is_far(pe)) return nullptr;
  const std::int64_t distance = distances[pe - primitive::state().first_near];
  return distance == MEMSPAN_KERNEL_FAR
             ? nullptr
             : reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(address) +
                                       static_cast<std::uintptr_t>(distance));
}

// The PE's copy of [address, address + bytes), or null when the device does not reach it.
MEMSPAN_KERNEL_FUNCTION void* reach(const void* address, std::size_t bytes, int pe) {
  const memspan_kernel_state& state = primitive::state();
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t offset = place - state.heap_base;
  if (offset < state.heap_bytes && bytes <= state.heap_bytes - offset)
    return at_distance(address, state.distances, pe);
  return is_on_device(address, bytes) ? at_distance(address, state.device_distances, pe) : nullptr;
}

// Whether the device's atomics on a word that it reaches are atomic for all.
MEMSPAN_KERNEL_FUNCTION bool has_native_atomics(const void* word) {
  return primitive::state().has_native_atomics != 0 || is_on_device(word, 1);
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
    question.operation = how;
    question.team = team;
    ask(call, primitive::state().meetings, question);
  }
  primitive::sync_grid(call);
}

}  // namespace memspan::kernel::device

#endif  // MEMSPAN_KERNEL_REACH_H
