// SPDX-License-Identifier: Apache-2.0
// The back end of <memspan/kernel.h> for kernels on a device, over the state that the library has
// given it (<memspan/kernel_state.h>). Programs include <memspan/kernel.h>. C++17.
//
// PEs whose memory the device reaches are loads, stores and atomics at a distance from this PE's
// own memory. Everything else the host does, asked through a ring: PEs on other hosts, addresses
// that the device does not reach, mistakes (which the host names), barriers.
//
// It uses namespace memspan::kernel::primitive, of <memspan/kernel_cuda.h> on CUDA:
//
//   MEMSPAN_KERNEL_FUNCTION             the attributes of an inline function
//   MEMSPAN_KERNEL_OUT_OF_LINE          those of one that is not inline: it is long or waits
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
#include "kernel_reach.h"
#include "kernel_state.h"
#include "kernel_types.h"

#define MEMSPAN_KERNEL_BACKEND on_device

namespace memspan::kernel::backend {
inline namespace on_device {

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

// One store or load that never tears, for a word that the device reaches.
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
  if (reached == nullptr || !device::has_native_atomics(word))
    return device::ask_atomic(operation, false, word, operand, compare, pe);
  return device::apply(operation, reached, operand, compare);
}
template <typename Word>
MEMSPAN_KERNEL_FUNCTION void change_atomic(int operation, void* word, Word operand, int pe) {
  auto* const reached = device::reach_word<Word>(word, pe);
  if (reached != nullptr && operation == MEMSPAN_KERNEL_SET)
    primitive::store_relaxed(reached, operand);
  else if (reached == nullptr || !device::has_native_atomics(word))
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

}  // namespace on_device
}  // namespace memspan::kernel::backend

#endif  // MEMSPAN_KERNEL_DEVICE_H
