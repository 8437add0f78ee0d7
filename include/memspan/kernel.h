// SPDX-License-Identifier: Apache-2.0
// What a kernel may call: memory of other PEs, signals, waits, atomics, order and barriers. The
// same source runs as blocks on threads of the CPU (<memspan/launch.h>); CUDA is not supported yet.
// C++17; link with -lshmem. memspan's own; DESIGN M12.
//
// Addresses are symmetric: an object of the symmetric heap or a static variable, on the side that
// says so. PEs are numbers of the world, counts are of elements, sizes of bytes. All functions
// are thread-safe. A mistake in an argument, or the death of a peer that is needed, ends the
// process with a line that says what happened.
//
// What is issued may be outstanding until quiet(), which completes all that this PE issued, whoever
// did it and whichever way it went. On the CPU every Scope is the calling thread.
#ifndef MEMSPAN_KERNEL_H
#define MEMSPAN_KERNEL_H

#if defined __CUDACC__
#error "<memspan/kernel.h> is for kernels of the host device; CUDA is not supported yet"
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernel_calls.h"

namespace memspan::kernel {

// Who takes part in one call: all threads of it give the same arguments.
enum class Scope { kThread, kWarp, kBlock };

enum class Compare : int { kEqual, kNotEqual, kGreater, kGreaterEqual, kLess, kLessEqual };
enum class SignalOp : int { kSet = 0, kAdd = 1 };

// A number of <aclshmem.h>.
using Team = int;
inline constexpr Team kWorld = 0;

namespace detail {

template <typename T>
using Word = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

template <typename To, typename From>
inline To bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

template <typename T>
inline constexpr bool is_word = sizeof(T) == 4 || sizeof(T) == 8;

// A word of this PE as it is now.
template <typename T>
inline T load(const T* word) {
  static_assert(std::is_integral_v<T> || std::is_floating_point_v<T>);
  T value;
  __atomic_load(word, &value, __ATOMIC_ACQUIRE);
  return value;
}

template <typename T>
inline bool holds(T value, Compare compare, T with) {
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

template <typename Ready>
inline void wait(const char* call, Ready ready) {
  if (ready()) return;
  memspan_kernel_wait([](void* it) { return (*static_cast<Ready*>(it))() ? 1 : 0; }, &ready, call);
}

// The value before.
template <typename T>
inline T fetch(int operation, const T* word, T operand, T compare, int pe) {
  static_assert(is_word<T>, "atomics with a result are on words of 4 and 8 bytes");
  return bits<T>(static_cast<Word<T>>(memspan_kernel_fetch_atomic(
      operation, sizeof(T), word, bits<Word<T>>(operand), bits<Word<T>>(compare), pe)));
}
template <typename T>
inline void change(int operation, T* word, T operand, int pe) {
  static_assert(is_word<T>);
  memspan_kernel_change_atomic(operation, sizeof(T), word, bits<Word<T>>(operand), pe);
}

}  // namespace detail

// Who is who.
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

// Where loads and stores reach the PE's copy, or null.
template <typename T>
inline T* ptr(T* address, int pe) {
  return static_cast<T*>(memspan_kernel_ptr(address, pe));
}

// One element.
template <typename T>
inline void p(T* dest, std::common_type_t<T> value, int pe) {
  if constexpr (sizeof(T) == 8)
    memspan_kernel_put_word8(dest, detail::bits<std::uint64_t>(value), pe);
  else if constexpr (sizeof(T) == 4)
    memspan_kernel_put_word4(dest, detail::bits<std::uint32_t>(value), pe);
  else
    memspan_kernel_put(dest, &value, sizeof value, pe);
}
template <typename T>
inline T g(const T* source, int pe) {
  if constexpr (sizeof(T) == 8) {
    return detail::bits<T>(memspan_kernel_get_word8(source, pe));
  } else if constexpr (sizeof(T) == 4) {
    return detail::bits<T>(memspan_kernel_get_word4(source, pe));
  } else {
    T value;
    memspan_kernel_get(&value, source, sizeof value, pe);
    return value;
  }
}

// Elements in a row. Without _nbi: `source` may be changed at return, or the data are here.
template <Scope scope = Scope::kThread, typename T>
inline void put(T* dest, const T* source, std::size_t count, int pe) {
  memspan_kernel_put(dest, source, count * sizeof(T), pe);
}
template <Scope scope = Scope::kThread, typename T>
inline void put_nbi(T* dest, const T* source, std::size_t count, int pe) {
  memspan_kernel_put(dest, source, count * sizeof(T), pe);
}
template <Scope scope = Scope::kThread, typename T>
inline void get(T* dest, const T* source, std::size_t count, int pe) {
  memspan_kernel_get(dest, source, count * sizeof(T), pe);
}
template <Scope scope = Scope::kThread, typename T>
inline void get_nbi(T* dest, const T* source, std::size_t count, int pe) {
  memspan_kernel_get(dest, source, count * sizeof(T), pe);
}
template <Scope scope = Scope::kThread>
inline void putmem(void* dest, const void* source, std::size_t bytes, int pe) {
  memspan_kernel_put(dest, source, bytes, pe);
}
template <Scope scope = Scope::kThread>
inline void putmem_nbi(void* dest, const void* source, std::size_t bytes, int pe) {
  memspan_kernel_put(dest, source, bytes, pe);
}
template <Scope scope = Scope::kThread>
inline void getmem(void* dest, const void* source, std::size_t bytes, int pe) {
  memspan_kernel_get(dest, source, bytes, pe);
}
template <Scope scope = Scope::kThread>
inline void getmem_nbi(void* dest, const void* source, std::size_t bytes, int pe) {
  memspan_kernel_get(dest, source, bytes, pe);
}

// `count` elements; strides in elements.
template <typename T>
inline void iput(T* dest, const T* source, std::ptrdiff_t dest_stride, std::ptrdiff_t source_stride,
                 std::size_t count, int pe) {
  constexpr auto kBytes = static_cast<std::ptrdiff_t>(sizeof(T));
  memspan_kernel_put_rows(dest, source, dest_stride * kBytes, source_stride * kBytes, sizeof(T),
                          count, pe);
}
template <typename T>
inline void iget(T* dest, const T* source, std::ptrdiff_t dest_stride, std::ptrdiff_t source_stride,
                 std::size_t count, int pe) {
  constexpr auto kBytes = static_cast<std::ptrdiff_t>(sizeof(T));
  memspan_kernel_get_rows(dest, source, dest_stride * kBytes, source_stride * kBytes, sizeof(T),
                          count, pe);
}

// `rows` rows of `length` elements, whose beginnings are so many elements apart.
struct Rows {
  std::size_t rows;
  std::size_t length;
  std::ptrdiff_t source_pitch;
  std::ptrdiff_t dest_pitch;
};
template <typename T>
inline void put_2d(T* dest, const T* source, const Rows& shape, int pe) {
  constexpr auto kBytes = static_cast<std::ptrdiff_t>(sizeof(T));
  memspan_kernel_put_rows(dest, source, shape.dest_pitch * kBytes, shape.source_pitch * kBytes,
                          shape.length * sizeof(T), shape.rows, pe);
}
template <typename T>
inline void get_2d(T* dest, const T* source, const Rows& shape, int pe) {
  constexpr auto kBytes = static_cast<std::ptrdiff_t>(sizeof(T));
  memspan_kernel_get_rows(dest, source, shape.dest_pitch * kBytes, shape.source_pitch * kBytes,
                          shape.length * sizeof(T), shape.rows, pe);
}

// Order.
inline void fence() {
  memspan_kernel_fence();
}
inline void quiet() {
  memspan_kernel_quiet();
}

// Signals: words of 4 or 8 bytes. Who sees put_signal's signal sees its data.
template <typename S>
inline void signal_op(S* signal, std::common_type_t<S> value, SignalOp op, int pe) {
  static_assert(std::is_integral_v<S>);
  detail::change<S>(op == SignalOp::kSet ? MEMSPAN_KERNEL_SET : MEMSPAN_KERNEL_ADD, signal, value,
                    pe);
}
template <typename T, typename S>
inline void put_signal(T* dest, const T* source, std::size_t count, S* signal,
                       std::common_type_t<S> value, SignalOp op, int pe) {
  put(dest, source, count, pe);
  fence();
  signal_op(signal, value, op, pe);
}
template <typename T, typename S>
inline void put_signal_nbi(T* dest, const T* source, std::size_t count, S* signal,
                           std::common_type_t<S> value, SignalOp op, int pe) {
  put_signal(dest, source, count, signal, value, op, pe);
}

// Waits for words of this PE, and looks at them. T: a number of 1 to 8 bytes.
inline constexpr std::size_t kNone = static_cast<std::size_t>(-1);

template <typename T>
inline void wait_until(const T* word, Compare compare, std::common_type_t<T> with) {
  detail::wait("wait_until", [=] { return detail::holds<T>(detail::load(word), compare, with); });
}
template <typename T>
inline bool test(const T* word, Compare compare, std::common_type_t<T> with) {
  return detail::holds<T>(detail::load(word), compare, with);
}
// The value that ended the wait.
template <typename S>
inline S signal_wait_until(const S* signal, Compare compare, std::common_type_t<S> with) {
  S seen{};
  detail::wait("signal_wait_until", [&] {
    seen = detail::load(signal);
    return detail::holds<S>(seen, compare, with);
  });
  return seen;
}

// Of `count` words those whose status is 0; `status` may be null: all. `with` is a value, or the
// address of `count` values.
namespace detail {
template <typename T>
inline T nth(T value, std::size_t) {
  return value;
}
template <typename T>
inline T nth(const T* values, std::size_t i) {
  return values[i];
}
template <typename T, typename With>
struct Words {
  const T* words;
  std::size_t count;
  const int* status;
  Compare compare;
  With with;
  bool counts(std::size_t i) const { return status == nullptr || status[i] == 0; }
  bool holds_at(std::size_t i) const {
    return detail::holds<T>(load(words + i), compare, nth<T>(with, i));
  }
  bool all() const {
    for (std::size_t i = 0; i < count; ++i)
      if (counts(i) && !holds_at(i)) return false;
    return true;
  }
  bool is_empty() const {
    for (std::size_t i = 0; i < count; ++i)
      if (counts(i)) return false;
    return true;
  }
  std::size_t any() const {
    for (std::size_t i = 0; i < count; ++i)
      if (counts(i) && holds_at(i)) return i;
    return kNone;
  }
  std::size_t some(std::size_t* indices) const {
    std::size_t found = 0;
    for (std::size_t i = 0; i < count; ++i)
      if (counts(i) && holds_at(i)) indices[found++] = i;
    return found;
  }
};
}  // namespace detail

template <typename T, typename With>
inline bool test_all(const T* words, std::size_t count, const int* status, Compare compare,
                     With with) {
  return detail::Words<T, With>{words, count, status, compare, with}.all();
}
// The first that holds, or kNone.
template <typename T, typename With>
inline std::size_t test_any(const T* words, std::size_t count, const int* status, Compare compare,
                            With with) {
  return detail::Words<T, With>{words, count, status, compare, with}.any();
}
// How many hold; their numbers in `indices`, which has room for `count`.
template <typename T, typename With>
inline std::size_t test_some(const T* words, std::size_t count, std::size_t* indices,
                             const int* status, Compare compare, With with) {
  return detail::Words<T, With>{words, count, status, compare, with}.some(indices);
}
template <typename T, typename With>
inline void wait_until_all(const T* words, std::size_t count, const int* status, Compare compare,
                           With with) {
  const detail::Words<T, With> set{words, count, status, compare, with};
  detail::wait("wait_until_all", [&] { return set.all(); });
}
// kNone when no word counts.
template <typename T, typename With>
inline std::size_t wait_until_any(const T* words, std::size_t count, const int* status,
                                  Compare compare, With with) {
  const detail::Words<T, With> set{words, count, status, compare, with};
  std::size_t found = kNone;
  if (!set.is_empty()) detail::wait("wait_until_any", [&] { return (found = set.any()) != kNone; });
  return found;
}
template <typename T, typename With>
inline std::size_t wait_until_some(const T* words, std::size_t count, std::size_t* indices,
                                   const int* status, Compare compare, With with) {
  const detail::Words<T, With> set{words, count, status, compare, with};
  std::size_t found = 0;
  if (!set.is_empty())
    detail::wait("wait_until_some", [&] { return (found = set.some(indices)) != 0; });
  return found;
}

// Atomics. Words of 4 and 8 bytes; add() also of smaller types and of floating-point ones (any type
// with an addition that is copied by its bytes).
template <typename T>
inline T atomic_fetch(const T* word, int pe) {
  return detail::fetch<T>(MEMSPAN_KERNEL_FETCH, word, T{}, T{}, pe);
}
template <typename T>
inline void atomic_set(T* word, std::common_type_t<T> value, int pe) {
  detail::change<T>(MEMSPAN_KERNEL_SET, word, value, pe);
}
template <typename T>
inline T atomic_swap(T* word, std::common_type_t<T> value, int pe) {
  return detail::fetch<T>(MEMSPAN_KERNEL_SWAP, word, value, T{}, pe);
}
template <typename T>
inline T atomic_compare_swap(T* word, std::common_type_t<T> expected, std::common_type_t<T> value,
                             int pe) {
  return detail::fetch<T>(MEMSPAN_KERNEL_COMPARE_SWAP, word, value, expected, pe);
}
template <typename T>
inline T atomic_fetch_add(T* word, std::common_type_t<T> value, int pe) {
  static_assert(std::is_integral_v<T>);
  return detail::fetch<T>(MEMSPAN_KERNEL_ADD, word, value, T{}, pe);
}
template <typename T>
inline T atomic_fetch_and(T* word, std::common_type_t<T> value, int pe) {
  return detail::fetch<T>(MEMSPAN_KERNEL_AND, word, value, T{}, pe);
}
template <typename T>
inline T atomic_fetch_or(T* word, std::common_type_t<T> value, int pe) {
  return detail::fetch<T>(MEMSPAN_KERNEL_OR, word, value, T{}, pe);
}
template <typename T>
inline T atomic_fetch_xor(T* word, std::common_type_t<T> value, int pe) {
  return detail::fetch<T>(MEMSPAN_KERNEL_XOR, word, value, T{}, pe);
}
template <typename T>
inline void atomic_and(T* word, std::common_type_t<T> value, int pe) {
  detail::change<T>(MEMSPAN_KERNEL_AND, word, value, pe);
}
template <typename T>
inline void atomic_or(T* word, std::common_type_t<T> value, int pe) {
  detail::change<T>(MEMSPAN_KERNEL_OR, word, value, pe);
}
template <typename T>
inline void atomic_xor(T* word, std::common_type_t<T> value, int pe) {
  detail::change<T>(MEMSPAN_KERNEL_XOR, word, value, pe);
}
template <typename T>
inline void atomic_add(T* word, std::common_type_t<T> value, int pe) {
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
      std::memcpy(&sum, reinterpret_cast<const char*>(&before) + inside, sizeof sum);
      sum = static_cast<T>(sum + value);
      Whole after = before;
      std::memcpy(reinterpret_cast<char*>(&after) + inside, &sum, sizeof sum);
      const Whole seen = atomic_compare_swap(whole, before, after, pe);
      if (seen == before) return;
      before = seen;
    }
  }
}
template <typename T>
inline void atomic_inc(T* word, int pe) {
  atomic_add<T>(word, T{1}, pe);
}
template <typename T>
inline T atomic_fetch_inc(T* word, int pe) {
  return atomic_fetch_add<T>(word, T{1}, pe);
}

// All blocks of this PE's grid meet.
inline void sync_grid() {
  memspan_kernel_sync(MEMSPAN_KERNEL_GRID);
}
// All blocks of the grids of the team's members meet; a barrier completes what they put before.
inline void sync(Team team) {
  memspan_kernel_sync(team);
}
inline void sync_all() {
  memspan_kernel_sync(kWorld);
}
inline void barrier(Team team) {
  memspan_kernel_barrier(team);
}
inline void barrier_all() {
  memspan_kernel_barrier(kWorld);
}

}  // namespace memspan::kernel

#endif  // MEMSPAN_KERNEL_H
