// SPDX-License-Identifier: Apache-2.0
// What a kernel may call: memory of other PEs, signals, waits, atomics, order and barriers. The
// same source runs as blocks on threads of the CPU and, compiled by nvcc, as a CUDA kernel
// (<memspan/launch.h>). C++17; link with -lshmem. memspan's own; DESIGN M12.
//
// Addresses are symmetric: an object of the symmetric heap (or, on the CPU, a static variable), on
// the side that the comment names. PEs are numbers of the world, counts are of elements, sizes of
// bytes. All functions are thread-safe. A mistake in an argument, or the death of a peer that is
// needed, ends the process with a line that says what happened; a CUDA kernel that waits then
// fails.
//
// Operations may be outstanding until quiet(), which completes all operations of this PE, of every
// block and transport. On the CPU every Scope is the calling thread.
#ifndef MEMSPAN_KERNEL_H
#define MEMSPAN_KERNEL_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernel_calls.h"
#include "kernel_types.h"

// A back end is functions of namespace memspan::kernel::backend: calls of the library on the CPU;
// on a device, code in line over primitives, CUDA's or those of the header that this macro names.
#if defined MEMSPAN_KERNEL_PRIMITIVES
#include MEMSPAN_KERNEL_PRIMITIVES
#include "kernel_device.h"
#elif defined __CUDACC__
#include "kernel_cuda.h"
#include "kernel_device.h"
#else
#include "kernel_host.h"
#endif

