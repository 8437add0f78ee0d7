// SPDX-License-Identifier: Apache-2.0
// Memory as Python gives it: an address, or an object with the buffer protocol.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace memspan::python {

namespace nb = nanobind;

// Holds the object's buffer while it lives. Move-only.
class Place {
 public:
  Place() = default;
  Place(Place&& other) noexcept
      : address_(other.address_), bytes_(other.bytes_), view_(other.view_), holds_(other.holds_) {
    other.holds_ = false;
  }
  Place& operator=(Place&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    std::swap(view_, other.view_);
    std::swap(holds_, other.holds_);
    return *this;
  }
  ~Place() {
    if (holds_) PyBuffer_Release(&view_);
  }

  // False, with no Python error, for what is neither.
  bool read(PyObject* object) noexcept {
    if (PyLong_Check(object)) {
      address_ = PyLong_AsVoidPtr(object);
      if (address_ != nullptr || !PyErr_Occurred()) return true;
      PyErr_Clear();
      return false;
    }
    if (!PyObject_CheckBuffer(object)) return false;
    // Written to only where the call does; who passes bytes as a target finds that out as in C.
    if (PyObject_GetBuffer(object, &view_, PyBUF_SIMPLE) != 0) {
      PyErr_Clear();
      return false;
    }
    holds_ = true;
    address_ = view_.buf;
    bytes_ = static_cast<std::size_t>(view_.len);
    return true;
  }

  // Of at least so many bytes, where that is known.
  template <typename T = void>
  T* get(const char* name, std::size_t bytes) const {
    if (bytes > bytes_)
      throw nb::value_error((std::string(name) + " has " + std::to_string(bytes_) +
                             " bytes, needed are " + std::to_string(bytes))
                                .c_str());
    return static_cast<T*>(address_);
  }
  // The same, and it may be written to.
  template <typename T = void>
  T* get_writable(const char* name, std::size_t bytes) const {
    if (holds_ && view_.readonly)
      throw nb::value_error((std::string(name) + " is read-only").c_str());
    return get<T>(name, bytes);
  }
  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(address_); }

 private:
  void* address_ = nullptr;
  std::size_t bytes_ = SIZE_MAX;  // not known for an address
  Py_buffer view_{};
  bool holds_ = false;
};

}  // namespace memspan::python

NAMESPACE_BEGIN(NB_NAMESPACE)
NAMESPACE_BEGIN(detail)
template <>
struct type_caster<memspan::python::Place> {
  NB_TYPE_CASTER(memspan::python::Place, const_name("int | Buffer"))
  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    return value.read(source.ptr());
  }
};
NAMESPACE_END(detail)
NAMESPACE_END(NB_NAMESPACE)
