// SPDX-License-Identifier: Apache-2.0
// MemFabric's Trans, and memspan's requests on top of it.
#include <memspan/transfer.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <smem/host/smem_trans.h>

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "c_text.h"
#include "callbacks.h"
#include "calls.h"
#include "handles.h"
#include "modules.h"
#include "numbers.h"
#include "places.h"

namespace memspan::python {
namespace {

// Of every endpoint, its peer-down function; the GIL protects them.
std::map<Handle, Callback>& down_functions() {
  static auto* const functions = new std::map<Handle, Callback>;
  return *functions;
}

void on_down(const char* peer, void* endpoint) {
  if (!Py_IsInitialized()) return;
  const nb::gil_scoped_acquire held;
  const auto found = down_functions().find(handle_of(endpoint));
  if (found != down_functions().end())
    call_back(found->second.get(), "the peer-down function", peer);
}

struct Pieces {
  const Numbers* local;
  const Numbers* remote;
  const Numbers* bytes;
  std::uint32_t count;
};

// ValueError when the lists differ in length.
Pieces pieces_of(const Numbers& local, const Numbers& remote, const Numbers& bytes) {
  if (local.size() != remote.size() || local.size() != bytes.size())
    throw nb::value_error(("there are " + std::to_string(local.size()) + " buffers, " +
                           std::to_string(remote.size()) + " peer buffers and " +
                           std::to_string(bytes.size()) + " lengths; their numbers must be equal")
                              .c_str());
  if (local.size() > UINT32_MAX)
    throw nb::value_error(
        ("there are " + std::to_string(local.size()) + " pieces, allowed are up to 4294967295")
            .c_str());
  return {&local, &remote, &bytes, static_cast<std::uint32_t>(local.size())};
}

std::size_t* sizes_of(const Numbers& numbers) {
  static_assert(sizeof(std::size_t) == sizeof(std::uint64_t));
  return reinterpret_cast<std::size_t*>(const_cast<std::uint64_t*>(numbers.data()));
}

int create_code(smem_trans_t made) {
  return made != nullptr ? SMEM_OK : smem_get_last_err_code();
}

std::tuple<int, Handle> create(const std::string& url, const std::string& name, std::uint32_t role,
                               std::uint32_t timeout, std::uint32_t device, std::uint32_t flags,
                               std::uint32_t operations, bool may_host) {
  smem_trans_config_t config = {};
  std::memcpy(&config.role, &role, sizeof role);
  config.initTimeout = timeout;
  config.deviceId = device;
  config.flags = flags;
  std::memcpy(&config.dataOpType, &operations, sizeof operations);
  config.startConfigServer = may_host;
  smem_trans_t made = nullptr;
  const int code = wait([&] {
    const int ready = smem_trans_init(&config);
    if (ready != SMEM_OK) return ready;
    made = smem_trans_create(c_text("store_url", url), c_text("session_id", name), &config);
    return create_code(made);
  });
  return {smem_code(code), handle_of(made)};
}

int move_one(Handle endpoint, bool writes, const std::string& peer, const Place& local,
             Handle remote, std::size_t bytes, std::uint32_t flags) {
  void* const here = writes ? local.get("buffer", bytes) : local.get_writable("buffer", bytes);
  void* const there = pointer_of(remote);
  return smem_code(wait([&] {
    return writes ? smem_trans_write(pointer_of(endpoint), here, c_text("session_id", peer), there,
                                     bytes, flags)
                  : smem_trans_read(pointer_of(endpoint), here, c_text("session_id", peer), there,
                                    bytes, flags);
  }));
}

int move_batch(Handle endpoint, bool writes, const std::string& peer, const Numbers& local,
               const Numbers& remote, const Numbers& bytes, std::uint32_t flags) {
  const Pieces pieces = pieces_of(local, remote, bytes);
  const auto constant = [](const Numbers& numbers) {
    return const_cast<const void**>(numbers.pointers());
  };
  return smem_code(wait([&] {
    return writes ? smem_trans_batch_write(pointer_of(endpoint), constant(local),
                                           c_text("session_id", peer), remote.pointers(),
                                           sizes_of(bytes), pieces.count, flags)
                  : smem_trans_batch_read(pointer_of(endpoint), local.pointers(),
                                          c_text("session_id", peer), constant(remote),
                                          sizes_of(bytes), pieces.count, flags);
  }));
}

int submit_one(Handle endpoint, bool writes, const std::string& peer, const Place& local,
               Handle remote, std::size_t bytes, Handle stream, std::uint32_t flags) {
  void* const here = local.get_lasting("buffer");
  void* const there = pointer_of(remote);
  return smem_code(wait([&] {
    return writes ? smem_trans_write_submit(pointer_of(endpoint), here, c_text("session_id", peer),
                                            there, bytes, pointer_of(stream), flags)
                  : smem_trans_read_submit(pointer_of(endpoint), here, c_text("session_id", peer),
                                           there, bytes, pointer_of(stream), flags);
  }));
}

int submit_batch(Handle endpoint, bool writes, const std::string& peer, const Numbers& local,
                 const Numbers& remote, const Numbers& bytes, Handle stream, std::uint32_t flags) {
  const Pieces pieces = pieces_of(local, remote, bytes);
  const auto constant = [](const Numbers& numbers) {
    return const_cast<const void**>(numbers.pointers());
  };
  return smem_code(wait([&] {
    return writes ? smem_trans_batch_write_submit(
                        pointer_of(endpoint), constant(local), c_text("session_id", peer),
                        remote.pointers(), sizes_of(bytes), pieces.count, pointer_of(stream), flags)
                  : smem_trans_batch_read_submit(
                        pointer_of(endpoint), local.pointers(), c_text("session_id", peer),
                        constant(remote), sizes_of(bytes), pieces.count, pointer_of(stream), flags);
  }));
}

// ---- requests

memspan_transfer_direction_t direction_of(bool writes) {
  return writes ? MEMSPAN_TRANSFER_WRITE : MEMSPAN_TRANSFER_READ;
}

std::tuple<int, Handle> prepare(Handle endpoint, bool writes, const std::string& peer,
                                const Numbers& local, const Numbers& remote, const Numbers& bytes) {
  const Pieces pieces = pieces_of(local, remote, bytes);
  memspan_transfer_t request = nullptr;
  const int code = smem_code(wait([&] {
    return memspan_transfer_prepare(pointer_of(endpoint), direction_of(writes),
                                    c_text("session_id", peer), local.pointers(), remote.pointers(),
                                    sizes_of(bytes), pieces.count, &request);
  }));
  return {code, handle_of(request)};
}

// PENDING and CANCELLED are no failures.
int state_code(int code) {
  return code > 0 ? code : smem_code(code);
}

nb::object receive(Handle endpoint, std::uint32_t timeout_ms) {
  memspan_transfer_message_t message;
  const int code = state_code(
      wait([&] { return memspan_transfer_receive(pointer_of(endpoint), &message, timeout_ms); }));
  if (code != SMEM_OK) return nb::make_tuple(code, "", nb::bytes("", 0));
  return nb::make_tuple(code, static_cast<const char*>(message.sender),
                        nb::bytes(reinterpret_cast<const char*>(message.message), message.bytes));
}

}  // namespace

void drop_down_functions() {
  for (auto& known : down_functions()) {
    wait([&] {
      return smem_trans_set_peer_down_callback(pointer_of(known.first), nullptr, nullptr);
    });
    known.second.set(nb::none());
  }
  down_functions().clear();
}

void bind_trans(nb::module_& module) {
  module.def(
      "trans_create", create,
      nb::sig(
          "def trans_create(store_url: str, session_id: str, role: int, timeout_s: int, device_id: "
          "int, flags: int, data_op_type: int, may_host: bool, /) -> tuple[int, int]"));
  module.def(
      "trans_uninit", [](std::uint32_t flags) { wait([&] { smem_trans_uninit(flags); }); },
      nb::sig("def trans_uninit(flags: int, /) -> None"));
  module.def(
      "trans_destroy",
      [](Handle endpoint, std::uint32_t flags) {
        // The function of C returns nothing, and refuses only in a callback.
        if (CalledBack::is_inside) smem_get_and_clear_last_err_msg();
        wait([&] { smem_trans_destroy(pointer_of(endpoint), flags); });
        if (CalledBack::is_inside && smem_get_last_err_code() != SMEM_OK)
          raise_smem(smem_get_last_err_code());
        const auto kept = down_functions().find(endpoint);
        if (kept == down_functions().end()) return;
        kept->second.set(nb::none());
        down_functions().erase(kept);
      },
      nb::sig("def trans_destroy(endpoint: int, flags: int, /) -> None"));
  module.def(
      "trans_malloc",
      [](Handle endpoint, std::size_t bytes) {
        return handle_of(wait([&] { return smem_trans_malloc(pointer_of(endpoint), bytes); }));
      },
      nb::sig("def trans_malloc(endpoint: int, capacity: int, /) -> int"));
  module.def(
      "trans_device_malloc",
      [](Handle endpoint, std::size_t bytes) {
        return handle_of(
            wait([&] { return memspan_transfer_device_malloc(pointer_of(endpoint), bytes); }));
      },
      nb::sig("def trans_device_malloc(endpoint: int, capacity: int, /) -> int"));
  module.def(
      "trans_free",
      [](Handle endpoint, Handle address) {
        return smem_code(
            wait([&] { return smem_trans_free(pointer_of(endpoint), pointer_of(address)); }));
      },
      nb::sig("def trans_free(endpoint: int, address: int, /) -> int"));
  module.def(
      "trans_register_mem",
      [](Handle endpoint, const Place& place, std::size_t bytes, std::uint32_t flags) {
        void* const address = place.get_writable("buffer_addr", bytes);
        return smem_code(wait(
            [&] { return smem_trans_register_mem(pointer_of(endpoint), address, bytes, flags); }));
      },
      nb::sig("def trans_register_mem(endpoint: int, buffer_addr: int | Buffer | Array, capacity: "
              "int, flags: int, /) -> int"));
  module.def(
      "trans_register_adopted",
      [](Handle endpoint, const Place& place, std::size_t bytes) {
        void* const address = place.get_writable("buffer_addr", bytes);
        return smem_code(wait([&] {
          return memspan_transfer_register_adopted(pointer_of(endpoint), address, bytes);
        }));
      },
      nb::sig("def trans_register_adopted(endpoint: int, buffer_addr: int | Buffer | Array, "
              "capacity: int, /) -> int"));
  module.def(
      "trans_batch_register_mem",
      [](Handle endpoint, const Numbers& addresses, const Numbers& sizes, std::uint32_t flags) {
        if (addresses.size() != sizes.size())
          throw nb::value_error(("there are " + std::to_string(addresses.size()) +
                                 " addresses and " + std::to_string(sizes.size()) +
                                 " capacities; their numbers must be equal")
                                    .c_str());
        const std::uint32_t count = c_size("buffer_addrs", addresses.size(), "addresses");
        return smem_code(wait([&] {
          return smem_trans_batch_register_mem(pointer_of(endpoint), addresses.pointers(),
                                               sizes_of(sizes), count, flags);
        }));
      },
      nb::sig("def trans_batch_register_mem(endpoint: int, buffer_addrs: Sequence[int] | Buffer | "
              "Array, capacities: Sequence[int] | Buffer | Array, flags: int, /) -> int"));
  module.def(
      "trans_deregister_mem",
      [](Handle endpoint, const Place& place) {
        return smem_code(wait([&] {
          return smem_trans_deregister_mem(pointer_of(endpoint), pointer_of(place.address()));
        }));
      },
      nb::sig(
          "def trans_deregister_mem(endpoint: int, buffer_addr: int | Buffer | Array, /) -> int"));
  module.def("trans_move", move_one,
             nb::sig("def trans_move(endpoint: int, writes: bool, peer: str, buffer: int | Buffer "
                     "| Array, peer_buffer: int, length: int, flags: int, /) -> int"));
  module.def("trans_batch_move", move_batch,
             nb::sig("def trans_batch_move(endpoint: int, writes: bool, peer: str, buffers: "
                     "Sequence[int] | Buffer | Array, peer_buffers: Sequence[int] | Buffer | "
                     "Array, lengths: Sequence[int] | Buffer | Array, flags: int, /) -> int"));
  module.def(
      "trans_submit", submit_one,
      nb::sig("def trans_submit(endpoint: int, writes: bool, peer: str, buffer: int | Buffer | "
              "Array, peer_buffer: int, length: int, stream: int, flags: int, /) -> int"));
  module.def(
      "trans_batch_submit", submit_batch,
      nb::sig("def trans_batch_submit(endpoint: int, writes: bool, peer: str, buffers: "
              "Sequence[int] | Buffer | Array, peer_buffers: Sequence[int] | Buffer | Array, "
              "lengths: Sequence[int] | Buffer | Array, stream: int, flags: int, /) -> int"));
  module.def(
      "trans_set_peer_down_callback",
      [](Handle endpoint, nb::handle function) {
        down_functions()[endpoint].set(function);
        return smem_code(wait([&] {
          return smem_trans_set_peer_down_callback(
              pointer_of(endpoint), function.is_none() ? nullptr : on_down, pointer_of(endpoint));
        }));
      },
      nb::arg(), nb::arg().none(),
      nb::sig("def trans_set_peer_down_callback(endpoint: int, function: Callable[[str], object] | "
              "None, /) -> int"));

  module.def(
      "transfer_reach",
      [](Handle endpoint, const std::string& peer) {
        return smem_code(wait([&] {
          return memspan_transfer_reach(pointer_of(endpoint), c_text("session_id", peer));
        }));
      },
      nb::sig("def transfer_reach(endpoint: int, peer: str, /) -> int"));
  module.def("transfer_prepare", prepare,
             nb::sig("def transfer_prepare(endpoint: int, writes: bool, peer: str, buffers: "
                     "Sequence[int] | Buffer | Array, peer_buffers: Sequence[int] | Buffer | "
                     "Array, lengths: Sequence[int] | Buffer | Array, /) -> tuple[int, int]"));
  module.def(
      "transfer_destroy",
      [](Handle request) {
        return smem_code(wait([&] { return memspan_transfer_destroy(pointer_of(request)); }));
      },
      nb::sig("def transfer_destroy(request: int, /) -> int"));
  module.def(
      "transfer_set_message",
      [](Handle request, const nb::bytes& message) {
        return smem_code(wait([&] {
          return memspan_transfer_set_message(pointer_of(request), message.c_str(), message.size());
        }));
      },
      nb::sig("def transfer_set_message(request: int, message: bytes, /) -> int"));
  module.def(
      "transfer_set_counter",
      [](Handle request, std::uint32_t counter, std::uint64_t value) {
        return smem_code(wait(
            [&] { return memspan_transfer_set_counter(pointer_of(request), counter, value); }));
      },
      nb::sig("def transfer_set_counter(request: int, counter: int, value: int, /) -> int"));
  module.def(
      "transfer_set_patience",
      [](Handle request, std::uint32_t timeout_ms) {
        return smem_code(
            wait([&] { return memspan_transfer_set_patience(pointer_of(request), timeout_ms); }));
      },
      nb::sig("def transfer_set_patience(request: int, timeout_ms: int, /) -> int"));
  module.def(
      "transfer_post",
      [](Handle request) {
        return smem_code(wait([&] { return memspan_transfer_post(pointer_of(request)); }));
      },
      nb::sig("def transfer_post(request: int, /) -> int"));
  module.def(
      "transfer_test",
      [](Handle request) {
        return state_code(wait([&] { return memspan_transfer_test(pointer_of(request)); }));
      },
      nb::sig("def transfer_test(request: int, /) -> int"));
  module.def(
      "transfer_result",
      [](Handle request) {
        memspan_transfer_result_t result = {};
        smem_code(wait([&] { return memspan_transfer_result(pointer_of(request), &result); }));
        return std::tuple(result.code, result.pieces);
      },
      nb::sig("def transfer_result(request: int, /) -> tuple[int, int]"));
  module.def(
      "transfer_wait",
      [](Handle request, std::uint32_t timeout_ms) {
        return state_code(
            wait([&] { return memspan_transfer_wait(pointer_of(request), timeout_ms); }));
      },
      nb::sig("def transfer_wait(request: int, timeout_ms: int, /) -> int"));
  module.def(
      "transfer_cancel",
      [](Handle request) {
        return smem_code(wait([&] { return memspan_transfer_cancel(pointer_of(request)); }));
      },
      nb::sig("def transfer_cancel(request: int, /) -> int"));
  module.def(
      "transfer_event",
      [](Handle request) {
        int descriptor = -1;
        smem_code(wait([&] { return memspan_transfer_event(pointer_of(request), &descriptor); }));
        return descriptor;
      },
      nb::sig("def transfer_event(request: int, /) -> int"));
  module.def(
      "transfer_receive", receive,
      nb::sig("def transfer_receive(endpoint: int, timeout_ms: int, /) -> tuple[int, str, bytes]"));
  module.def(
      "transfer_messages_event",
      [](Handle endpoint) {
        int descriptor = -1;
        smem_code(wait(
            [&] { return memspan_transfer_messages_event(pointer_of(endpoint), &descriptor); }));
        return descriptor;
      },
      nb::sig("def transfer_messages_event(endpoint: int, /) -> int"));
  module.def(
      "transfer_counter",
      [](Handle endpoint, std::uint32_t counter) {
        std::uint64_t value = 0;
        const int code = smem_code(
            wait([&] { return memspan_transfer_counter(pointer_of(endpoint), counter, &value); }));
        return std::tuple(code, value);
      },
      nb::sig("def transfer_counter(endpoint: int, counter: int, /) -> tuple[int, int]"));
  module.def(
      "transfer_wait_counter",
      [](Handle endpoint, std::uint32_t counter, std::uint64_t value, std::uint32_t timeout_ms) {
        return smem_code(wait([&] {
          return memspan_transfer_wait_counter(pointer_of(endpoint), counter, value, timeout_ms);
        }));
      },
      nb::sig("def transfer_wait_counter(endpoint: int, counter: int, value: int, timeout_ms: int, "
              "/) -> int"));
}

}  // namespace memspan::python
