// SPDX-License-Identifier: Apache-2.0
// CANN SHMEM's functions on memory and streams of a GPU, for packages that know both: addresses are
// the GPU's or the host's, and nobody looks at them here. A stream is a cudaStream_t, by its
// number.
#include <aclshmem.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "addresses.h"
#include "calls.h"
#include "handles.h"
#include "in_lines.h"
#include "modules.h"

namespace memspan::python {
namespace {

using namespace nb::literals;

nb::object allocate_zeros(std::size_t count, std::size_t size) {
  void* const made = wait([&] { return aclshmemx_calloc(count, size, DEVICE_SIDE); });
  if (made == nullptr) on_null();
  return make_address(made, count * size, Side::kDevice);
}

// Elements are named by their size alone: who takes the array knows their type.
nb::dlpack::dtype type_of_size(std::size_t bytes) {
  using nb::dlpack::dtype_code;
  const auto code = bytes == 1    ? dtype_code::UInt
                    : bytes == 16 ? dtype_code::Complex
                                  : dtype_code::Int;
  if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8 && bytes != 16)
    throw nb::value_error(
        ("itemsize is " + std::to_string(bytes) + ", allowed are 1, 2, 4, 8 and 16").c_str());
  return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bytes * 8), 1};
}

nb::object array_at(Handle address, const std::vector<std::size_t>& shape,
                    const std::vector<std::int64_t>& strides, std::size_t itemsize, int ordinal,
                    nb::handle owner) {
  if (strides.size() != shape.size())
    throw nb::value_error(("shape has " + std::to_string(shape.size()) +
                           " dimensions, and strides " + std::to_string(strides.size()))
                              .c_str());
  const nb::ndarray<> array(pointer_of(address), shape.size(), shape.data(), owner, strides.data(),
                            type_of_size(itemsize), nb::device::cuda::value, ordinal);
  return nb::cast(array);
}

}  // namespace

// The driver may wait when memory is not pinned: all of them give up the GIL.
void bind_device(nb::module_& module) {
  module.def("calloc", allocate_zeros, "nmemb"_a, "size"_a,
             nb::sig("def calloc(nmemb: int, size: int) -> Address | None"),
             in_lines("``nmemb * size`` bytes of zeros of the symmetric heap's part in the GPU, "
                      "which ``shmem.free`` gives back; None when there are none. Collective.")
                 .c_str());
  module.def("array", array_at, "address"_a, "shape"_a, "strides"_a, "itemsize"_a, "ordinal"_a,
             "owner"_a,
             nb::sig("def array(address: int, shape: Sequence[int], strides: Sequence[int], "
                     "itemsize: int, ordinal: int, owner: object) -> object"),
             in_lines("A capsule of DLPack: memory of the GPU of that number as integers (complex "
                      "numbers for 16 bytes), with strides in elements. It keeps ``owner``.")
                 .c_str());
  module.def(
      "putmem_on_stream",
      [](Handle target, Handle source, std::size_t bytes, int pe, Handle stream) {
        call_without_gil([&] {
          aclshmemx_putmem_on_stream(pointer_of(target), pointer_of(source), bytes, pe,
                                     pointer_of(stream));
        });
      },
      "dst"_a, "src"_a, "bytes"_a, "pe"_a, "stream"_a,
      "Bytes from ``src`` here to ``dst`` at ``pe`` in the order of the stream.");
  module.def(
      "getmem_on_stream",
      [](Handle target, Handle source, std::size_t bytes, int pe, Handle stream) {
        call_without_gil([&] {
          aclshmemx_getmem_on_stream(pointer_of(target), pointer_of(source), bytes, pe,
                                     pointer_of(stream));
        });
      },
      "dst"_a, "src"_a, "bytes"_a, "pe"_a, "stream"_a,
      "Bytes from ``src`` at ``pe`` to ``dst`` here in the order of the stream.");
  module.def(
      "signal_op_on_stream",
      [](Handle word, std::int32_t value, int operation, int pe, Handle stream) {
        call_without_gil([&] {
          aclshmemx_signal_op_on_stream(static_cast<std::int32_t*>(pointer_of(word)), value,
                                        operation, pe, pointer_of(stream));
        });
      },
      "sig_addr"_a, "signal"_a, "sig_op"_a, "pe"_a, "stream"_a,
      in_lines("The 32-bit word at ``pe`` is set to ``signal`` (``SignalOp`` 0) or grows by it (1) "
               "in the order of the stream.")
          .c_str());
  module.def(
      "signal_wait_until_on_stream",
      [](Handle word, int compare, std::int32_t value, Handle stream) {
        call_without_gil([&] {
          aclshmemx_signal_wait_until_on_stream(static_cast<std::int32_t*>(pointer_of(word)),
                                                compare, value, pointer_of(stream));
        });
      },
      "sig_addr"_a, "cmp"_a, "cmp_val"_a, "stream"_a,
      in_lines("What the stream does later waits until the 32-bit word here compares so "
               "(``CmpOp``) with ``cmp_val``.")
          .c_str());
  module.def(
      "quiet_on_stream",
      [](Handle stream) {
        call_without_gil([&] { aclshmemx_quiet_on_stream(pointer_of(stream)); });
      },
      "stream"_a, "All that this process put is there before the stream goes on.");
  module.def(
      "barrier_all_on_stream",
      [](Handle stream) {
        call_without_gil([&] { aclshmemx_barrier_all_on_stream(pointer_of(stream)); });
      },
      "stream"_a, "A barrier of all in the order of the stream.");
}

}  // namespace memspan::python
