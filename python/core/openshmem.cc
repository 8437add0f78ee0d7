// SPDX-License-Identifier: Apache-2.0
// What only OpenSHMEM has: order, 64-bit signals, waits and tests, collectives, atomics, elements
// with strides. Names that end in a type's are bound for each type.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <shmem.h>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "calls.h"
#include "in_stream.h"
#include "modules.h"
#include "places.h"

namespace memspan::python {
namespace {

using namespace nb::literals;

// CANN SHMEM's teams are numbers, 0 is all; the others are the handles of OpenSHMEM.
shmem_team_t team_of(int number) {
  if (number == 0) return SHMEM_TEAM_WORLD;
  return number < 0 ? SHMEM_TEAM_INVALID
                    : reinterpret_cast<shmem_team_t>(static_cast<std::uintptr_t>(number));
}

// What a collective of OpenSHMEM returns is not 0 only in a program that survives deaths.
template <typename Function>
int collective(Function function) {
  return wait(function);
}

// ---- 32-bit signals

void check_signal(int operation) {
  if (operation != SHMEM_SIGNAL_SET && operation != SHMEM_SIGNAL_ADD)
    throw nb::value_error(("sig_op is " + std::to_string(operation) +
                           ", allowed are SIGNAL_SET (0) and SIGNAL_ADD (1)")
                              .c_str());
}

void change(std::int32_t* word, std::int32_t value, int operation, int pe) {
  if (operation == SHMEM_SIGNAL_SET)
    shmem_int32_atomic_set(word, value, pe);
  else
    shmem_int32_atomic_add(word, value, pe);
}

// ---- collectives of bytes

template <auto function>
int exchange(const Place& to, const Place& from, std::size_t bytes, int team, std::size_t room) {
  void* const target = to.get_writable("dest", room);
  const void* const source = from.get("source", bytes);
  return collective([&] { return function(team_of(team), target, source, bytes); });
}

// -1 for no team.
int pes_of(int team) {
  return call([&] { return team == 0 ? shmem_n_pes() : shmem_team_n_pes(team_of(team)); });
}

std::size_t each(std::size_t bytes, int team) {
  const int pes = pes_of(team);
  if (pes < 0) throw nb::value_error(("team " + std::to_string(team) + " is no team").c_str());
  return bytes * static_cast<std::size_t>(pes);
}

int broadcast(const Place& to, const Place& from, std::size_t bytes, int root, int team) {
  void* const target = to.get_writable("dest", bytes);
  const void* const source = from.get("source", bytes);
  return collective([&] { return shmem_broadcastmem(team_of(team), target, source, bytes, root); });
}

// ---- each type

// From the first to the last of `count` elements that begin `stride` apart, in elements.
std::size_t span_of(std::size_t count, std::ptrdiff_t stride) {
  if (stride < 1)
    throw nb::value_error(
        ("the stride is " + std::to_string(stride) + ", allowed is 1 and more").c_str());
  if (count == 0) return 0;
  std::size_t span = 0;
  if (__builtin_mul_overflow(count - 1, static_cast<std::size_t>(stride), &span) ||
      span >= SIZE_MAX / 32)
    throw nb::value_error("the strides go beyond all memory");
  return span + 1;
}

// The status array of waits and tests: None, or one int for each variable, not 0 to leave it out.
class Status {
 public:
  Status(const std::optional<Place>& place, std::size_t count)
      : flags_(place ? place->get<const int>("status", count * sizeof(int)) : nullptr) {}
  const int* get() const { return flags_; }

 private:
  const int* flags_;
};

nb::list indices_of(const std::vector<std::size_t>& indices, std::size_t count) {
  nb::list list;
  for (std::size_t i = 0; i < count; ++i) list.append(indices[i]);
  return list;
}

template <typename T>
struct Typed {
  nb::module_& module;
  std::string name;

