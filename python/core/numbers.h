// SPDX-License-Identifier: Apache-2.0
// Arrays of addresses and sizes: lists and tuples of ints, or objects with a buffer of 8-byte
// integers (numpy's uint64 and int64), which are not copied.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "held_buffer.h"

namespace memspan::python {

namespace nb = nanobind;

// Holds the object's buffer while it lives. Move-only.
class Numbers {
 public:
  // False, with no Python error, for what is neither.
  bool read(PyObject* object) noexcept {
    if (PyList_Check(object) || PyTuple_Check(object)) return read_sequence(object);
    return read_buffer(object);
  }

  const std::uint64_t* data() const { return data_; }
  std::size_t size() const { return count_; }
  // As C takes them.
  void** pointers() const { return reinterpret_cast<void**>(const_cast<std::uint64_t*>(data_)); }

 private:
  bool read_sequence(PyObject* sequence) noexcept {
    const Py_ssize_t count = PyObject_Size(sequence);
    const bool is_list = PyList_Check(sequence);
    copy_.resize(static_cast<std::size_t>(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* item = is_list ? PyList_GetItem(sequence, i) : PyTuple_GetItem(sequence, i);
      if (item == nullptr || !read_number(item, copy_[static_cast<std::size_t>(i)])) {
        PyErr_Clear();
        return false;
      }
    }
    data_ = copy_.data();
    count_ = copy_.size();
    return true;
  }

  // Also of what can stand for an int, as numpy's numbers.
  static bool read_number(PyObject* item, std::uint64_t& number) noexcept {
    if (PyLong_Check(item)) {
      number = PyLong_AsUnsignedLongLong(item);
      return number != static_cast<std::uint64_t>(-1) || !PyErr_Occurred();
    }
    PyObject* index = PyNumber_Index(item);
    if (index == nullptr) return false;
    number = PyLong_AsUnsignedLongLong(index);
    Py_DECREF(index);
    return number != static_cast<std::uint64_t>(-1) || !PyErr_Occurred();
  }

  bool read_buffer(PyObject* object) noexcept {
    if (!buffer_.take(object, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)) return false;
    const Py_buffer& view = *buffer_.get();
    const char* format = view.format == nullptr ? "" : view.format;
    if (*format == '@' || *format == '=' || *format == '<') ++format;
    const bool is_integer = std::string("LlQq").find(*format) != std::string::npos && *format != 0;
    if (!is_integer || view.itemsize != sizeof(std::uint64_t)) return false;
    data_ = static_cast<const std::uint64_t*>(view.buf);
    count_ = static_cast<std::size_t>(view.len) / sizeof(std::uint64_t);
    return true;
  }

  const std::uint64_t* data_ = nullptr;
  std::size_t count_ = 0;
  std::vector<std::uint64_t> copy_;
  HeldBuffer buffer_;
};

}  // namespace memspan::python

NAMESPACE_BEGIN(NB_NAMESPACE)
NAMESPACE_BEGIN(detail)
template <>
struct type_caster<memspan::python::Numbers> {
  NB_TYPE_CASTER(memspan::python::Numbers, const_name("Sequence[int] | Buffer | Array"))
  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    return value.read(source.ptr());
  }
};
NAMESPACE_END(detail)
NAMESPACE_END(NB_NAMESPACE)
