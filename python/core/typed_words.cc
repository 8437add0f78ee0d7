// SPDX-License-Identifier: Apache-2.0
// Waits, tests, atomics and reductions of each type.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <shmem.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calls.h"
#include "modules.h"
#include "places.h"
#include "team_handles.h"
#include "typed.h"

namespace memspan::python {
namespace {

using namespace nb::literals;

std::string word_of(std::size_t bytes) {
  return "word of " + bytes_in_words(bytes);
}

// ---- waits and tests

// The status array of waits and tests: None, or one int for each variable, not 0 to leave it out.
class Status {
 public:
  Status(const std::optional<Place>& place, std::size_t count)
      : flags_(place ? place->get_local<const int>("status", bytes_of(count, sizeof(int)))
                     : nullptr) {}
  const int* get() const { return flags_; }

 private:
  const int* flags_;
};

nb::typed<nb::list, std::size_t> indices_of(const std::vector<std::size_t>& indices,
                                            std::size_t count) {
  nb::typed<nb::list, std::size_t> list;
  for (std::size_t i = 0; i < count; ++i) list.append(indices[i]);
  return list;
}

// What a wait compares with: one value, or one for each variable.
template <typename T>
T compared(T value, std::size_t) {
  return value;
}
template <typename T>
const T* compared(const Place& values, std::size_t count) {
  return values.get_local<T>("cmp_values", bytes_of(count, sizeof(T)));
}

// The forms for many variables, which take a Given (a T, or a Place of as many): `all` gives what
// the function gives, `some` its indices.
template <typename T, typename Given>
struct WaitForms {
  Typed<T> typed;
  const char* given_name;
  std::string says;  // how the words compare

  template <typename Function>
  void all(const char* rest, const char* does, Function function) {
    bind(rest, does,
         [=](auto... arguments) { return wait([&] { return function(arguments...); }); });
  }
  template <typename Function>
  void some(const char* rest, const char* does, Function function) {
    bind(rest, does, [=](T* at, std::size_t count, const int* flags, int compare, auto wanted) {
      std::vector<std::size_t> indices(count);
      const std::size_t found =
          wait([&] { return function(at, count, indices.data(), flags, compare, wanted); });
      return indices_of(indices, found);
    });
  }

 private:
  template <typename Run>
  void bind(const char* rest, const char* does, Run run) {
    typed.def(
        rest, does + says,
        [=](const Place& words, std::size_t count, const std::optional<Place>& status, int compare,
            const Given& given) {
          T* const at = Typed<T>::words(words, "ivars", count);
          const Status flags(status, count);
          return run(at, count, flags.get(), compare, compared<T>(given, count));
        },
        "ivars"_a, "nelems"_a, "status"_a.none(), "cmp"_a, nb::arg(given_name));
  }
};

template <typename T>
std::string many_words(const char* with) {
  return " of the ``nelems`` words of " + bytes_in_words(sizeof(T)) +
         " at ``ivars`` here compare so (``CmpOp``) with " + with +
         ". ``status``: one C int for each, not 0 to leave it out, or None.";
}

template <typename T, auto wait_until, auto test>
void bind_waits(Typed<T> typed) {
  const std::string compares = "the " + word_of(sizeof(T)) +
                               " at ``ivar`` here, which others change, compares so (``CmpOp``) "
                               "with ``cmp_value``.";
  typed.def(
      "_wait_until", "Until " + compares,
      [](const Place& word, int compare, T value) {
        T* const at = Typed<T>::words(word, "ivar", 1);
        wait([&] { wait_until(at, compare, value); });
      },
      "ivar"_a, "cmp"_a, "cmp_value"_a);
  typed.def(
      "_test", "1 when " + compares + " Else 0.",
      [](const Place& word, int compare, T value) {
        T* const at = Typed<T>::words(word, "ivar", 1);
        return call([&] { return test(at, compare, value); });
      },
      "ivar"_a, "cmp"_a, "cmp_value"_a);
}

constexpr const char* kUntilAll = "Until all";
constexpr const char* kUntilAny =
    "The index of one that holds, or 2**64 - 1 when all are left out. Until any";
constexpr const char* kUntilSome = "The indices of those that hold. Until some";
constexpr const char* kTestAll = "1 when all, else 0,";
constexpr const char* kTestAny = "The index of one that holds, or 2**64 - 1. Whether any";
constexpr const char* kTestSome = "The indices of those that hold, maybe none. Whether some";

void bind_synchronization(nb::module_& module) {
#define MEMSPAN_WAITS(name, type)                                                            \
  {                                                                                          \
    const Typed<type> typed{module, #name};                                                  \
    bind_waits<type, shmem_##name##_wait_until, shmem_##name##_test>(typed);                 \
    WaitForms<type, type> one{typed, "cmp_value", many_words<type>("``cmp_value``")};        \
    one.all("_wait_until_all", kUntilAll, shmem_##name##_wait_until_all);                    \
    one.all("_wait_until_any", kUntilAny, shmem_##name##_wait_until_any);                    \
    one.some("_wait_until_some", kUntilSome, shmem_##name##_wait_until_some);                \
    one.all("_test_all", kTestAll, shmem_##name##_test_all);                                 \
    one.all("_test_any", kTestAny, shmem_##name##_test_any);                                 \
    one.some("_test_some", kTestSome, shmem_##name##_test_some);                             \
    WaitForms<type, Place> each{typed, "cmp_values",                                         \
                                many_words<type>("their own of ``cmp_values``, as many")};   \
    each.all("_wait_until_all_vector", kUntilAll, shmem_##name##_wait_until_all_vector);     \
    each.all("_wait_until_any_vector", kUntilAny, shmem_##name##_wait_until_any_vector);     \
    each.some("_wait_until_some_vector", kUntilSome, shmem_##name##_wait_until_some_vector); \
    each.all("_test_all_vector", kTestAll, shmem_##name##_test_all_vector);                  \
    each.all("_test_any_vector", kTestAny, shmem_##name##_test_any_vector);                  \
    each.some("_test_some_vector", kTestSome, shmem_##name##_test_some_vector);              \
  }
  MEMSPAN_WORD_TYPES(MEMSPAN_WAITS)
#undef MEMSPAN_WAITS
}

// ---- atomics

template <typename T, auto fetch, auto set, auto swap>
void bind_atomic_access(Typed<T> typed) {
  const std::string word = "the " + word_of(sizeof(T));
  typed.def(
      "_atomic_fetch", "What " + word + " at ``source`` at ``pe`` is, atomically.",
      [](const Place& place, int pe) {
        const T* const at = Typed<T>::words(place, "source", 1);
        return call([&] { return fetch(at, pe); });
      },
      "source"_a, "pe"_a);
  typed.def(
      "_atomic_set", "Atomically, " + word + " at ``dest`` at ``pe`` becomes ``value``.",
      [](const Place& place, T value, int pe) {
        T* const at = Typed<T>::words(place, "dest", 1);
        call([&] { set(at, value, pe); });
      },
      "dest"_a, "value"_a, "pe"_a);
  typed.def(
      "_atomic_swap",
      "Atomically, " + word + " at ``dest`` at ``pe`` becomes ``value``; what it was.",
      [](const Place& place, T value, int pe) {
        T* const at = Typed<T>::words(place, "dest", 1);
        return call([&] { return swap(at, value, pe); });
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
        call([&] { function(at, value, pe); });
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
        return call([&] { return function(at, value, pe); });
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
        return call([&] { return compare_swap(at, condition, value, pe); });
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
  bind_synchronization(module);
  bind_atomics(module);
  bind_reductions(module);
}

}  // namespace memspan::python
