// SPDX-License-Identifier: Apache-2.0
// Functions of OpenSHMEM alone that have no type: order, 64-bit signals, waits, collectives.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <shmem.h>

#include <cstdint>
#include <string>

#include "calls.h"
#include "in_lines.h"
#include "in_stream.h"
#include "modules.h"
#include "places.h"
#include "team_handles.h"
#include "typed.h"

namespace memspan::python {

bool is_mapped(const void* address, int pe) {
  return shmem_ptr(address, pe) != nullptr;
}

namespace {

using namespace nb::literals;

// What a collective of OpenSHMEM returns is not 0 only in a program that survives deaths.
template <typename Function>
int collective(Function function) {
  return wait(function);
}

// ---- 32-bit signals

void check_signal(int operation) {
  if (operation != SHMEM_SIGNAL_SET && operation != SHMEM_SIGNAL_ADD)
    throw nb::value_error(("sig_op is " + std::to_string(operation) +
                           ", allowed are SIGNAL_SET (0) and SIGNAL_ADD (1)")
                              .c_str());
}

void change(std::int32_t* word, std::int32_t value, int operation, int pe) {
  if (operation == SHMEM_SIGNAL_SET)
    shmem_int32_atomic_set(word, value, pe);
  else
    shmem_int32_atomic_add(word, value, pe);
}

// ---- collectives of bytes

template <auto function>
int exchange(const Place& to, const Place& from, std::size_t bytes, int team, std::size_t room) {
  void* const target = to.get_writable("dest", room);
  const void* const source = from.get("source", bytes);
  return collective([&] { return function(team_of(team), target, source, bytes); });
}

// -1 for no team.
int pes_of(int team) {
  return call([&] { return team == 0 ? shmem_n_pes() : shmem_team_n_pes(team_of(team)); });
}

std::size_t each(std::size_t bytes, int team) {
  const int pes = pes_of(team);
  if (pes < 0) throw nb::value_error(("team " + std::to_string(team) + " is no team").c_str());
  return bytes_of(bytes, static_cast<std::size_t>(pes));
}

int broadcast(const Place& to, const Place& from, std::size_t bytes, int root, int team) {
  void* const target = to.get_writable("dest", bytes);
  const void* const source = from.get("source", bytes);
  return collective([&] { return shmem_broadcastmem(team_of(team), target, source, bytes, root); });
}

}  // namespace

void bind_openshmem(nb::module_& module) {
  module.def(
      "signal_op_on_stream",
      [](const Place& signal, std::int32_t value, int operation, int pe, Handle stream) {
        auto* const word = stream == 0 ? signal.get<std::int32_t>("sig_addr", sizeof value)
                                       : signal.get_lasting<std::int32_t>("sig_addr");
        check_signal(operation);
        return in_stream(stream, [=] { change(word, value, operation, pe); });
      },
      "sig_addr"_a, "signal"_a, "sig_op"_a, "pe"_a, "stream"_a = 0,
      "``shmem_signal_op`` in the order of a stream. Returns 0 or a code.");
  module.def(
      "signal_wait_until_on_stream",
      [](const Place& signal, int compare, std::int32_t value, Handle stream) {
        auto* const word = stream == 0 ? signal.get<std::int32_t>("sig_addr", sizeof value)
                                       : signal.get_lasting<std::int32_t>("sig_addr");
        return in_stream(stream, [=] { shmem_int32_wait_until(word, compare, value); });
      },
      "sig_addr"_a, "cmp"_a, "cmp_val"_a, "stream"_a = 0,
      "``shmem_signal_wait_until`` in the order of a stream. Returns 0 or a code.");
  module.def(
      "quiet_on_stream", [](Handle stream) { return in_stream(stream, [] { shmem_quiet(); }); },
      "stream"_a = 0, "``shmem_quiet`` in the order of a stream. Returns 0 or a code.");
  module.def(
      "shmem_barrier_all", [] { wait([] { shmem_barrier_all(); }); },
      in_lines("Until all processes are here, and all that was put before is there. All call it. "
               "Raises PeerFailed when one died.")
          .c_str());
  module.def(
      "shmem_sync",
      [](int team) { return collective([&] { return shmem_team_sync(team_of(team)); }); },
      "team"_a = 0,
      in_lines("Until all of the team are here; says nothing of what was put. All of the team call "
               "it. Returns 0; raises PeerFailed when one of them died.")
          .c_str());
  module.def(
      "shmem_quiet", [] { wait([] { shmem_quiet(); }); },
      "Until all that this process put is there.");
  module.def(
      "shmem_fence", [] { wait([] { shmem_fence(); }); },
      "What was put before is there before what is put later.");
  module.def(
      "shmem_put_signal64",
      [](const Place& to, const Place& from, std::size_t bytes, const Place& signal,
         std::uint64_t value, int operation, int pe) {
        void* const target = to.get("dst", bytes);
        const void* const source = from.get_local("src", bytes);
        auto* const word = signal.get<std::uint64_t>("sig", sizeof value);
        move(bytes, target, pe,
             [&] { shmem_putmem_signal(target, source, bytes, word, value, operation, pe); });
      },
      "dst"_a, "src"_a, "elem_size"_a, "sig"_a, "signal"_a, "sig_op"_a, "pe"_a,
      in_lines("``elem_size`` bytes from ``src`` here to ``dst`` at ``pe``, then OpenSHMEM's "
               "signal: the 64-bit word ``sig`` there is set to ``signal`` (``SignalOp`` 0) or "
               "grows by it (1). Who sees that sees the bytes.")
          .c_str());
  module.def(
      "shmem_signal_op",
      [](const Place& signal, std::int32_t value, int operation, int pe) {
        auto* const word = signal.get<std::int32_t>("sig", sizeof value);
        check_signal(operation);
        access(word, pe, [&] { change(word, value, operation, pe); });
      },
      "sig"_a, "signal"_a, "sig_op"_a, "pe"_a,
      "The 32-bit word ``sig`` at ``pe`` is set to ``signal`` (0) or grows by it (1).");
  module.def(
      "shmem_signal_wait_until",
      [](const Place& signal, int compare, std::int32_t value) {
        auto* const word = signal.get<std::int32_t>("sig_addr", sizeof value);
        return wait([&] {
          shmem_int32_wait_until(word, compare, value);
          return __atomic_load_n(word, __ATOMIC_RELAXED);
        });
      },
      "sig_addr"_a, "cmp"_a, "cmp_val"_a,
      "Until the 32-bit word here compares so (``CmpOp``); the value that it had.");
  module.def(
      "shmem_signal_wait_until64",
      [](const Place& signal, int compare, std::uint64_t value) {
        auto* const word = signal.get<std::uint64_t>("sig_addr", sizeof value);
        return wait([&] { return shmem_signal_wait_until(word, compare, value); });
      },
      "sig_addr"_a, "cmp"_a, "cmp_value"_a,
      "Until the 64-bit word here compares so (``CmpOp``); the value that it had.");

  module.def("shmem_broadcast", broadcast, "dest"_a, "source"_a, "nbytes"_a, "root"_a, "team"_a = 0,
             in_lines("``nbytes`` of ``source`` at the team's process ``root`` to ``dest`` at all "
                      "of the team. Both are symmetric; all of the team call it. Returns 0.")
                 .c_str());
  module.def(
      "shmem_collect",
      [](const Place& to, const Place& from, std::size_t bytes, int team) {
        return exchange<shmem_collectmem>(to, from, bytes, team,
                                          bytes);  // the others' counts are theirs
      },
      "dest"_a, "source"_a, "nbytes"_a, "team"_a = 0,
      in_lines("What each of the team has in ``source``, ``nbytes`` of it, one after the other to "
               "``dest`` at all; each may bring another number of bytes. Both are symmetric; all "
               "of the team call it. Returns 0.")
          .c_str());
  module.def(
      "shmem_fcollect",
      [](const Place& to, const Place& from, std::size_t bytes, int team) {
        return exchange<shmem_fcollectmem>(to, from, bytes, team, each(bytes, team));
      },
      "dest"_a, "source"_a, "nbytes"_a, "team"_a = 0,
      "The same, with as many bytes of each: ``dest`` has ``nbytes`` times the team's size.");
  module.def(
      "shmem_alltoall",
      [](const Place& to, const Place& from, std::size_t bytes, int team) {
        from.get("source", each(bytes, team));
        return exchange<shmem_alltoallmem>(to, from, bytes, team, each(bytes, team));
      },
      "dest"_a, "source"_a, "nbytes"_a, "team"_a = 0,
      in_lines("Block i of ``source``, of ``nbytes``, to the team's process i, as block (this "
               "process's number) of ``dest`` there; both have ``nbytes`` times the team's size "
               "and are symmetric. All of the team call it. Returns 0.")
          .c_str());
}

}  // namespace memspan::python
