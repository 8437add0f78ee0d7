// SPDX-License-Identifier: Apache-2.0
// A Python object's buffer, held so that it does not move.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

namespace memspan::python {

// Move-only value; with the GIL.
class HeldBuffer {
 public:
  HeldBuffer() = default;
  HeldBuffer(HeldBuffer&& other) noexcept
      : view_(other.view_), holds_(std::exchange(other.holds_, false)) {}
  HeldBuffer& operator=(HeldBuffer&& other) noexcept {
    std::swap(view_, other.view_);
    std::swap(holds_, other.holds_);
    return *this;
  }
  ~HeldBuffer() {
    if (holds_) PyBuffer_Release(&view_);
  }

  // False, with no Python error, when the object has no such buffer.
  bool take(PyObject* object, int flags) noexcept {
    if (!PyObject_CheckBuffer(object)) return false;
    holds_ = PyObject_GetBuffer(object, &view_, flags) == 0;
    if (!holds_) PyErr_Clear();
    return holds_;
  }
  const Py_buffer* get() const { return holds_ ? &view_ : nullptr; }

 private:
  Py_buffer view_{};
  bool holds_ = false;
};

}  // namespace memspan::python