  template <typename Function, typename... Extra>
  void def(const std::string& rest, Function&& function, const Extra&... extra) {
    module.def((name + rest).c_str(), std::forward<Function>(function), extra...);
  }
  static T* words(const Place& place, const char* argument, std::size_t count) {
    return place.get<T>(argument, count * sizeof(T));
  }
};

template <typename T, auto put, auto get, auto iput, auto iget>
void bind_moves(Typed<T> typed) {
  typed.def(
      "_put",
      [](const Place& to, const Place& from, std::size_t count, int pe) {
        T* const target = Typed<T>::words(to, "dest", count);
        const T* const source = Typed<T>::words(from, "source", count);
        move(count * sizeof(T), [&] { put(target, source, count, pe); });
      },
      "dest"_a, "source"_a, "nelems"_a, "pe"_a);
  typed.def(
      "_get",
      [](const Place& to, const Place& from, std::size_t count, int pe) {
        T* const target = to.get_writable<T>("dest", count * sizeof(T));
        const T* const source = Typed<T>::words(from, "source", count);
        move(count * sizeof(T), [&] { get(target, source, count, pe); });
      },
      "dest"_a, "source"_a, "nelems"_a, "pe"_a);
  typed.def(
      "_iput",
      [](const Place& to, const Place& from, std::ptrdiff_t dst, std::ptrdiff_t sst,
         std::size_t count, int pe) {
        T* const target = Typed<T>::words(to, "dest", span_of(count, dst));
        const T* const source = Typed<T>::words(from, "source", span_of(count, sst));
        move(count * sizeof(T), [&] { iput(target, source, dst, sst, count, pe); });
      },
      "dest"_a, "source"_a, "dst"_a, "sst"_a, "nelems"_a, "pe"_a);
  typed.def(
      "_iget",
      [](const Place& to, const Place& from, std::ptrdiff_t dst, std::ptrdiff_t sst,
         std::size_t count, int pe) {
        T* const target = to.get_writable<T>("dest", span_of(count, dst) * sizeof(T));
        const T* const source = Typed<T>::words(from, "source", span_of(count, sst));
        move(count * sizeof(T), [&] { iget(target, source, dst, sst, count, pe); });
      },
      "dest"_a, "source"_a, "dst"_a, "sst"_a, "nelems"_a, "pe"_a);
}

// Elements of which only the size is known: put16, iget128_nbi...
template <auto put, auto get, auto iput, auto iget>
void bind_sized(nb::module_& module, const std::string& bits, std::size_t bytes) {
  const auto plain = [&](const std::string& name, auto function, bool is_get) {
    module.def((name + bits).c_str(),
               [=](const Place& to, const Place& from, std::size_t count, int pe) {
                 void* const target = is_get ? to.get_writable("dest", count * bytes)
                                             : to.get("dest", count * bytes);
                 const void* const source = from.get("source", count * bytes);
                 move(count * bytes, [&] { function(target, source, count, pe); });
               },
               "dest"_a, "source"_a, "nelems"_a, "pe"_a);
  };
  const auto strided = [&](const std::string& name, auto function, bool is_get) {
    module.def((name + bits).c_str(),
               [=](const Place& to, const Place& from, std::ptrdiff_t dst, std::ptrdiff_t sst,
                   std::size_t count, int pe) {
                 const std::size_t room = span_of(count, dst) * bytes;
                 void* const target = is_get ? to.get_writable("dest", room) : to.get("dest", room);
                 const void* const source = from.get("source", span_of(count, sst) * bytes);
                 move(count * bytes, [&] { function(target, source, dst, sst, count, pe); });
               },
               "dest"_a, "source"_a, "dst"_a, "sst"_a, "nelems"_a, "pe"_a);
  };
  plain("put", put, false);
  plain("get", get, true);
  strided("iput", iput, false);
  strided("iget", iget, true);
}

// What a wait compares with: one value, or one for each variable.
template <typename T>
T compared(T value, std::size_t) {
  return value;
}
template <typename T>
const T* compared(const Place& values, std::size_t count) {
  return values.get<T>("cmp_values", count * sizeof(T));
}

// The forms for many variables, which take a Given (a T, or a Place of as many): `all` gives what
// the function gives, `some` its indices.
template <typename T, typename Given>
struct WaitForms {
  Typed<T> typed;
  const char* given_name;

