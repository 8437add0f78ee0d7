// SPDX-License-Identifier: Apache-2.0
#include "capi/aclshmem/device_stream.h"

#include <cstring>
#include <utility>

#include "capi/aclshmem/call_threads.h"
#include "capi/aclshmem/export.h"
#include "capi/wait_sets.h"
#include "device/choice.h"
#include "device/host/copy.h"
#include "pgas/rma.h"

namespace memspan::capi {
namespace {

Device& device() {
  return *other_device();
}

// A peer's memory that is not mapped here, reached by its link without looking at local ends: those
// are the host's here.
struct FarPlace {
  Link* link;
  const RemoteRegion* region;
  std::uint64_t offset;

  RemotePlace place(std::size_t at = 0) const { return {*region, offset + at}; }
};

FarPlace far_place(const Route& route, const void* address, int pe) {
  return {process_state.world->route(pe).link, route.region,
          process_state.routes.offset_of(address)};
}

OperationContext& operations() {
  return *process_state.routes.operations;
}

bool is_device_memory(const void* address) {
  return process_state.routes.is_on_device(address, 1) || device().owns(address);
}

// In a call of a stream: work that waits for peers.
void wait_in_call(const char* call, const std::function<void()>& work) {
  require(call, call_threads().run(work));
}

// For work that waits for nothing and uses no device.
void call_at_once(const char* call, void* stream, std::function<void()> work) {
  require(call, device().begin_call(std::move(work), stream));
}

void put_far(const char* call, void* stream, const FarPlace& to, const void* source,
             std::size_t bytes) {
  const auto put = [=](const void* from, std::size_t at, std::size_t count) {
    require(call, to.link->put(operations(), to.place(at), from, count));
  };
  if (!device().owns(source)) return call_on_device(call, stream, [=] { put(source, 0, bytes); });
  require(call, device().begin_read(
                    source, bytes,
                    [=](std::byte* part, std::size_t at, std::size_t count) {
                      wait_in_call(call, [&] { put(part, at, count); });
                    },
                    stream));
}

void get_far(const char* call, void* stream, void* dest, const FarPlace& from, std::size_t bytes) {
  const auto get = [=](void* to, std::size_t at, std::size_t count) {
    require(call, from.link->get(operations(), to, from.place(at), count));
  };
  if (!device().owns(dest)) return call_on_device(call, stream, [=] { get(dest, 0, bytes); });
  require(call, device().begin_write(
                    dest, bytes,
                    [=](std::byte* part, std::size_t at, std::size_t count) {
                      wait_in_call(call, [&] { get(part, at, count); });
                    },
                    stream));
}

// Both are mapped here.
void copy_near(const char* call, void* stream, void* to, const void* from, std::size_t bytes,
               const Route& route) {
  if (is_device_memory(to) || is_device_memory(from)) {
    require(call, device().begin_copy(to, from, bytes, stream));
    return;
  }
  call_at_once(call, stream, [=, &route] {
    copy_bytes(to, from, bytes);
    route.notify();
  });
}

}  // namespace

void call_on_device(const char* call, void* stream, std::function<void()> work) {
  call_at_once(call, stream, [call, work = std::move(work)] { wait_in_call(call, work); });
}

void put_on_device(const char* call, void* stream, void* dest, const void* source,
                   std::size_t bytes, int pe) {
  if (bytes == 0) return require_started(call);
  const Route& route = reach(call, "dest", dest, bytes, pe);
  require_not_null(call, "source", source);
  if (void* const there = mapped_address(dest, pe); there != nullptr)
    copy_near(call, stream, there, source, bytes, route);
  else
    put_far(call, stream, far_place(route, dest, pe), source, bytes);
}

void get_on_device(const char* call, void* stream, void* dest, const void* source,
                   std::size_t bytes, int pe) {
  if (bytes == 0) return require_started(call);
  const Route& route = reach(call, "source", source, bytes, pe);
  require_not_null(call, "dest", dest);
  if (const void* const there = mapped_address(const_cast<void*>(source), pe); there != nullptr)
    copy_near(call, stream, dest, there, bytes, route);
  else
    get_far(call, stream, dest, far_place(route, source, pe), bytes);
}

void signal_on_device(const char* call, void* stream, std::int32_t* word, std::int32_t value,
                      int op, int pe) {
  const Route& route = reach_word(call, "sig_addr", word, pe);
  if (!process_state.routes.is_on_device(word, sizeof *word)) {
    // The library's routes: no look at ends, and so no CUDA.
    const RouteTable& plain = process_state.world->routes();
    const Route& way = plain.route_of(word, pe);
    const AtomicOp update{op == ACLSHMEM_SIGNAL_SET ? AtomicKind::kSet : AtomicKind::kAdd,
                          sizeof *word, static_cast<std::uint32_t>(value)};
    return call_on_device(call, stream, [=, &plain, &way] {
      if (!way.is_direct()) require(call, way.link->fence(*plain.operations));
      require(call, pgas::atomic_at(plain, way, update, word, nullptr));
    });
  }
  if (op != ACLSHMEM_SIGNAL_SET) return end_for_device_memory(call, "sig_addr", word);
  if (void* const there = mapped_address(word, pe); there != nullptr) {
    const auto fill = [value](std::byte* part, std::size_t, std::size_t) {
      std::memcpy(part, &value, sizeof value);
    };
    require(call, device().begin_write(there, sizeof value, fill, stream));
    return call_at_once(call, stream, [&route] { route.notify(); });
  }
  const FarPlace to = far_place(route, word, pe);
  call_on_device(call, stream, [=] {
    require(call, to.link->fence(operations()));
    require(call, to.link->put(operations(), to.place(), &value, sizeof value));
  });
}

void wait_on_device(const char* call, void* stream, std::int32_t* word, int cmp,
                    std::int32_t value) {
  const bool is_device = is_device_word(call, "sig_addr", word);
  const Compare compare = checked_compare(call, cmp);
  if (!is_device)
    return call_on_device(
        call, stream, [=] { wait_until(call, [=] { return pgas::holds(word, compare, value); }); });
  if (compare != Compare::kEqual && compare != Compare::kGreaterEqual)
    end_process(call, Status(Code::kNotSupported,
                             "a stream of the device waits for a word in memory of the device with "
                             "ACLSHMEM_CMP_EQ or ACLSHMEM_CMP_GE"));
  require(call, device().begin_wait(word, static_cast<std::uint32_t>(value),
                                    compare == Compare::kEqual ? Device::WaitFor::kEqual
                                                               : Device::WaitFor::kAtLeast,
                                    stream));
}

}  // namespace memspan::capi
