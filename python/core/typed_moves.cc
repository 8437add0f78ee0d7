// SPDX-License-Identifier: Apache-2.0
// Putting and getting elements of each type and size, one, many, and with strides.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <shmem.h>

#include <cstdint>
#include <string>

#include "calls.h"
#include "modules.h"
#include "places.h"
#include "typed.h"

namespace memspan::python {
namespace {

using namespace nb::literals;

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

// What is said of each.
struct Sentences {
  explicit Sentences(std::size_t bytes)
      : elements("``nelems`` elements of " + bytes_in_words(bytes) + " each from ``source`` "),
        puts(elements + "here to ``dest`` at ``pe``; "),
        gets(elements + "at ``pe`` to ``dest`` here; ") {}

  std::string put() const {
    return puts +
           "``source`` may be used again at once, and they are there after ``shmem_quiet`` "
           "or a barrier.";
  }
  std::string put_nbi() const {
    return puts + "``source`` stays as it is until ``shmem_quiet``, after which they are there.";
  }
  std::string get() const { return gets + "they are there on return."; }
  std::string get_nbi() const { return gets + "they are there after ``shmem_quiet``."; }
  std::string iput() const {
    return elements +
           "here, where they begin ``sst`` elements apart, to ``dest`` at ``pe``, where they begin "
           "``dst`` elements apart. ValueError for a stride below 1.";
  }
  std::string iget() const {
    return elements +
           "at ``pe``, where they begin ``sst`` elements apart, to ``dest`` here, where they begin "
           "``dst`` elements apart. ValueError for a stride below 1.";
  }

  const std::string elements, puts, gets;
};

template <typename T, auto put_one, auto get_one>
void bind_element(Typed<T> typed) {
  const std::string one = "One element of " + bytes_in_words(sizeof(T));
  typed.def(
      "_p",
      one + ", ``value``, to ``dst`` at ``pe``; it is there after ``shmem_quiet`` or a barrier.",
      [](const Place& to, T value, int pe) {
        T* const target = to.get<T>("dst", sizeof(T));
        access(target, pe, [&] { put_one(target, value, pe); });
      },
      "dst"_a, "value"_a, "pe"_a);
  typed.def(
      "_g", one + ", the one at ``src`` at ``pe``.",
      [](const Place& from, int pe) {
        const T* const source = from.get<T>("src", sizeof(T));
        return access(source, pe, [&] { return get_one(source, pe); });
      },
      "src"_a, "pe"_a);
}

template <typename T, auto put, auto get, auto iput, auto iget>
void bind_moves(Typed<T> typed) {
  const Sentences says(sizeof(T));
  typed.def(
      "_put", says.put(),
      [](const Place& to, const Place& from, std::size_t count, int pe) {
        T* const target = Typed<T>::words(to, "dest", count);
        const T* const source = Typed<T>::local_words(from, "source", count);
        move(bytes_of(count, sizeof(T)), target, pe, [&] { put(target, source, count, pe); });
      },
      "dest"_a, "source"_a, "nelems"_a, "pe"_a);
  typed.def(
      "_get", says.get(),
      [](const Place& to, const Place& from, std::size_t count, int pe) {
        T* const target = to.get_local_writable<T>("dest", bytes_of(count, sizeof(T)));
        const T* const source = Typed<T>::words(from, "source", count);
        move(bytes_of(count, sizeof(T)), source, pe, [&] { get(target, source, count, pe); });
      },
      "dest"_a, "source"_a, "nelems"_a, "pe"_a);
  typed.def(
      "_iput", says.iput(),
      [](const Place& to, const Place& from, std::ptrdiff_t dst, std::ptrdiff_t sst,
         std::size_t count, int pe) {
        T* const target = Typed<T>::words(to, "dest", span_of(count, dst));
        const T* const source = Typed<T>::local_words(from, "source", span_of(count, sst));
        move(bytes_of(count, sizeof(T)), target, pe,
             [&] { iput(target, source, dst, sst, count, pe); });
      },
      "dest"_a, "source"_a, "dst"_a, "sst"_a, "nelems"_a, "pe"_a);
  typed.def(
      "_iget", says.iget(),
      [](const Place& to, const Place& from, std::ptrdiff_t dst, std::ptrdiff_t sst,
         std::size_t count, int pe) {
        T* const target = to.get_local_writable<T>("dest", span_of(count, dst) * sizeof(T));
        const T* const source = Typed<T>::words(from, "source", span_of(count, sst));
        move(bytes_of(count, sizeof(T)), source, pe,
             [&] { iget(target, source, dst, sst, count, pe); });
      },
      "dest"_a, "source"_a, "dst"_a, "sst"_a, "nelems"_a, "pe"_a);
}

// Elements of which only the size is known: put16, iget128_nbi...
template <auto put, auto get, auto iput, auto iget>
void bind_sized(nb::module_& module, const std::string& bits, std::size_t bytes) {
  const Sentences says(bytes);
  const auto plain = [&](const std::string& name, auto function, bool is_get,
                         const std::string& sentence) {
    def_typed(
        module, name, sentence,
        [=](const Place& to, const Place& from, std::size_t count, int pe) {
          void* const target = is_get ? to.get_local_writable("dest", bytes_of(count, bytes))
                                      : to.get("dest", bytes_of(count, bytes));
          const std::size_t size = bytes_of(count, bytes);
          const void* const source =
              is_get ? from.get("source", size) : from.get_local("source", size);
          move(bytes_of(count, bytes), is_get ? source : target, pe,
               [&] { function(target, source, count, pe); });
        },
        "dest"_a, "source"_a, "nelems"_a, "pe"_a);
  };
  const auto strided = [&](const std::string& name, auto function, bool is_get,
                           const std::string& sentence) {
    def_typed(
        module, name, sentence,
        [=](const Place& to, const Place& from, std::ptrdiff_t dst, std::ptrdiff_t sst,
            std::size_t count, int pe) {
          const std::size_t room = span_of(count, dst) * bytes;
          void* const target = is_get ? to.get_local_writable("dest", room) : to.get("dest", room);
          const std::size_t span = span_of(count, sst) * bytes;
          const void* const source =
              is_get ? from.get("source", span) : from.get_local("source", span);
          move(bytes_of(count, bytes), is_get ? source : target, pe,
               [&] { function(target, source, dst, sst, count, pe); });
        },
        "dest"_a, "source"_a, "dst"_a, "sst"_a, "nelems"_a, "pe"_a);
  };
  plain("put" + bits, put, false, says.put());
  plain("get" + bits, get, true, says.get());
  plain("put" + bits + "_nbi", put, false, says.put_nbi());
  plain("get" + bits + "_nbi", get, true, says.get_nbi());
  strided("iput" + bits, iput, false, says.iput());
  strided("iget" + bits, iget, true, says.iget());
}

}  // namespace

void bind_typed_moves(nb::module_& module) {
#define MEMSPAN_MOVES(name, type)                                               \
  bind_element<type, shmem_##name##_p, shmem_##name##_g>({module, #name});      \
  bind_moves<type, shmem_##name##_put, shmem_##name##_get, shmem_##name##_iput, \
             shmem_##name##_iget>({module, #name});
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

}  // namespace memspan::python
