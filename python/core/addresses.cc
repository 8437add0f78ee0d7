// SPDX-License-Identifier: Apache-2.0
#include "addresses.h"
#include "in_lines.h"

#include <fcntl.h>
#include <memspan/memspan.h>
#include <nanobind/ndarray.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace memspan::python {
namespace {

struct Extent {
  std::size_t bytes;
  std::uintptr_t local;  // of which allocation of this process it is a copy, or itself
  Side side;
};

// By their beginning; the GIL protects it. Never destroyed: finalizers may ask.
using Extents = std::map<std::uintptr_t, Extent>;
Extents& extents() {
  static auto* const known = new Extents;
  return *known;
}

// The one that it lies in; end() for none.
Extents::const_iterator extent_at(std::uintptr_t address) {
  const auto next = extents().upper_bound(address);
  if (next == extents().begin()) return extents().end();
  const auto found = std::prev(next);
  return address - found->first < found->second.bytes ? found : extents().end();
}

// Whether the bytes at both are memory of this process. Where the kernel has no process_vm_readv,
// or a filter of system calls takes it, a pipe is asked, which copies from there, too.
bool can_be_read(std::uintptr_t first, std::uintptr_t last) {
  char read[2];
  const iovec here = {read, sizeof read};
  const iovec there[] = {{reinterpret_cast<void*>(first), 1}, {reinterpret_cast<void*>(last), 1}};
  auto got = process_vm_readv(getpid(), &here, 1, there, 2, 0);
  int ends[2];
  if (got < 0 && errno != EFAULT) {
    if (pipe2(ends, O_CLOEXEC) != 0) return true;  // nobody can be asked
    got = writev(ends[1], there, 2);
    close(ends[0]);
    close(ends[1]);
  }
  return got == sizeof read;
}

// The pages of views that outlived their job.
class KeptPages {
 public:
  KeptPages(std::uintptr_t begin, std::uintptr_t end) : begin_(begin), end_(end) {}
  KeptPages(const KeptPages&) = delete;
  KeptPages& operator=(const KeptPages&) = delete;
  ~KeptPages() { munmap(reinterpret_cast<void*>(begin_), end_ - begin_); }
  std::uintptr_t end() const { return end_; }

