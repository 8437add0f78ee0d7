// SPDX-License-Identifier: Apache-2.0
// Atomics and reductions of each type.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <shmem.h>

#include <cstdint>
#include <string>

#include "calls.h"
#include "modules.h"
#include "places.h"
#include "team_handles.h"
#include "typed.h"

namespace memspan::python {
namespace {

using namespace nb::literals;

// ---- atomics

template <typename T, auto fetch, auto set, auto swap>
void bind_atomic_access(Typed<T> typed) {
  const std::string word = "the " + word_of(sizeof(T));
  typed.def(
      "_atomic_fetch", "What " + word + " at ``source`` at ``pe`` is, atomically.",
      [](const Place& place, int pe) {
        const T* const at = Typed<T>::words(place, "source", 1);
        return access(at, pe, [&] { return fetch(at, pe); });
      },
      "source"_a, "pe"_a);
  typed.def(
      "_atomic_set", "Atomically, " + word + " at ``dest`` at ``pe`` becomes ``value``.",
      [](const Place& place, T value, int pe) {
        T* const at = Typed<T>::words(place, "dest", 1);
        access(at, pe, [&] { set(at, value, pe); });
      },
      "dest"_a, "value"_a, "pe"_a);
  typed.def(
      "_atomic_swap",
      "Atomically, " + word + " at ``dest`` at ``pe`` becomes ``value``; what it was.",
      [](const Place& place, T value, int pe) {
        T* const at = Typed<T>::words(place, "dest", 1);
        return access(at, pe, [&] { return swap(at, value, pe); });
      },
      "dest"_a, "value"_a, "pe"_a);
}

// The first sentence of an atomic operation's docstring.
template <typename T>
std::string change_in_words(const char* becomes) {
  return "Atomically, the " + word_of(sizeof(T)) + " at ``dest`` at ``pe`` " + becomes;
}

template <typename T>
void bind_update(Typed<T> typed, const std::string& rest, const char* becomes,
                 void (*function)(T*, T, int)) {
  typed.def(
      "_atomic_" + rest, change_in_words<T>(becomes) + ".",
      [=](const Place& place, T value, int pe) {
        T* const at = Typed<T>::words(place, "dest", 1);
        access(at, pe, [&] { function(at, value, pe); });
      },
      "dest"_a, "value"_a, "pe"_a);
}
template <typename T>
void bind_fetch(Typed<T> typed, const std::string& rest, const char* becomes,
                T (*function)(T*, T, int)) {
  typed.def(
      "_atomic_fetch_" + rest, change_in_words<T>(becomes) + "; what it was.",
      [=](const Place& place, T value, int pe) {
        T* const at = Typed<T>::words(place, "dest", 1);
        return access(at, pe, [&] { return function(at, value, pe); });
      },
      "dest"_a, "value"_a, "pe"_a);
}

template <typename T, auto compare_swap>
void bind_compare_swap(Typed<T> typed) {
  typed.def(
      "_atomic_compare_swap",
      change_in_words<T>("becomes ``value`` when it is ``cond``; what it was, in any case."),
      [](const Place& place, T condition, T value, int pe) {
        T* const at = Typed<T>::words(place, "dest", 1);
        return access(at, pe, [&] { return compare_swap(at, condition, value, pe); });
      },
      "dest"_a, "cond"_a, "value"_a, "pe"_a);
}

void bind_atomics(nb::module_& module) {
#define MEMSPAN_ACCESS(name, type)                                                 \
  bind_atomic_access<type, shmem_##name##_atomic_fetch, shmem_##name##_atomic_set, \
                     shmem_##name##_atomic_swap>(Typed<type>{module, #name});
  MEMSPAN_ACCESS(float, float)
  MEMSPAN_ACCESS(double, double)
  MEMSPAN_WORD_TYPES(MEMSPAN_ACCESS)
#undef MEMSPAN_ACCESS

#define MEMSPAN_UPDATE(name, type, operation, becomes)                                        \
  bind_update<type>({module, #name}, #operation, becomes, shmem_##name##_atomic_##operation); \
  bind_fetch<type>({module, #name}, #operation, becomes, shmem_##name##_atomic_fetch_##operation);
#define MEMSPAN_UPDATES(name, type)                                                        \
  bind_compare_swap<type, shmem_##name##_atomic_compare_swap>(Typed<type>{module, #name}); \
  MEMSPAN_UPDATE(name, type, add, "grows by ``value``")                                    \
  MEMSPAN_UPDATE(name, type, and, "becomes its bits and those of ``value``")               \
  MEMSPAN_UPDATE(name, type, or, "becomes its bits or those of ``value``")                 \
  MEMSPAN_UPDATE(name, type, xor, "becomes its bits xor those of ``value``")
  MEMSPAN_WORD_TYPES(MEMSPAN_UPDATES)
#undef MEMSPAN_UPDATES
#undef MEMSPAN_UPDATE
}

// ---- reductions

template <typename T>
void bind_reduce(Typed<T> typed, const std::string& operation, const char* of_all,
                 int (*function)(shmem_team_t, T*, const T*, std::size_t)) {
  typed.def(
      "_" + operation + "_reduce",
      std::string(of_all) + " of each of ``nreduce`` elements of " + bytes_in_words(sizeof(T)) +
          " over all of the team, to ``dest`` of all; both are symmetric, and ``source`` may be "
          "``dest``. All of the team call it. Returns 0.",
      [=](const Place& to, const Place& from, std::size_t count, int team) {
        T* const target = to.get_writable<T>("dest", bytes_of(count, sizeof(T)));
        const T* const source = Typed<T>::words(from, "source", count);
        return wait([&] { return function(team_of(team), target, source, count); });
      },
      "dest"_a, "source"_a, "nreduce"_a, "team"_a = 0);
}

void bind_reductions(nb::module_& module) {
#define MEMSPAN_NUMBERS(name, type)                                                      \
  bind_reduce<type>({module, #name}, "sum", "The sum", shmem_##name##_sum_reduce);       \
  bind_reduce<type>({module, #name}, "prod", "The product", shmem_##name##_prod_reduce); \
  bind_reduce<type>({module, #name}, "min", "The least", shmem_##name##_min_reduce);     \
  bind_reduce<type>({module, #name}, "max", "The greatest", shmem_##name##_max_reduce);
  MEMSPAN_NUMBERS(float, float)
  MEMSPAN_NUMBERS(double, double)
  MEMSPAN_INTEGER_TYPES(MEMSPAN_NUMBERS)
#undef MEMSPAN_NUMBERS

#define MEMSPAN_BITS(name, type)                                                        \
  bind_reduce<type>({module, #name}, "and", "The bits and", shmem_##name##_and_reduce); \
  bind_reduce<type>({module, #name}, "or", "The bits or", shmem_##name##_or_reduce);    \
  bind_reduce<type>({module, #name}, "xor", "The bits xor", shmem_##name##_xor_reduce);
  MEMSPAN_INTEGER_TYPES(MEMSPAN_BITS)
#undef MEMSPAN_BITS
}

}  // namespace

void bind_typed_words(nb::module_& module) {
  bind_atomics(module);
  bind_reductions(module);
}

}  // namespace memspan::python
