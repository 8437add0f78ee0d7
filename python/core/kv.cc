// SPDX-License-Identifier: Apache-2.0
// memspan's pools of KV blocks (memspan/kv_pool.h). Keys are the bytes of all of them, 32 each.
#include <memspan/kv_pool.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>
#include <vector>

#include "calls.h"
#include "handles.h"
#include "modules.h"
#include "numbers.h"
#include "places.h"

namespace memspan::python {
namespace {

using Results = std::vector<std::int32_t>;
using Move = decltype(memspan_kv_put)*;

const memspan_kv_key_t* keys_in(const nb::bytes& keys) {
  if (keys.size() % sizeof(memspan_kv_key_t) != 0)
    throw nb::value_error(
        ("keys have " + std::to_string(keys.size()) + " bytes, allowed are multiples of 32")
            .c_str());
  return reinterpret_cast<const memspan_kv_key_t*>(keys.c_str());
}
std::size_t count_of(const nb::bytes& keys) {
  return keys.size() / sizeof(memspan_kv_key_t);
}

// Key i's pieces are the i-th of as many addresses as there are sizes.
std::tuple<int, Results> move_pieces(Move move, Handle pool, const nb::bytes& keys,
                                     const Numbers& addresses, const Numbers& sizes) {
  const memspan_kv_key_t* const all = keys_in(keys);
  const std::size_t count = count_of(keys);
  if (addresses.size() != count * sizes.size())
    throw nb::value_error(("there are " + std::to_string(addresses.size()) + " addresses for " +
                           std::to_string(count) + " keys of " + std::to_string(sizes.size()) +
                           " pieces")
                              .c_str());
  Results results(count);
  const int code = wait([&] {
    return move(pointer_of(pool), all, count, addresses.pointers(), sizes.data(), sizes.size(),
                results.data());
  });
  return {smem_code(code, &results), results};
}

std::tuple<int, std::int32_t> move_one(Move move, Handle pool, const nb::bytes& key, void* memory,
                                       std::uint64_t bytes) {
  const memspan_kv_key_t* const one = keys_in(key);
  if (count_of(key) != 1) throw nb::value_error("one key has 32 bytes");
  std::int32_t result = 0;
  const int code =
      smem_code(wait([&] { return move(pointer_of(pool), one, 1, &memory, &bytes, 1, &result); }));
  return {code, result};
}

nb::dict dict_of(const memspan_kv_stats_t& stats) {
  nb::dict all;
  all["looked_up"] = stats.looked_up;
  all["found"] = stats.found;
  all["got"] = stats.got;
  all["got_bytes"] = stats.got_bytes;
  all["got_remote"] = stats.got_remote;
  all["missed"] = stats.missed;
  all["put"] = stats.put;
  all["put_bytes"] = stats.put_bytes;
  all["present"] = stats.present;
  all["no_room"] = stats.no_room;
  all["evicted"] = stats.evicted;
  all["shares"] = stats.shares;
  all["capacity"] = stats.capacity;
  all["slots"] = stats.slots;
  all["entries"] = stats.entries;
  all["entry_bytes"] = stats.entry_bytes;
  return all;
}

}  // namespace

void bind_kv(nb::module_& module) {
  module.def(
      "kv_start",
      [](Handle pool, std::uint32_t sections) {
        return smem_code(call([&] { return memspan_kv_start(pointer_of(pool), sections); }));
      },
      nb::sig("def kv_start(pool: int, sections: int, /) -> int"));
  module.def(
      "kv_lookup",
      [](Handle pool, const nb::bytes& keys) {
        const memspan_kv_key_t* const all = keys_in(keys);
        std::vector<std::uint64_t> bytes(count_of(keys));
        std::size_t found = 0;
        const int code = smem_code(wait([&] {
          return memspan_kv_lookup(pointer_of(pool), all, bytes.size(), bytes.data(), &found);
        }));
        return std::tuple(code, found, bytes);
      },
      nb::sig("def kv_lookup(pool: int, keys: bytes, /) -> tuple[int, int, list[int]]"));
  module.def(
      "kv_put",
      [](Handle pool, const nb::bytes& keys, const Numbers& addresses, const Numbers& sizes) {
        return move_pieces(memspan_kv_put, pool, keys, addresses, sizes);
      },
      nb::sig("def kv_put(pool: int, keys: bytes, addresses: Sequence[int] | Buffer | Array, "
              "sizes: Sequence[int] | Buffer | Array, /) -> tuple[int, list[int]]"));
  module.def(
      "kv_get",
      [](Handle pool, const nb::bytes& keys, const Numbers& addresses, const Numbers& sizes) {
        return move_pieces(memspan_kv_get, pool, keys, addresses, sizes);
      },
      nb::sig("def kv_get(pool: int, keys: bytes, addresses: Sequence[int] | Buffer | Array, "
              "sizes: Sequence[int] | Buffer | Array, /) -> tuple[int, list[int]]"));
  module.def(
      "kv_put_from",
      [](Handle pool, const nb::bytes& key, const Place& from, std::uint64_t bytes) {
        return move_one(memspan_kv_put, pool, key, from.get("from", bytes), bytes);
      },
      nb::sig("def kv_put_from(pool: int, key: bytes, source: int | Buffer | Array, size: int, /) "
              "-> tuple[int, int]"));
  module.def(
      "kv_get_into",
      [](Handle pool, const nb::bytes& key, const Place& into, std::uint64_t bytes) {
        return move_one(memspan_kv_get, pool, key, into.get_writable("into", bytes), bytes);
      },
      nb::sig("def kv_get_into(pool: int, key: bytes, into: int | Buffer | Array, size: int, /) "
              "-> tuple[int, int]"));
  module.def(
      "kv_remove",
      [](Handle pool, const nb::bytes& keys) {
        std::size_t removed = 0;
        const memspan_kv_key_t* const all = keys_in(keys);
        const int code = smem_code(wait(
            [&] { return memspan_kv_remove(pointer_of(pool), all, count_of(keys), &removed); }));
        return std::tuple(code, removed);
      },
      nb::sig("def kv_remove(pool: int, keys: bytes, /) -> tuple[int, int]"));
  module.def(
      "kv_stats",
      [](Handle pool) {
        memspan_kv_stats_t stats = {};
        const int code =
            smem_code(wait([&] { return memspan_kv_stats(pointer_of(pool), &stats); }));
        return std::tuple(code, dict_of(stats));
      },
      nb::sig("def kv_stats(pool: int, /) -> tuple[int, dict[str, int]]"));
}

}  // namespace memspan::python
