// SPDX-License-Identifier: Apache-2.0
// A memory argument: an address, or an object with the buffer protocol.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "addresses.h"
#include "held_buffer.h"

namespace memspan::python {

namespace nb = nanobind;

// Holds the object's buffer while it lives. Move-only.
class Place {
 public:
  // False, with no Python error, for what is neither.
  bool read(PyObject* object) noexcept {
    if (PyLong_Check(object)) {
      address_ = PyLong_AsVoidPtr(object);
      if (address_ != nullptr || !PyErr_Occurred()) return true;
      PyErr_Clear();
      return false;
    }
    // Read-only objects are accepted: a call that writes to one does so, as in C.
    if (!buffer_.take(object, PyBUF_ND)) return false;
    // numpy's numbers have their own bytes as a buffer, but stand for addresses.
    if (buffer_.get()->ndim == 0 && buffer_.get()->readonly && PyIndex_Check(object)) {
      buffer_ = HeldBuffer();
      PyObject* number = PyNumber_Index(object);
      address_ = number == nullptr ? nullptr : PyLong_AsVoidPtr(number);
      Py_XDECREF(number);
      const bool is_read = !PyErr_Occurred();
      PyErr_Clear();
      return is_read;
    }
    address_ = buffer_.get()->buf;
    bytes_ = static_cast<std::size_t>(buffer_.get()->len);
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
    if (buffer_.get() != nullptr && buffer_.get()->readonly)
      throw nb::value_error((std::string(name) + " is read-only").c_str());
    return get<T>(name, bytes);
  }
  // The same for memory of this process alone: an address must at least be one.
  template <typename T = void>
  T* get_local(const char* name, std::size_t bytes) const {
    if (buffer_.get() == nullptr) check_address(name, address(), bytes);
    return get<T>(name, bytes);
  }
  template <typename T = void>
  T* get_local_writable(const char* name, std::size_t bytes) const {
    if (buffer_.get() == nullptr) check_address(name, address(), bytes);
    return get_writable<T>(name, bytes);
  }
  // For work that goes on after the call: an address only, since a buffer is released with the
  // call.
  template <typename T = void>
  T* get_lasting(const char* name) const {
    if (buffer_.get() != nullptr)
      throw nb::value_error((std::string(name) +
                             " is an object, and needed is an address, since the work goes on "
                             "after the call; keep the object until it is done")
                                .c_str());
    return static_cast<T*>(address_);
  }
  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(address_); }

 private:
  void* address_ = nullptr;
  std::size_t bytes_ = SIZE_MAX;  // not known for an address
  HeldBuffer buffer_;
};

}  // namespace memspan::python

NAMESPACE_BEGIN(NB_NAMESPACE)
NAMESPACE_BEGIN(detail)
template <>
struct type_caster<memspan::python::Place> {
  NB_TYPE_CASTER(memspan::python::Place, const_name("int | Buffer | Array"))
  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    return value.read(source.ptr());
  }
};
NAMESPACE_END(detail)
NAMESPACE_END(NB_NAMESPACE)