 private:
  std::uintptr_t begin_, end_;
};

// A buffer or an array of the heap.
struct View {
  std::uintptr_t address;
  std::size_t bytes;
  nb::object what;                  // for an array, what to call it
  std::shared_ptr<KeptPages> kept;  // owners: the views in these pages
  std::list<View>::iterator self;
  bool stays = false;  // its pages do when the job ends
};

// The GIL protects them. Never destroyed: finalizers may ask.
std::list<View>& views() {
  static auto* const all = new std::list<View>;
  return *all;
}

View* add_view(std::uintptr_t address, std::size_t bytes, nb::object what = nb::none()) {
  views().push_back({address, bytes, std::move(what), nullptr, {}, false});
  View& made = views().back();
  made.self = std::prev(views().end());
  return &made;
}

void remove_view(View* view) noexcept {
  views().erase(view->self);
}

nb::capsule capsule_of(View* view) {
  return nb::capsule(view, [](void* kept) noexcept { remove_view(static_cast<View*>(kept)); });
}

PyTypeObject* address_type = nullptr;  // owned by the module, which is never unloaded

// The beginning of this process's allocation that it lies in, itself or its copy at a peer.
std::uintptr_t allocation_of(std::uintptr_t address) {
  const auto found = extent_at(address);
  if (found == extents().end())
    throw nb::value_error("not, or no longer, memory of the symmetric heap");
  return found->second.local;
}

std::uintptr_t number_of(PyObject* self) {
  return reinterpret_cast<std::uintptr_t>(PyLong_AsVoidPtr(self));
}

// Bytes from there on that the host can load, BufferError for none.
std::size_t loadable_from(std::uintptr_t address) {
  const auto found = extent_at(address);
  if (found == extents().end())
    throw nb::buffer_error(
        (std::to_string(address) + " is not, or no longer, memory of the symmetric heap").c_str());
  if (found->second.side == Side::kDevice)
    throw nb::buffer_error(
        (std::to_string(address) + " is memory of a device, which the host cannot load: get it")
            .c_str());
  return bytes_from(address);
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  const std::uintptr_t address = number_of(self);
  std::size_t bytes = 0;
  try {
    bytes = loadable_from(address);
  } catch (const nb::builtin_exception& error) {
    PyErr_SetString(PyExc_BufferError, error.what());
    return -1;
  }
  if (PyBuffer_FillInfo(view, self, reinterpret_cast<void*>(address),
                        static_cast<Py_ssize_t>(bytes), 0, flags) != 0)
    return -1;
  view->internal = add_view(address, bytes);
  return 0;
}

void release_buffer(PyObject*, Py_buffer* view) {
  remove_view(static_cast<View*>(view->internal));
}

nb::object new_address(std::uintptr_t number) {
  return nb::steal(PyObject_CallFunction(reinterpret_cast<PyObject*>(address_type), "K",
                                         static_cast<unsigned long long>(number)));
}

PyTypeObject* make_type() {
  static PyType_Slot slots[] = {
      {Py_tp_doc, const_cast<char*>("An address of the symmetric heap: an int, and the bytes from "
                                    "there to the end of the allocation as a writable buffer.")},
      {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
      {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
      {0, nullptr}};
  static PyType_Spec spec = {"memspan._core.Address", 0, 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  PyObject* bases = PyTuple_Pack(1, reinterpret_cast<PyObject*>(&PyLong_Type));
  auto* made = reinterpret_cast<PyTypeObject*>(PyType_FromSpecWithBases(&spec, bases));
  Py_XDECREF(bases);
  if (made == nullptr) throw nb::python_error();
  return made;
}

}  // namespace

std::size_t bytes_from(std::uintptr_t address) {
  const auto found = extent_at(address);
  return found == extents().end() ? 0 : found->first + found->second.bytes - address;
}

Side side_of(const void* base) {
  const auto found = extent_at(reinterpret_cast<std::uintptr_t>(base));
  return found == extents().end() ? Side::kHost : found->second.side;
}

void check_address(const char* name, std::uintptr_t address, std::size_t bytes) {
  if (bytes == 0 || bytes_from(address) >= bytes) return;
  std::uintptr_t last = 0;
  if (__builtin_add_overflow(address, bytes - 1, &last) || !can_be_read(address, last))
    throw nb::value_error((std::string(name) + " is " + std::to_string(address) + ", and the " +
                           std::to_string(bytes) + " bytes there are not memory of this process")
                              .c_str());
}

nb::object make_address(void* base, std::size_t bytes, Side side) {
  if (base == nullptr) return nb::none();
  const auto number = reinterpret_cast<std::uintptr_t>(base);
  extents().insert_or_assign(number, Extent{bytes, number, side});
  return new_address(number);
}

nb::object make_peer_address(void* peers, const void* local) {
  if (peers == nullptr) return nb::none();
  const auto here = reinterpret_cast<std::uintptr_t>(local);
  const auto there = reinterpret_cast<std::uintptr_t>(peers);
  const auto found = extent_at(here);
  if (here != there && found != extents().end()) {
    const auto [base, extent] = *found;
    extents().insert_or_assign(there - (here - base), extent);
  }
  return new_address(there);
}

void forget_address(const void* base) {
  const auto local = reinterpret_cast<std::uintptr_t>(base);
  std::erase_if(extents(), [&](const auto& entry) { return entry.second.local == local; });
}

bool is_allocation(const void* base) {
  const auto number = reinterpret_cast<std::uintptr_t>(base);
  const auto found = extents().find(number);
  return found != extents().end() && found->second.local == number;
}

void forget_addresses() {
  extents().clear();
}

void keep_viewed_memory() {
  for (View& view : views())
    view.stays = view.kept == nullptr &&
                 memspan_keep_pages(reinterpret_cast<void*>(view.address), view.bytes) == 0;
}

// In the order of their addresses, so that views in the same pages follow each other.
void own_kept_memory() {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  std::map<std::uintptr_t, std::uintptr_t> ranges;  // from where to where, whole pages
  for (const View& view : views()) {
    if (!view.stays) continue;
    auto& end = ranges[view.address / page * page];
    end = std::max(end, (view.address + view.bytes + page - 1) / page * page);
  }
  std::map<std::uintptr_t, std::shared_ptr<KeptPages>> kept;
  for (auto range = ranges.begin(); range != ranges.end();) {
    const std::uintptr_t begin = range->first;
    std::uintptr_t end = range->second;
    for (++range; range != ranges.end() && range->first < end; ++range)
      end = std::max(end, range->second);
    kept.emplace(begin, std::make_shared<KeptPages>(begin, end));
  }
  for (View& view : views())
    if (std::exchange(view.stays, false))
      view.kept = std::prev(kept.upper_bound(view.address))->second;
}

void bind_addresses(nb::module_& module) {
  address_type = make_type();
  module.attr("Address") = nb::handle(reinterpret_cast<PyObject*>(address_type));
  module.def("bytes_from", bytes_from, nb::arg("address"),
             "Bytes from there to the end of its allocation; 0 when it is in none.");
  module.def("allocation_of", allocation_of, nb::arg("address"),
             in_lines("Where this process's allocation begins that it, or its copy at a peer, lies "
                      "in; ValueError when it is in none.")
                 .c_str());
  module.def(
      "hold",
      [](nb::handle address, nb::object what) {
        const std::uintptr_t base = number_of(address.ptr());
        return capsule_of(add_view(base, bytes_from(base), std::move(what)));
      },
      nb::arg("address"), nb::arg("what"),
      nb::sig("def hold(address: int, what: object) -> object"),
      "While the result lives, an array that is called ``what`` is there of the memory at "
      "``address``.");
  module.def(
      "views",
      [] {
        nb::list all;
        for (const View& view : views())
          if (view.kept == nullptr) all.append(nb::make_tuple(view.address, view.bytes, view.what));
        return all;
      },
      nb::sig("def views() -> list[tuple[int, int, object]]"),
      "(address, bytes, what) of all arrays and buffers of the heap; ``what`` is None for a "
      "buffer.");
  // What Address.__dlpack__ returns: its bytes as a one-dimensional array of uint8.
  module.def(
      "to_dlpack",
      [](nb::handle address) {
        const std::uintptr_t base = number_of(address.ptr());
        const std::size_t bytes = loadable_from(base);
        // Counted as a buffer is, until nobody has the array any more.
        const nb::capsule use = capsule_of(add_view(base, bytes));
        return nb::ndarray<std::uint8_t, nb::ndim<1>>(reinterpret_cast<void*>(base), {bytes}, use);
      },
      nb::arg("address"), nb::sig("def to_dlpack(address: Address) -> object"),
      "Its bytes as a capsule of DLPack, one-dimensional, of uint8.");
}

}  // namespace memspan::python
