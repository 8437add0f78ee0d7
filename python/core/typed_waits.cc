// SPDX-License-Identifier: Apache-2.0
// Waits and tests of each type: OpenSHMEM's return their results. Those of CANN SHMEM store them in
// C; here they return them, and also store them if the program passes memory.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <shmem.h>
// CANN SHMEM's after OpenSHMEM's.
#include <aclshmem.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "calls.h"
#include "modules.h"
#include "places.h"
#include "typed.h"

namespace memspan::python {
namespace {

using namespace nb::literals;

using OptionalPlace = std::optional<Place>;

// The status array of waits and tests: None, or one int for each variable, not 0 to leave it out.
class Status {
 public:
  Status(const OptionalPlace& place, std::size_t count)
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

// A value to compare with, as Python passes it: a char is a string or a number.
template <typename T>
using Given = std::conditional_t<std::is_same_v<T, char>, std::variant<std::int8_t, char>, T>;

// What a wait compares with: one value, or one for each variable.
template <typename T>
T compared(const Given<T>& value, std::size_t) {
  if constexpr (std::is_same_v<T, char>)
    return std::visit([](auto any) { return static_cast<char>(any); }, value);
  else
    return value;
}
template <typename T>
T* compared(const Place& values, std::size_t count) {
  return values.get_local<T>("cmp_values", bytes_of(count, sizeof(T)));
}

template <typename T>
std::string one_word() {
  return "the " + word_of(sizeof(T)) +
         " at ``ivar`` here, which others change, compares so (``CmpOp``) with ``cmp_value``.";
}

template <typename T>
std::string many_words(const char* with) {
  return " of the ``nelems`` words of " + bytes_in_words(sizeof(T)) +
         " at ``ivars`` here compare so (``CmpOp``) with " + with +
         ". ``status``: one C int for each, not 0 to leave it out, or None.";
}

constexpr const char* kOneForAll = "``cmp_value``";
constexpr const char* kOneEach = "their own of ``cmp_values``, as many";

constexpr const char* kUntilAll = "Until all";
constexpr const char* kUntilAny =
    "The index of one that holds, or 2**64 - 1 when all are left out. Until any";
constexpr const char* kUntilSome = "The indices of those that hold. Until some";
constexpr const char* kTestAll = "1 when all, else 0,";
constexpr const char* kTestAny = "The index of one that holds, or 2**64 - 1. Whether any";
constexpr const char* kTestSome = "The indices of those that hold, maybe none. Whether some";

// ---- OpenSHMEM

template <typename T>
void def_returning(const Typed<T>& typed, const std::string& rest, const std::string& says,
                   auto&& function, const auto&... arguments) {
  def_named(typed.module, "shmem_" + typed.name + rest, says, function, arguments...);
}

// The forms for many variables, which compare with a Value (a T, or a Place of as many): `all`
// gives what the function gives, `some` its indices.
template <typename T, typename Value>
struct WaitForms {
  Typed<T> typed;
  const char* value_name;
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
    def_returning(
        typed, rest, does + says,
        [=](const Place& words, std::size_t count, const OptionalPlace& status, int compare,
            const Value& value) {
          T* const at = Typed<T>::words(words, "ivars", count);
          const Status flags(status, count);
          return run(at, count, flags.get(), compare, compared<T>(value, count));
        },
        "ivars"_a, "nelems"_a, "status"_a.none(), "cmp"_a, nb::arg(value_name));
  }
};

template <typename T, auto wait_until, auto test>
void bind_waits(const Typed<T>& typed) {
  def_returning(
      typed, "_wait_until", "Until " + one_word<T>(),
      [](const Place& word, int compare, T value) {
        T* const at = Typed<T>::words(word, "ivar", 1);
        wait([&] { wait_until(at, compare, value); });
      },
      "ivar"_a, "cmp"_a, "cmp_value"_a);
  def_returning(
      typed, "_test", "1 when " + one_word<T>() + " Else 0.",
      [](const Place& word, int compare, T value) {
        T* const at = Typed<T>::words(word, "ivar", 1);
        return call([&] { return test(at, compare, value); });
      },
      "ivar"_a, "cmp"_a, "cmp_value"_a);
}

void bind_returning(nb::module_& module) {
#define MEMSPAN_WAITS(name, type)                                                            \
  {                                                                                          \
    const Typed<type> typed{module, #name};                                                  \
    bind_waits<type, shmem_##name##_wait_until, shmem_##name##_test>(typed);                 \
    WaitForms<type, type> one{typed, "cmp_value", many_words<type>(kOneForAll)};             \
    one.all("_wait_until_all", kUntilAll, shmem_##name##_wait_until_all);                    \
    one.all("_wait_until_any", kUntilAny, shmem_##name##_wait_until_any);                    \
    one.some("_wait_until_some", kUntilSome, shmem_##name##_wait_until_some);                \
    one.all("_test_all", kTestAll, shmem_##name##_test_all);                                 \
    one.all("_test_any", kTestAny, shmem_##name##_test_any);                                 \
    one.some("_test_some", kTestSome, shmem_##name##_test_some);                             \
    WaitForms<type, Place> each{typed, "cmp_values", many_words<type>(kOneEach)};            \
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

// ---- CANN SHMEM

template <typename T>
void def_storing(const Typed<T>& typed, const std::string& rest, const std::string& says,
                 auto&& function, const auto&... arguments) {
  def_named(typed.module, "aclshmem_" + typed.name + rest, says, function, arguments...);
}

// Where results are also stored; null for None.
template <typename Result>
Result* result_at(const char* name, const OptionalPlace& place, std::size_t count = 1) {
  return place ? place->get_local_writable<Result>(name, bytes_of(count, sizeof(Result))) : nullptr;
}
template <typename Result>
Result stored(Result* out, Result result) {
  if (out != nullptr) *out = result;
  return result;
}

template <typename T>
void bind_one_storing(const Typed<T>& typed, void (*wait_for_change)(T*, T),
                      void (*wait_until)(T*, int, T), void (*test)(T*, int, T, int*)) {
  def_storing(
      typed, "_wait",
      "Until the " + word_of(sizeof(T)) +
          " at ``ivar`` here, which others change, is another value than ``cmp_value``.",
      [=](const Place& word, const Given<T>& value) {
        T* const at = Typed<T>::words(word, "ivar", 1);
        wait([&] { wait_for_change(at, compared<T>(value, 1)); });
      },
      "ivar"_a, "cmp_value"_a);
  def_storing(
      typed, "_wait_until", "Until " + one_word<T>(),
      [=](const Place& word, int compare, const Given<T>& value) {
        T* const at = Typed<T>::words(word, "ivar", 1);
        wait([&] { wait_until(at, compare, compared<T>(value, 1)); });
      },
      "ivar"_a, "cmp"_a, "cmp_value"_a);
  def_storing(
      typed, "_test",
      "1 when " + one_word<T>() + " Else 0. Also stored in ``res_out``, a C int, or None.",
      [=](const Place& word, int compare, const Given<T>& value, const OptionalPlace& result) {
        T* const at = Typed<T>::words(word, "ivar", 1);
        int* const out = result_at<int>("res_out", result);
        int holds = 0;
        call([&] { test(at, compare, compared<T>(value, 1), &holds); });
        return stored(out, holds);
      },
      "ivar"_a, "cmp"_a, "cmp_value"_a, "res_out"_a = nb::none());
}

// The forms for many variables, as WaitForms has them.
template <typename T, typename Value>
struct StoringForms {
  Typed<T> typed;
  const char* value_name;
  const char* suffix;
  std::string says;

  template <typename Function>
  void all(const std::string& rest, Function function) {
    def_storing(
        typed, rest + suffix, kUntilAll + says,
        [=](const Place& words, std::size_t count, const OptionalPlace& status, int compare,
            const Value& value) {
          T* const at = Typed<T>::words(words, "ivars", count);
          const Status flags(status, count);
          const auto wanted = compared<T>(value, count);
          wait([&] { function(at, count, flags.get(), compare, wanted); });
        },
        "ivars"_a, "nelems"_a, "status"_a.none(), "cmp"_a, nb::arg(value_name));
  }
  template <typename Result, typename Function>
  void one(const std::string& rest, const char* does, Function function) {
    const char* const type = std::is_same_v<Result, int> ? "C int" : "size_t";
    def_storing(
        typed, rest + suffix,
        does + says + " ``res_out``: where the result is stored, a " + type + ", or None.",
        [=](const Place& words, std::size_t count, const OptionalPlace& status, int compare,
            const Value& value, const OptionalPlace& result) {
          T* const at = Typed<T>::words(words, "ivars", count);
          const Status flags(status, count);
          const auto wanted = compared<T>(value, count);
          Result* const out = result_at<Result>("res_out", result);
          Result found{};
          wait([&] { function(at, count, flags.get(), compare, wanted, &found); });
          return stored(out, found);
        },
        "ivars"_a, "nelems"_a, "status"_a.none(), "cmp"_a, nb::arg(value_name),
        "res_out"_a = nb::none());
  }
  template <typename Function>
  void some(const std::string& rest, const char* does, Function function) {
    const auto run = [=](const Place& words, std::size_t count, const OptionalPlace& places,
                         const OptionalPlace& status, int compare, const Value& value,
                         const OptionalPlace& result) {
      T* const at = Typed<T>::words(words, "ivars", count);
      const Status flags(status, count);
      const auto wanted = compared<T>(value, count);
      std::size_t* const indices_out = result_at<std::size_t>("indices", places, count);
      std::size_t* const out = result_at<std::size_t>("res_out", result);
      std::vector<std::size_t> indices(count);
      std::size_t found = 0;
      wait([&] { function(at, count, indices.data(), flags.get(), compare, wanted, &found); });
      if (indices_out != nullptr) std::copy_n(indices.begin(), found, indices_out);
      stored(out, found);
      return indices_of(indices, found);
    };
    def_storing(typed, rest + suffix,
                does + says +
                    " ``indices``: where they are stored, a size_t for each word, or None. "
                    "``res_out``: where their number is stored, a size_t, or None.",
                run, "ivars"_a, "nelems"_a, "indices"_a.none(), "status"_a.none(), "cmp"_a,
                nb::arg(value_name), "res_out"_a = nb::none());
    def_storing(
        typed, rest + suffix, "Without memory for the results.",
        [=](const Place& words, std::size_t count, const OptionalPlace& status, int compare,
            const Value& value) {
          return run(words, count, std::nullopt, status, compare, value, std::nullopt);
        },
        "ivars"_a, "nelems"_a, "status"_a.none(), "cmp"_a, nb::arg(value_name));
  }
};

// C has the test of all words with one value only for a value of each.
template <typename T, auto test_all_vector>
void test_all(T* words, std::size_t count, const int* status, int compare, T value, int* result) {
  std::vector<T> values(count, value);
  test_all_vector(words, count, status, compare, values.data(), result);
}

void bind_storing(nb::module_& module) {
#define MEMSPAN_FORMS(forms, name, suffix, test_all)                                              \
  forms.all("_wait_until_all", aclshmem_##name##_wait_until_all##suffix);                         \
  forms.one<std::size_t>("_wait_until_any", kUntilAny, aclshmem_##name##_wait_until_any##suffix); \
  forms.some("_wait_until_some", kUntilSome, aclshmem_##name##_wait_until_some##suffix);          \
  forms.one<int>("_test_all", kTestAll, test_all);                                                \
  forms.one<std::size_t>("_test_any", kTestAny, aclshmem_##name##_test_any##suffix);              \
  forms.some("_test_some", kTestSome, aclshmem_##name##_test_some##suffix)
#define MEMSPAN_WAITS(name, type)                                                               \
  {                                                                                             \
    const Typed<type> typed{module, #name};                                                     \
    bind_one_storing<type>(typed, aclshmem_##name##_wait, aclshmem_##name##_wait_until,         \
                           aclshmem_##name##_test);                                             \
    StoringForms<type, Given<type>> one{typed, "cmp_value", "", many_words<type>(kOneForAll)};  \
    MEMSPAN_FORMS(one, name, , (test_all<type, aclshmem_##name##_test_all_vector>));            \
    StoringForms<type, Place> each{typed, "cmp_values", "_vector", many_words<type>(kOneEach)}; \
    MEMSPAN_FORMS(each, name, _vector, aclshmem_##name##_test_all_vector);                      \
  }
  ACLSHMEM_P2P_SYNC_TYPE_FUNC(MEMSPAN_WAITS);
#undef MEMSPAN_WAITS
#undef MEMSPAN_FORMS
}

}  // namespace

void bind_typed_waits(nb::module_& module) {
  bind_returning(module);
  bind_storing(module);
}

}  // namespace memspan::python
