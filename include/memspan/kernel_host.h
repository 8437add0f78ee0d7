// SPDX-License-Identifier: Apache-2.0
// The back end of <memspan/kernel.h> for the host device: a block is one thread of the processor,
// and all is done by calls of the library. Programs include <memspan/kernel.h>. C++17.
#ifndef MEMSPAN_KERNEL_HOST_H
#define MEMSPAN_KERNEL_HOST_H

#include <cstddef>
#include <cstdint>

#include "kernel_calls.h"
#include "kernel_types.h"

#define MEMSPAN_KERNEL_FUNCTION inline
#define MEMSPAN_KERNEL_BACKEND on_host

namespace memspan::kernel::backend {
inline namespace on_host {

inline int my_pe() {
  return memspan_kernel_my_pe();
}
inline int n_pes() {
  return memspan_kernel_n_pes();
}
inline int team_my_pe(Team team) {
  return memspan_kernel_team_my_pe(team);
}
inline int team_n_pes(Team team) {
  return memspan_kernel_team_n_pes(team);
}
inline int team_translate_pe(Team from, int pe, Team to) {
  return memspan_kernel_team_translate_pe(from, pe, to);
}
inline unsigned block() {
  return memspan_kernel_block();
}
inline unsigned blocks() {
  return memspan_kernel_blocks();
}
inline unsigned thread() {
  return 0;
}
inline unsigned threads() {
  return 1;
}
// The one thread of the scope that does what is done once.
template <Scope scope>
inline bool is_leader() {
  return true;
}
inline void* ptr(const void* address, int pe) {
  return memspan_kernel_ptr(address, pe);
}

template <Scope scope>
inline void put(void* dest, const void* source, std::size_t bytes, int pe) {
  memspan_kernel_put(dest, source, bytes, pe);
}
template <Scope scope>
inline void put_nbi(void* dest, const void* source, std::size_t bytes, int pe) {
  memspan_kernel_put(dest, source, bytes, pe);
}
template <Scope scope>
inline void get(void* dest, const void* source, std::size_t bytes, int pe) {
  memspan_kernel_get(dest, source, bytes, pe);
}
template <Scope scope>
inline void put_rows(void* dest, const void* source, const ByteRows& shape, int pe) {
  memspan_kernel_put_rows(dest, source, shape.dest_pitch, shape.source_pitch, shape.bytes,
                          shape.rows, pe);
}
template <Scope scope>
inline void get_rows(void* dest, const void* source, const ByteRows& shape, int pe) {
  memspan_kernel_get_rows(dest, source, shape.dest_pitch, shape.source_pitch, shape.bytes,
                          shape.rows, pe);
}

inline void put_word(void* dest, std::uint64_t value, int pe) {
  memspan_kernel_put_word8(dest, value, pe);
}
inline void put_word(void* dest, std::uint32_t value, int pe) {
  memspan_kernel_put_word4(dest, value, pe);
}
inline void get_word(std::uint64_t* value, const void* source, int pe) {
  *value = memspan_kernel_get_word8(source, pe);
}
inline void get_word(std::uint32_t* value, const void* source, int pe) {
  *value = memspan_kernel_get_word4(source, pe);
}

template <typename Word>
inline Word fetch_atomic(int operation, const void* word, Word operand, Word compare, int pe) {
  return static_cast<Word>(
      memspan_kernel_fetch_atomic(operation, sizeof(Word), word, operand, compare, pe));
}
template <typename Word>
inline void change_atomic(int operation, void* word, Word operand, int pe) {
  memspan_kernel_change_atomic(operation, sizeof(Word), word, operand, pe);
}

inline void fence() {
  memspan_kernel_fence();
}
// For what goes to this PE.
inline void fence_to(int) {
  memspan_kernel_fence();
}
inline void quiet() {
  memspan_kernel_quiet();
}

// A word of this PE as it is now.
template <typename T>
inline T load(const T* word) {
  T value;
  __atomic_load(word, &value, __ATOMIC_ACQUIRE);
  return value;
}
template <typename Ready>
inline void wait(const char* call, Ready ready) {
  if (ready()) return;
  memspan_kernel_wait([](void* it) { return (*static_cast<Ready*>(it))() ? 1 : 0; }, &ready, call);
}

inline void sync_block() {}
inline void sync_grid() {
  memspan_kernel_sync(MEMSPAN_KERNEL_GRID);
}
inline void sync(Team team) {
  memspan_kernel_sync(team);
}
inline void barrier(Team team) {
  memspan_kernel_barrier(team);
}

}  // namespace on_host
}  // namespace memspan::kernel::backend

#endif  // MEMSPAN_KERNEL_HOST_H