  template <typename Function>
  void all(const char* rest, Function function) {
    bind(rest, [=](auto... arguments) { return wait([&] { return function(arguments...); }); });
  }
  template <typename Function>
  void some(const char* rest, Function function) {
    bind(rest, [=](T* at, std::size_t count, const int* flags, int compare, auto wanted) {
      std::vector<std::size_t> indices(count);
      const std::size_t found =
          wait([&] { return function(at, count, indices.data(), flags, compare, wanted); });
      return indices_of(indices, found);
    });
  }

 private:
  template <typename Run>
  void bind(const char* rest, Run run) {
    typed.def(
        rest,
        [=](const Place& words, std::size_t count, const std::optional<Place>& status, int compare,
            const Given& given) {
          T* const at = Typed<T>::words(words, "ivars", count);
          const Status flags(status, count);
          return run(at, count, flags.get(), compare, compared<T>(given, count));
        },
        "ivars"_a, "nelems"_a, "status"_a.none(), "cmp"_a, nb::arg(given_name));
  }
};

template <typename T, auto wait_until, auto test>
void bind_waits(Typed<T> typed) {
  typed.def(
      "_wait_until",
      [](const Place& word, int compare, T value) {
        T* const at = Typed<T>::words(word, "ivar", 1);
        wait([&] { wait_until(at, compare, value); });
      },
      "ivar"_a, "cmp"_a, "cmp_value"_a);
  typed.def(
      "_test",
      [](const Place& word, int compare, T value) {
        T* const at = Typed<T>::words(word, "ivar", 1);
        return call([&] { return test(at, compare, value); });
      },
      "ivar"_a, "cmp"_a, "cmp_value"_a);
}

template <typename T, auto fetch, auto set, auto swap>
void bind_atomic_access(Typed<T> typed) {
  typed.def(
      "_atomic_fetch",
      [](const Place& word, int pe) {
        const T* const at = Typed<T>::words(word, "source", 1);
        return call([&] { return fetch(at, pe); });
      },
      "source"_a, "pe"_a);
  typed.def(
      "_atomic_set",
      [](const Place& word, T value, int pe) {
        T* const at = Typed<T>::words(word, "dest", 1);
        call([&] { set(at, value, pe); });
      },
      "dest"_a, "value"_a, "pe"_a);
  typed.def(
      "_atomic_swap",
      [](const Place& word, T value, int pe) {
        T* const at = Typed<T>::words(word, "dest", 1);
        return call([&] { return swap(at, value, pe); });
      },
      "dest"_a, "value"_a, "pe"_a);
}

template <typename T>
void bind_update(Typed<T> typed, const std::string& rest, void (*function)(T*, T, int)) {
  typed.def(
      "_atomic_" + rest,
      [=](const Place& word, T value, int pe) {
        T* const at = Typed<T>::words(word, "dest", 1);
        call([&] { function(at, value, pe); });
      },
      "dest"_a, "value"_a, "pe"_a);
}
template <typename T>
void bind_fetch(Typed<T> typed, const std::string& rest, T (*function)(T*, T, int)) {
  typed.def(
      "_atomic_fetch_" + rest,
      [=](const Place& word, T value, int pe) {
        T* const at = Typed<T>::words(word, "dest", 1);
        return call([&] { return function(at, value, pe); });
      },
      "dest"_a, "value"_a, "pe"_a);
}

template <typename T, auto compare_swap>
void bind_compare_swap(Typed<T> typed) {
  typed.def(
      "_atomic_compare_swap",
      [](const Place& word, T condition, T value, int pe) {
        T* const at = Typed<T>::words(word, "dest", 1);
        return call([&] { return compare_swap(at, condition, value, pe); });
      },
      "dest"_a, "cond"_a, "value"_a, "pe"_a);
}

template <typename T>
void bind_reduce(Typed<T> typed, const std::string& operation,
                 int (*function)(shmem_team_t, T*, const T*, std::size_t)) {
  typed.def(
      "_" + operation + "_reduce",
      [=](const Place& to, const Place& from, std::size_t count, int team) {
        T* const target = to.get_writable<T>("dest", count * sizeof(T));
        const T* const source = Typed<T>::words(from, "source", count);
        return collective([&] { return function(team_of(team), target, source, count); });
      },
      "dest"_a, "source"_a, "nreduce"_a, "team"_a = 0);
}

#define MEMSPAN_ALL_TYPES(apply)                                                               \
  apply(float, float) apply(double, double) apply(char, char) apply(int8, std::int8_t)         \
      apply(int16, std::int16_t) apply(int32, std::int32_t) apply(int64, std::int64_t)         \
          apply(uint8, std::uint8_t) apply(uint16, std::uint16_t) apply(uint32, std::uint32_t) \
              apply(uint64, std::uint64_t)

#define MEMSPAN_WORD_TYPES(apply)                                                    \
  apply(int32, std::int32_t) apply(int64, std::int64_t) apply(uint32, std::uint32_t) \
      apply(uint64, std::uint64_t)

#define MEMSPAN_NUMBER_TYPES(apply)                                                             \
  apply(float, float) apply(double, double) apply(int8, std::int8_t) apply(int16, std::int16_t) \
      apply(int32, std::int32_t) apply(int64, std::int64_t) apply(uint8, std::uint8_t)          \
          apply(uint16, std::uint16_t) apply(uint32, std::uint32_t) apply(uint64, std::uint64_t)

void bind_types(nb::module_& module) {
#define MEMSPAN_MOVES(name, type)                                               \
  bind_moves<type, shmem_##name##_put, shmem_##name##_get, shmem_##name##_iput, \
             shmem_##name##_iget>(Typed<type>{module, #name});
  MEMSPAN_ALL_TYPES(MEMSPAN_MOVES)
#undef MEMSPAN_MOVES

#define MEMSPAN_SIZED(bits)                                                                       \
  bind_sized<shmem_put##bits, shmem_get##bits, shmem_iput##bits, shmem_iget##bits>(module, #bits, \
                                                                                   bits / 8);
  MEMSPAN_SIZED(8)
  MEMSPAN_SIZED(16)
  MEMSPAN_SIZED(32)
  MEMSPAN_SIZED(64)
  MEMSPAN_SIZED(128)
#undef MEMSPAN_SIZED
}

void bind_synchronization(nb::module_& module) {
#define MEMSPAN_WAITS(name, type)                                                \
  {                                                                              \
    const Typed<type> typed{module, #name};                                      \
    bind_waits<type, shmem_##name##_wait_until, shmem_##name##_test>(typed);     \
    WaitForms<type, type> one{typed, "cmp_value"};                               \
    one.all("_wait_until_all", shmem_##name##_wait_until_all);                   \
    one.all("_wait_until_any", shmem_##name##_wait_until_any);                   \
    one.some("_wait_until_some", shmem_##name##_wait_until_some);                \
    one.all("_test_all", shmem_##name##_test_all);                               \
    one.all("_test_any", shmem_##name##_test_any);                               \
    one.some("_test_some", shmem_##name##_test_some);                            \
    WaitForms<type, Place> each{typed, "cmp_values"};                            \
    each.all("_wait_until_all_vector", shmem_##name##_wait_until_all_vector);    \
    each.all("_wait_until_any_vector", shmem_##name##_wait_until_any_vector);    \
    each.some("_wait_until_some_vector", shmem_##name##_wait_until_some_vector); \
    each.all("_test_all_vector", shmem_##name##_test_all_vector);                \
    each.all("_test_any_vector", shmem_##name##_test_any_vector);                \
    each.some("_test_some_vector", shmem_##name##_test_some_vector);             \
  }
  MEMSPAN_WORD_TYPES(MEMSPAN_WAITS)
#undef MEMSPAN_WAITS
}

void bind_atomics(nb::module_& module) {
#define MEMSPAN_ACCESS(name, type)                                                 \
  bind_atomic_access<type, shmem_##name##_atomic_fetch, shmem_##name##_atomic_set, \
                     shmem_##name##_atomic_swap>(Typed<type>{module, #name});
  MEMSPAN_ACCESS(float, float)
  MEMSPAN_ACCESS(double, double)
  MEMSPAN_WORD_TYPES(MEMSPAN_ACCESS)
#undef MEMSPAN_ACCESS

#define MEMSPAN_UPDATES(name, type)                                                        \
  bind_compare_swap<type, shmem_##name##_atomic_compare_swap>(Typed<type>{module, #name}); \
  bind_update<type>({module, #name}, "add", shmem_##name##_atomic_add);                    \
  bind_update<type>({module, #name}, "and", shmem_##name##_atomic_and);                    \
  bind_update<type>({module, #name}, "or", shmem_##name##_atomic_or);                      \
  bind_update<type>({module, #name}, "xor", shmem_##name##_atomic_xor);                    \
  bind_fetch<type>({module, #name}, "add", shmem_##name##_atomic_fetch_add);               \
  bind_fetch<type>({module, #name}, "and", shmem_##name##_atomic_fetch_and);               \
  bind_fetch<type>({module, #name}, "or", shmem_##name##_atomic_fetch_or);                 \
  bind_fetch<type>({module, #name}, "xor", shmem_##name##_atomic_fetch_xor);
  MEMSPAN_WORD_TYPES(MEMSPAN_UPDATES)
#undef MEMSPAN_UPDATES
}

void bind_reductions(nb::module_& module) {
#define MEMSPAN_NUMBERS(name, type)                                       \
  bind_reduce<type>({module, #name}, "sum", shmem_##name##_sum_reduce);   \
  bind_reduce<type>({module, #name}, "prod", shmem_##name##_prod_reduce); \
  bind_reduce<type>({module, #name}, "min", shmem_##name##_min_reduce);   \
  bind_reduce<type>({module, #name}, "max", shmem_##name##_max_reduce);   \
  if constexpr (std::is_integral_v<type>) {                               \
    MEMSPAN_BITS_##name                                                   \
  }
#define MEMSPAN_BITS(name, type)                                        \
  bind_reduce<type>({module, #name}, "and", shmem_##name##_and_reduce); \
  bind_reduce<type>({module, #name}, "or", shmem_##name##_or_reduce);   \
  bind_reduce<type>({module, #name}, "xor", shmem_##name##_xor_reduce);
#define MEMSPAN_BITS_float
#define MEMSPAN_BITS_double
#define MEMSPAN_BITS_int8 MEMSPAN_BITS(int8, std::int8_t)
#define MEMSPAN_BITS_int16 MEMSPAN_BITS(int16, std::int16_t)
#define MEMSPAN_BITS_int32 MEMSPAN_BITS(int32, std::int32_t)
#define MEMSPAN_BITS_int64 MEMSPAN_BITS(int64, std::int64_t)
#define MEMSPAN_BITS_uint8 MEMSPAN_BITS(uint8, std::uint8_t)
#define MEMSPAN_BITS_uint16 MEMSPAN_BITS(uint16, std::uint16_t)
#define MEMSPAN_BITS_uint32 MEMSPAN_BITS(uint32, std::uint32_t)
#define MEMSPAN_BITS_uint64 MEMSPAN_BITS(uint64, std::uint64_t)
  MEMSPAN_NUMBER_TYPES(MEMSPAN_NUMBERS)
}

}  // namespace

void bind_openshmem(nb::module_& module) {
  module.def(
      "signal_op_on_stream",
      [](const Place& signal, std::int32_t value, int operation, int pe, Handle stream) {
        auto* const word = stream == 0 ? signal.get<std::int32_t>("sig_addr", sizeof value)
                                       : signal.get_lasting<std::int32_t>("sig_addr");
        check_signal(operation);
        return in_stream(stream, [=] { change(word, value, operation, pe); });
      },
      "sig_addr"_a, "signal"_a, "sig_op"_a, "pe"_a, "stream"_a = 0);
  module.def(
      "signal_wait_until_on_stream",
      [](const Place& signal, int compare, std::int32_t value, Handle stream) {
        auto* const word = stream == 0 ? signal.get<std::int32_t>("sig_addr", sizeof value)
                                       : signal.get_lasting<std::int32_t>("sig_addr");
        return in_stream(stream, [=] { shmem_int32_wait_until(word, compare, value); });
      },
      "sig_addr"_a, "cmp"_a, "cmp_val"_a, "stream"_a = 0);
  module.def(
      "quiet_on_stream", [](Handle stream) { return in_stream(stream, [] { shmem_quiet(); }); },
      "stream"_a = 0);
  module.def(
      "shmem_barrier_all", [] { wait([] { shmem_barrier_all(); }); },
      "Until all are here, and all that was put before is there.");
  module.def(
      "shmem_sync",
      [](int team) { return collective([&] { return shmem_team_sync(team_of(team)); }); },
      "team"_a = 0, "Until all of the team are here; says nothing of what was put.");
  module.def(
      "shmem_quiet", [] { wait([] { shmem_quiet(); }); },
      "Until all that this process put is there.");
  module.def(
      "shmem_fence", [] { call([] { shmem_fence(); }); },
      "What was put before is there before what is put later.");
  module.def(
      "shmem_put_signal64",
      [](const Place& to, const Place& from, std::size_t bytes, const Place& signal,
         std::uint64_t value, int operation, int pe) {
        void* const target = to.get("dst", bytes);
        const void* const source = from.get("src", bytes);
        auto* const word = signal.get<std::uint64_t>("sig", sizeof value);
        move(bytes,
             [&] { shmem_putmem_signal(target, source, bytes, word, value, operation, pe); });
      },
      "dst"_a, "src"_a, "elem_size"_a, "sig"_a, "signal"_a, "sig_op"_a, "pe"_a,
      "OpenSHMEM's form: the word has 64 bits.");
  module.def(
      "shmem_signal_op",
      [](const Place& signal, std::int32_t value, int operation, int pe) {
        auto* const word = signal.get<std::int32_t>("sig", sizeof value);
        check_signal(operation);
        call([&] { change(word, value, operation, pe); });
      },
      "sig"_a, "signal"_a, "sig_op"_a, "pe"_a,
      "The 32-bit word ``sig`` at ``pe`` is set to ``signal`` (0) or grows by it (1).");
  module.def(
      "shmem_signal_wait_until",
      [](const Place& signal, int compare, std::int32_t value) {
        auto* const word = signal.get<std::int32_t>("sig_addr", sizeof value);
        return wait([&] {
          shmem_int32_wait_until(word, compare, value);
          return __atomic_load_n(word, __ATOMIC_RELAXED);
        });
      },
      "sig_addr"_a, "cmp"_a, "cmp_val"_a,
      "Until the 32-bit word here compares so (``CmpOp``); the value that it had.");
  module.def(
      "shmem_signal_wait_until64",
      [](const Place& signal, int compare, std::uint64_t value) {
        auto* const word = signal.get<std::uint64_t>("sig_addr", sizeof value);
        return wait([&] { return shmem_signal_wait_until(word, compare, value); });
      },
      "sig_addr"_a, "cmp"_a, "cmp_value"_a, "The same for a word of 64 bits.");

  module.def("shmem_broadcast", broadcast, "dest"_a, "source"_a, "nbytes"_a, "root"_a, "team"_a = 0,
             "``nbytes`` of ``source`` at the root to ``dest`` at all of the team.");
  module.def(
      "shmem_collect",
      [](const Place& to, const Place& from, std::size_t bytes, int team) {
        return exchange<shmem_collectmem>(to, from, bytes, team,
                                          bytes);  // the others' counts are theirs
      },
      "dest"_a, "source"_a, "nbytes"_a, "team"_a = 0,
      "What each of the team has in ``source``, one after the other, to ``dest`` at "
      "all; they may bring different numbers of bytes.");
  module.def(
      "shmem_fcollect",
      [](const Place& to, const Place& from, std::size_t bytes, int team) {
        return exchange<shmem_fcollectmem>(to, from, bytes, team, each(bytes, team));
      },
      "dest"_a, "source"_a, "nbytes"_a, "team"_a = 0, "The same, with ``nbytes`` of each.");
  module.def(
      "shmem_alltoall",
      [](const Place& to, const Place& from, std::size_t bytes, int team) {
        from.get("source", each(bytes, team));
        return exchange<shmem_alltoallmem>(to, from, bytes, team, each(bytes, team));
      },
      "dest"_a, "source"_a, "nbytes"_a, "team"_a = 0,
      "Block i of ``source``, of ``nbytes``, to process i, as block (this process's "
      "number) there.");
  bind_types(module);
  bind_synchronization(module);
  bind_atomics(module);
  bind_reductions(module);
}

}  // namespace memspan::python
