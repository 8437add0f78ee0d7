// SPDX-License-Identifier: Apache-2.0
// Groups of processes on ordinary memory (memspan/group.h): addresses in, codes out.
#include <memspan/group.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include <cstring>
#include <tuple>

#include "calls.h"
#include "handles.h"
#include "modules.h"
#include "numbers.h"

namespace memspan::python {
namespace {

memspan_group_t group_of(Handle handle) {
  return static_cast<memspan_group_t>(pointer_of(handle));
}
memspan_group_request_t request_of(Handle handle) {
  return static_cast<memspan_group_request_t>(pointer_of(handle));
}
std::size_t* sizes_of(const Numbers& numbers) {
  static_assert(sizeof(std::size_t) == sizeof(std::uint64_t));
  return reinterpret_cast<std::size_t*>(const_cast<std::uint64_t*>(numbers.data()));
}
// Null for none, as at those who are not the root.
void** list_of(const Numbers& numbers) {
  return numbers.size() == 0 ? nullptr : numbers.pointers();
}
const void* const* constant(const Numbers& numbers) {
  return const_cast<const void* const*>(list_of(numbers));
}

struct Exchange {
  nb::callable function;
  int size;
  nb::python_error* failure = nullptr;
};

// Calls function(bytes), which gives the bytes of all in the order of ranks. Runs with the GIL.
int exchange(void* user, const void* mine, std::size_t bytes, void* all) {
  auto& self = *static_cast<Exchange*>(user);
  const nb::gil_scoped_acquire held;
  try {
    const auto given = nb::cast<nb::bytes>(self.function(nb::bytes(mine, bytes)));
    if (given.size() != bytes * static_cast<std::size_t>(self.size)) return -1;
    std::memcpy(all, given.c_str(), given.size());
    return 0;
  } catch (nb::python_error& error) {
    self.failure = new nb::python_error(error);
    return -2;
  } catch (const std::exception&) {
    return -3;
  }
}

std::tuple<int, Handle> create(int rank, int size, nb::callable function, std::uint32_t limit_ms) {
  Exchange by{std::move(function), size};
  memspan_group_t group = nullptr;
  const int code =
      wait([&] { return memspan_group_create(rank, size, exchange, &by, limit_ms, &group); });
  if (by.failure != nullptr) {
    nb::python_error failure(std::move(*by.failure));
    delete by.failure;
    throw failure;
  }
  return {code, handle_of(group)};
}

std::tuple<int, Handle> post(bool sends, Handle group, int member, std::int64_t tag, Handle memory,
                             std::size_t bytes) {
  memspan_group_request_t request = nullptr;
  void* const place = pointer_of(memory);
  const int code = wait([&] {
    return sends ? memspan_group_send(group_of(group), member, tag, place, bytes, &request)
                 : memspan_group_receive(group_of(group), member, tag, place, bytes, &request);
  });
  return {code, handle_of(request)};
}

}  // namespace

void bind_group(nb::module_& module) {
  using namespace nb::literals;
  module.attr("PENDING") = MEMSPAN_GROUP_PENDING;
  module.attr("ANYBODY") = MEMSPAN_GROUP_ANYBODY;
  module.attr("OK") = static_cast<int>(SMEM_OK);
  module.attr("INVALID_PARAM") = static_cast<int>(SMEM_INVALID_PARAM);
  module.attr("TIMEOUT") = static_cast<int>(SMEM_TIMEOUT);
  module.def("create", &create, "rank"_a, "size"_a, "exchange"_a, "timeout_ms"_a);
  module.def(
      "destroy",
      [](Handle group) { return wait([&] { return memspan_group_destroy(group_of(group)); }); },
      "group"_a);
  module.def(
      "leave",
      [](Handle group) { return call([&] { return memspan_group_leave(group_of(group)); }); },
      "group"_a);
  module.def(
      "set_timeout",
      [](Handle group, std::uint32_t timeout_ms) {
        return call([&] { return memspan_group_set_timeout(group_of(group), timeout_ms); });
      },
      "group"_a, "timeout_ms"_a);
  module.def(
      "arrive",
      [](Handle group) { return call([&] { return memspan_group_arrive(group_of(group)); }); },
      "group"_a);
  module.def(
      "wait_for_arrivals",
      [](Handle group, std::uint32_t patience_us) {
        return wait([&] { return memspan_group_wait_for_arrivals(group_of(group), patience_us); });
      },
      "group"_a, "patience_us"_a);
  module.def(
      "barrier",
      [](Handle group) { return wait([&] { return memspan_group_barrier(group_of(group)); }); },
      "group"_a);
  module.def(
      "broadcast",
      [](Handle group, Handle values, std::size_t bytes, int root) {
        return wait([&] {
          return memspan_group_broadcast(group_of(group), pointer_of(values), bytes, root);
        });
      },
      "group"_a, "values"_a, "bytes"_a, "root"_a);
  module.def(
      "all_reduce",
      [](Handle group, Handle result, Handle values, std::size_t count, int type, int op) {
        return wait([&] {
          return memspan_group_all_reduce(group_of(group), pointer_of(result), pointer_of(values),
                                          count, static_cast<memspan_type_t>(type),
                                          static_cast<memspan_op_t>(op));
        });
      },
      "group"_a, "result"_a, "values"_a, "count"_a, "type"_a, "op"_a);
  module.def(
      "reduce",
      [](Handle group, Handle result, Handle values, std::size_t count, int type, int op,
         int root) {
        return wait([&] {
          return memspan_group_reduce(group_of(group), pointer_of(result), pointer_of(values),
                                      count, static_cast<memspan_type_t>(type),
                                      static_cast<memspan_op_t>(op), root);
        });
      },
      "group"_a, "result"_a, "values"_a, "count"_a, "type"_a, "op"_a, "root"_a);
  module.def(
      "reduce_scatter",
      [](Handle group, Handle result, const Numbers& values, std::size_t count, int type, int op) {
        return wait([&] {
          return memspan_group_reduce_scatter(group_of(group), pointer_of(result), constant(values),
                                              count, static_cast<memspan_type_t>(type),
                                              static_cast<memspan_op_t>(op));
        });
      },
      "group"_a, "result"_a, "values"_a, "count"_a, "type"_a, "op"_a);
  module.def(
      "all_gather",
      [](Handle group, const Numbers& results, Handle values, std::size_t bytes) {
        return wait([&] {
          return memspan_group_all_gather(group_of(group), list_of(results), pointer_of(values),
                                          bytes);
        });
      },
      "group"_a, "results"_a, "values"_a, "bytes"_a);
  module.def(
      "gather",
      [](Handle group, const Numbers& results, Handle values, std::size_t bytes, int root) {
        return wait([&] {
          return memspan_group_gather(group_of(group), list_of(results), pointer_of(values), bytes,
                                      root);
        });
      },
      "group"_a, "results"_a, "values"_a, "bytes"_a, "root"_a);
  module.def(
      "scatter",
      [](Handle group, Handle result, const Numbers& values, std::size_t bytes, int root) {
        return wait([&] {
          return memspan_group_scatter(group_of(group), pointer_of(result), constant(values), bytes,
                                       root);
        });
      },
      "group"_a, "result"_a, "values"_a, "bytes"_a, "root"_a);
  module.def(
      "all_to_all",
      [](Handle group, const Numbers& results, const Numbers& result_bytes, const Numbers& values,
         const Numbers& value_bytes) {
        return wait([&] {
          return memspan_group_all_to_all(group_of(group), list_of(results), sizes_of(result_bytes),
                                          constant(values), sizes_of(value_bytes));
        });
      },
      "group"_a, "results"_a, "result_bytes"_a, "values"_a, "value_bytes"_a);
  module.def("post", &post, "sends"_a, "group"_a, "member"_a, "tag"_a, "memory"_a, "bytes"_a);
  module.def(
      "test",
      [](Handle request) { return wait([&] { return memspan_group_test(request_of(request)); }); },
      "request"_a);
  module.def(
      "wait",
      [](Handle request, std::uint32_t timeout_ms) {
        return wait([&] { return memspan_group_wait(request_of(request), timeout_ms); });
      },
      "request"_a, "timeout_ms"_a);
  module.def(
      "sender", [](Handle request) { return memspan_group_sender(request_of(request)); },
      "request"_a);
  module.def(
      "free",
      [](Handle request) {
        return wait([&] { return memspan_group_request_free(request_of(request)); });
      },
      "request"_a);
}

}  // namespace memspan::python