// A program may have sources for the CPU and for CUDA: their functions have different names.
namespace memspan::kernel {
inline namespace MEMSPAN_KERNEL_BACKEND {

namespace detail {

template <typename T>
using Word = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

template <typename To, typename From>
MEMSPAN_KERNEL_FUNCTION To bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

template <typename T>
inline constexpr bool is_word = sizeof(T) == 4 || sizeof(T) == 8;

template <typename T>
MEMSPAN_KERNEL_FUNCTION backend::ByteRows in_bytes(const Rows& shape) {
  constexpr auto kBytes = static_cast<std::ptrdiff_t>(sizeof(T));
  return {shape.rows, shape.length * sizeof(T), shape.source_pitch * kBytes,
          shape.dest_pitch * kBytes};
}

// A word of this PE as it is now.
template <typename T>
MEMSPAN_KERNEL_FUNCTION T load(const T* word) {
  static_assert(std::is_integral_v<T> || std::is_floating_point_v<T>);
  return backend::load(word);
}

template <typename T>
MEMSPAN_KERNEL_FUNCTION bool holds(T value, Compare compare, T with) {
  switch (compare) {
    case Compare::kEqual:
      return value == with;
    case Compare::kNotEqual:
      return value != with;
    case Compare::kGreater:
      return value > with;
    case Compare::kGreaterEqual:
      return value >= with;
    case Compare::kLess:
      return value < with;
    case Compare::kLessEqual:
      return value <= with;
  }
  return false;
}

// The value before.
template <typename T>
MEMSPAN_KERNEL_FUNCTION T fetch(int operation, const T* word, T operand, T compare, int pe) {
  static_assert(is_word<T>, "atomics with a result are on words of 4 and 8 bytes");
  return bits<T>(
      backend::fetch_atomic(operation, word, bits<Word<T>>(operand), bits<Word<T>>(compare), pe));
}
template <typename T>
MEMSPAN_KERNEL_FUNCTION void change(int operation, T* word, T operand, int pe) {
  static_assert(is_word<T>);
  backend::change_atomic(operation, word, bits<Word<T>>(operand), pe);
}

}  // namespace detail

// Numbers of PEs, blocks and threads.
MEMSPAN_KERNEL_FUNCTION int my_pe() {
  return backend::my_pe();
}
MEMSPAN_KERNEL_FUNCTION int n_pes() {
  return backend::n_pes();
}
MEMSPAN_KERNEL_FUNCTION int team_my_pe(Team team) {
  return backend::team_my_pe(team);
}
MEMSPAN_KERNEL_FUNCTION int team_n_pes(Team team) {
  return backend::team_n_pes(team);
}
MEMSPAN_KERNEL_FUNCTION int team_translate_pe(Team from, int pe, Team to) {
  return backend::team_translate_pe(from, pe, to);
}
MEMSPAN_KERNEL_FUNCTION unsigned block() {
  return backend::block();
}
MEMSPAN_KERNEL_FUNCTION unsigned blocks() {
  return backend::blocks();
}
// The thread's number in this block; on the CPU a block has one thread.
MEMSPAN_KERNEL_FUNCTION unsigned thread() {
  return backend::thread();
}
MEMSPAN_KERNEL_FUNCTION unsigned threads() {
  return backend::threads();
}

// The address at which loads and stores reach the PE's copy, or null.
template <typename T>
MEMSPAN_KERNEL_FUNCTION T* ptr(T* address, int pe) {
  return static_cast<T*>(backend::ptr(address, pe));
}

// One element.
template <typename T>
MEMSPAN_KERNEL_FUNCTION void p(T* dest, std::common_type_t<T> value, int pe) {
  if constexpr (detail::is_word<T>)
    backend::put_word(dest, detail::bits<detail::Word<T>>(value), pe);
  else
    backend::put<Scope::kThread>(dest, &value, sizeof value, pe);
}
template <typename T>
MEMSPAN_KERNEL_FUNCTION T g(const T* source, int pe) {
  if constexpr (detail::is_word<T>) {
    detail::Word<T> value;
    backend::get_word(&value, source, pe);
    return detail::bits<T>(value);
  } else {
    T value;
    backend::get<Scope::kThread>(&value, source, sizeof value, pe);
    return value;
  }
}

// Elements in a row. Without _nbi: At return `source` may be changed (put) or the data have arrived
// (get), for all threads of the scope.
template <Scope scope = Scope::kThread, typename T>
MEMSPAN_KERNEL_FUNCTION void put(T* dest, const T* source, std::size_t count, int pe) {
  backend::put<scope>(dest, source, count * sizeof(T), pe);
}
template <Scope scope = Scope::kThread, typename T>
MEMSPAN_KERNEL_FUNCTION void put_nbi(T* dest, const T* source, std::size_t count, int pe) {
  backend::put_nbi<scope>(dest, source, count * sizeof(T), pe);
}
template <Scope scope = Scope::kThread, typename T>
MEMSPAN_KERNEL_FUNCTION void get(T* dest, const T* source, std::size_t count, int pe) {
  backend::get<scope>(dest, source, count * sizeof(T), pe);
}
template <Scope scope = Scope::kThread, typename T>
MEMSPAN_KERNEL_FUNCTION void get_nbi(T* dest, const T* source, std::size_t count, int pe) {
  backend::get<scope>(dest, source, count * sizeof(T), pe);
}
template <Scope scope = Scope::kThread>
MEMSPAN_KERNEL_FUNCTION void putmem(void* dest, const void* source, std::size_t bytes, int pe) {
  backend::put<scope>(dest, source, bytes, pe);
}
template <Scope scope = Scope::kThread>
MEMSPAN_KERNEL_FUNCTION void putmem_nbi(void* dest, const void* source, std::size_t bytes, int pe) {
  backend::put_nbi<scope>(dest, source, bytes, pe);
}
template <Scope scope = Scope::kThread>
MEMSPAN_KERNEL_FUNCTION void getmem(void* dest, const void* source, std::size_t bytes, int pe) {
  backend::get<scope>(dest, source, bytes, pe);
}
template <Scope scope = Scope::kThread>
MEMSPAN_KERNEL_FUNCTION void getmem_nbi(void* dest, const void* source, std::size_t bytes, int pe) {
  backend::get<scope>(dest, source, bytes, pe);
}

// `rows` rows of `length` elements, whose beginnings are so many elements apart.
template <Scope scope = Scope::kThread, typename T>
MEMSPAN_KERNEL_FUNCTION void put_2d(T* dest, const T* source, const Rows& shape, int pe) {
  backend::put_rows<scope>(dest, source, detail::in_bytes<T>(shape), pe);
}
template <Scope scope = Scope::kThread, typename T>
MEMSPAN_KERNEL_FUNCTION void get_2d(T* dest, const T* source, const Rows& shape, int pe) {
  backend::get_rows<scope>(dest, source, detail::in_bytes<T>(shape), pe);
}
// `count` elements; strides in elements.
template <Scope scope = Scope::kThread, typename T>
MEMSPAN_KERNEL_FUNCTION void iput(T* dest, const T* source, std::ptrdiff_t dest_stride,
                                  std::ptrdiff_t source_stride, std::size_t count, int pe) {
  put_2d<scope>(dest, source, Rows{count, 1, source_stride, dest_stride}, pe);
}
template <Scope scope = Scope::kThread, typename T>
MEMSPAN_KERNEL_FUNCTION void iget(T* dest, const T* source, std::ptrdiff_t dest_stride,
                                  std::ptrdiff_t source_stride, std::size_t count, int pe) {
  get_2d<scope>(dest, source, Rows{count, 1, source_stride, dest_stride}, pe);
}

// Order.
MEMSPAN_KERNEL_FUNCTION void fence() {
  backend::fence();
}
MEMSPAN_KERNEL_FUNCTION void quiet() {
  backend::quiet();
}

// Signals: words of 4 or 8 bytes. A PE that sees put_signal's signal sees its data.
template <typename S>
MEMSPAN_KERNEL_FUNCTION void signal_op(S* signal, std::common_type_t<S> value, SignalOp op,
                                       int pe) {
  static_assert(std::is_integral_v<S>);
  detail::change<S>(op == SignalOp::kSet ? MEMSPAN_KERNEL_SET : MEMSPAN_KERNEL_ADD, signal, value,
                    pe);
}
template <Scope scope = Scope::kThread, typename T, typename S>
MEMSPAN_KERNEL_FUNCTION void put_signal(T* dest, const T* source, std::size_t count, S* signal,
                                        std::common_type_t<S> value, SignalOp op, int pe) {
  put<scope>(dest, source, count, pe);
  if (!backend::is_leader<scope>()) return;
  backend::fence_to(pe);
  signal_op(signal, value, op, pe);
}
template <Scope scope = Scope::kThread, typename T, typename S>
MEMSPAN_KERNEL_FUNCTION void put_signal_nbi(T* dest, const T* source, std::size_t count, S* signal,
                                            std::common_type_t<S> value, SignalOp op, int pe) {
  put_signal<scope>(dest, source, count, signal, value, op, pe);
}

// Waits for words of this PE, and looks at them, by the calling thread. T: a number of 1 to 8
// bytes.
template <typename T>
MEMSPAN_KERNEL_FUNCTION void wait_until(const T* word, Compare compare,
                                        std::common_type_t<T> with) {
  backend::wait("wait_until", [=] { return detail::holds<T>(detail::load(word), compare, with); });
}
template <typename T>
MEMSPAN_KERNEL_FUNCTION bool test(const T* word, Compare compare, std::common_type_t<T> with) {
  return detail::holds<T>(detail::load(word), compare, with);
}
// The value that ended the wait.
template <typename S>
MEMSPAN_KERNEL_FUNCTION S signal_wait_until(const S* signal, Compare compare,
                                            std::common_type_t<S> with) {
  S seen{};
  backend::wait("signal_wait_until", [&] {
    seen = detail::load(signal);
    return detail::holds<S>(seen, compare, with);
  });
  return seen;
}

// Waits for the words, of `count`, whose status is 0; `status` may be null: all. `with` is a value,
// or the address of `count` values.
namespace detail {
template <typename T>
MEMSPAN_KERNEL_FUNCTION T nth(T value, std::size_t) {
  return value;
}
template <typename T>
MEMSPAN_KERNEL_FUNCTION T nth(const T* values, std::size_t i) {
  return values[i];
}
template <typename T, typename With>
struct Words {
  const T* words;
  std::size_t count;
  const int* status;
  Compare compare;
  With with;
  MEMSPAN_KERNEL_FUNCTION bool counts(std::size_t i) const {
    return status == nullptr || status[i] == 0;
  }
  MEMSPAN_KERNEL_FUNCTION bool holds_at(std::size_t i) const {
    return detail::holds<T>(load(words + i), compare, nth<T>(with, i));
  }
  MEMSPAN_KERNEL_FUNCTION bool all() const {
    for (std::size_t i = 0; i < count; ++i)
      if (counts(i) && !holds_at(i)) return false;
    return true;
  }
  MEMSPAN_KERNEL_FUNCTION bool is_empty() const {
    for (std::size_t i = 0; i < count; ++i)
      if (counts(i)) return false;
    return true;
  }
  MEMSPAN_KERNEL_FUNCTION std::size_t any() const {
    for (std::size_t i = 0; i < count; ++i)
      if (counts(i) && holds_at(i)) return i;
    return kNone;
  }
  MEMSPAN_KERNEL_FUNCTION std::size_t some(std::size_t* indices) const {
    std::size_t found = 0;
    for (std::size_t i = 0; i < count; ++i)
      if (counts(i) && holds_at(i)) indices[found++] = i;
    return found;
  }
};
}  // namespace detail

template <typename T, typename With>
MEMSPAN_KERNEL_FUNCTION bool test_all(const T* words, std::size_t count, const int* status,
                                      Compare compare, With with) {
  return detail::Words<T, With>{words, count, status, compare, with}.all();
}
// The first that holds, or kNone.
template <typename T, typename With>
MEMSPAN_KERNEL_FUNCTION std::size_t test_any(const T* words, std::size_t count, const int* status,
                                             Compare compare, With with) {
  return detail::Words<T, With>{words, count, status, compare, with}.any();
}
// How many hold; their numbers in `indices`, which has room for `count`.
template <typename T, typename With>
MEMSPAN_KERNEL_FUNCTION std::size_t test_some(const T* words, std::size_t count,
                                              std::size_t* indices, const int* status,
                                              Compare compare, With with) {
  return detail::Words<T, With>{words, count, status, compare, with}.some(indices);
}
template <typename T, typename With>
MEMSPAN_KERNEL_FUNCTION void wait_until_all(const T* words, std::size_t count, const int* status,
                                            Compare compare, With with) {
  const detail::Words<T, With> set{words, count, status, compare, with};
  backend::wait("wait_until_all", [&] { return set.all(); });
}
// kNone when no word counts.
template <typename T, typename With>
MEMSPAN_KERNEL_FUNCTION std::size_t wait_until_any(const T* words, std::size_t count,
                                                   const int* status, Compare compare, With with) {
  const detail::Words<T, With> set{words, count, status, compare, with};
  std::size_t found = kNone;
  if (!set.is_empty())
    backend::wait("wait_until_any", [&] { return (found = set.any()) != kNone; });
  return found;
}
template <typename T, typename With>
MEMSPAN_KERNEL_FUNCTION std::size_t wait_until_some(const T* words, std::size_t count,
                                                    std::size_t* indices, const int* status,
                                                    Compare compare, With with) {
  const detail::Words<T, With> set{words, count, status, compare, with};
  std::size_t found = 0;
  if (!set.is_empty())
    backend::wait("wait_until_some", [&] { return (found = set.some(indices)) != 0; });
  return found;
}

// Atomics. Words of 4 and 8 bytes; add() also of smaller types and of floating-point ones (any type
// with an addition that is copied by its bytes).
template <typename T>
MEMSPAN_KERNEL_FUNCTION T atomic_fetch(const T* word, int pe) {
  return detail::fetch<T>(MEMSPAN_KERNEL_FETCH, word, T{}, T{}, pe);
}
template <typename T>
MEMSPAN_KERNEL_FUNCTION void atomic_set(T* word, std::common_type_t<T> value, int pe) {
  detail::change<T>(MEMSPAN_KERNEL_SET, word, value, pe);
}
template <typename T>
MEMSPAN_KERNEL_FUNCTION T atomic_swap(T* word, std::common_type_t<T> value, int pe) {
  return detail::fetch<T>(MEMSPAN_KERNEL_SWAP, word, value, T{}, pe);
}
template <typename T>
MEMSPAN_KERNEL_FUNCTION T atomic_compare_swap(T* word, std::common_type_t<T> expected,
                                              std::common_type_t<T> value, int pe) {
  return detail::fetch<T>(MEMSPAN_KERNEL_COMPARE_SWAP, word, value, expected, pe);
}
template <typename T>
MEMSPAN_KERNEL_FUNCTION T atomic_fetch_add(T* word, std::common_type_t<T> value, int pe) {
  static_assert(std::is_integral_v<T>);
  return detail::fetch<T>(MEMSPAN_KERNEL_ADD, word, value, T{}, pe);
}
template <typename T>
MEMSPAN_KERNEL_FUNCTION T atomic_fetch_and(T* word, std::common_type_t<T> value, int pe) {
  return detail::fetch<T>(MEMSPAN_KERNEL_AND, word, value, T{}, pe);
}
template <typename T>
MEMSPAN_KERNEL_FUNCTION T atomic_fetch_or(T* word, std::common_type_t<T> value, int pe) {
  return detail::fetch<T>(MEMSPAN_KERNEL_OR, word, value, T{}, pe);
}
template <typename T>
MEMSPAN_KERNEL_FUNCTION T atomic_fetch_xor(T* word, std::common_type_t<T> value, int pe) {
  return detail::fetch<T>(MEMSPAN_KERNEL_XOR, word, value, T{}, pe);
}
template <typename T>
MEMSPAN_KERNEL_FUNCTION void atomic_and(T* word, std::common_type_t<T> value, int pe) {
  detail::change<T>(MEMSPAN_KERNEL_AND, word, value, pe);
}
template <typename T>
MEMSPAN_KERNEL_FUNCTION void atomic_or(T* word, std::common_type_t<T> value, int pe) {
  detail::change<T>(MEMSPAN_KERNEL_OR, word, value, pe);
}
template <typename T>
MEMSPAN_KERNEL_FUNCTION void atomic_xor(T* word, std::common_type_t<T> value, int pe) {
  detail::change<T>(MEMSPAN_KERNEL_XOR, word, value, pe);
}
template <typename T>
MEMSPAN_KERNEL_FUNCTION void atomic_add(T* word, std::common_type_t<T> value, int pe) {
  if constexpr (std::is_integral_v<T> && detail::is_word<T>) {
    detail::change<T>(MEMSPAN_KERNEL_ADD, word, value, pe);
  } else {
    // The aligned word of 4 or 8 bytes that it is in.
    using Whole = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
    const auto address = reinterpret_cast<std::uintptr_t>(word);
    const std::uintptr_t inside = address % sizeof(Whole);
    auto* whole = reinterpret_cast<Whole*>(address - inside);
    Whole before = atomic_fetch(whole, pe);
    while (true) {
      T sum;
      memcpy(&sum, reinterpret_cast<const char*>(&before) + inside, sizeof sum);
      sum = static_cast<T>(sum + value);
      Whole after = before;
      memcpy(reinterpret_cast<char*>(&after) + inside, &sum, sizeof sum);
      const Whole seen = atomic_compare_swap(whole, before, after, pe);
      if (seen == before) return;
      before = seen;
    }
  }
}
template <typename T>
MEMSPAN_KERNEL_FUNCTION void atomic_inc(T* word, int pe) {
  atomic_add<T>(word, T{1}, pe);
}
template <typename T>
MEMSPAN_KERNEL_FUNCTION T atomic_fetch_inc(T* word, int pe) {
  return atomic_fetch_add<T>(word, T{1}, pe);
}

// All threads of this block meet.
MEMSPAN_KERNEL_FUNCTION void sync_block() {
  backend::sync_block();
}
// All blocks of this PE's grid meet, each with all its threads; on CUDA they must all be resident
// (<memspan/launch.h>).
MEMSPAN_KERNEL_FUNCTION void sync_grid() {
  backend::sync_grid();
}
// All blocks of the grids of the team's members meet; a barrier completes what they put before.
MEMSPAN_KERNEL_FUNCTION void sync(Team team) {
  backend::sync(team);
}
MEMSPAN_KERNEL_FUNCTION void sync_all() {
  backend::sync(kWorld);
}
MEMSPAN_KERNEL_FUNCTION void barrier(Team team) {
  backend::barrier(team);
}
MEMSPAN_KERNEL_FUNCTION void barrier_all() {
  backend::barrier(kWorld);
}

}  // namespace MEMSPAN_KERNEL_BACKEND
}  // namespace memspan::kernel

#endif  // MEMSPAN_KERNEL_H
