// SPDX-License-Identifier: Apache-2.0
// Puts, gets and messages from PE 0 to the last PE.
#include <shmem.h>

#include <algorithm>

#include "perf/meter.h"

namespace memspan::perf {
namespace {

// PE 0's memory that is not symmetric, to read from or write into.
std::vector<std::byte> own_memory(const Meter& meter) {
  return std::vector<std::byte>(meter.plan().sizes.back(), std::byte{1});
}

}  // namespace

Status run_put(Meter& meter, const Test& test) {
  MEMSPAN_TRY_ASSIGN(std::byte* const there, meter.symmetric(meter.plan().sizes.back()), test.name);
  const std::vector<std::byte> here = own_memory(meter);
  for (const std::size_t bytes : meter.plan().sizes)
    meter.measure(test, bytes, Actors::kFirst, 1, [&](std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) {
        shmem_putmem(there, here.data(), bytes, meter.far());
        shmem_quiet();
      }
    });
  return Status::ok();
}

Status run_get(Meter& meter, const Test& test) {
  MEMSPAN_TRY_ASSIGN(std::byte* const there, meter.symmetric(meter.plan().sizes.back()), test.name);
  std::vector<std::byte> here = own_memory(meter);
  for (const std::size_t bytes : meter.plan().sizes)
    meter.measure(test, bytes, Actors::kFirst, 1, [&](std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) shmem_getmem(here.data(), there, bytes, meter.far());
    });
  return Status::ok();
}

Status run_put_windows(Meter& meter, const Test& test) {
  MEMSPAN_TRY_ASSIGN(std::byte* const there, meter.symmetric(meter.plan().sizes.back()), test.name);
  const std::vector<std::byte> here = own_memory(meter);
  const std::size_t window = meter.plan().window;
  for (const std::size_t bytes : meter.plan().sizes)
    meter.measure(test, bytes, Actors::kFirst, window, [&](std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t k = 0; k < window; ++k)
          shmem_putmem_nbi(there, here.data(), bytes, meter.far());
        shmem_quiet();
      }
    });
  return Status::ok();
}

Status run_get_windows(Meter& meter, const Test& test) {
  MEMSPAN_TRY_ASSIGN(std::byte* const there, meter.symmetric(meter.plan().sizes.back()), test.name);
  std::vector<std::byte> here = own_memory(meter);
  const std::size_t window = meter.plan().window;
  for (const std::size_t bytes : meter.plan().sizes)
    meter.measure(test, bytes, Actors::kFirst, window, [&](std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t k = 0; k < window; ++k)
          shmem_getmem_nbi(here.data(), there, bytes, meter.far());
        shmem_quiet();
      }
    });
  return Status::ok();
}

// Words side by side: none overtakes another one's line.
Status run_put_rate(Meter& meter, const Test& test) {
  const std::size_t window = meter.plan().window;
  MEMSPAN_TRY_ASSIGN(std::byte* const memory, meter.symmetric(window * sizeof(uint64_t)),
                     test.name);
  auto* const words = reinterpret_cast<uint64_t*>(memory);
  meter.measure(test, 0, Actors::kFirst, window, [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < window; ++k) shmem_uint64_p(&words[k], i, meter.far());
      shmem_quiet();
    }
  });
  return Status::ok();
}

// Counts on, over all samples, so that no word has to be set back.
Status run_ping_pong(Meter& meter, const Test& test) {
  MEMSPAN_TRY_ASSIGN(std::byte* const memory, meter.symmetric(sizeof(uint64_t)), test.name);
  auto* const word = reinterpret_cast<uint64_t*>(memory);
  uint64_t turn = 0;
  meter.measure(test, 0, Actors::kAll, 2, [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      ++turn;
      if (meter.rank() == 0) {
        shmem_uint64_p(word, turn, meter.far());
        shmem_uint64_wait_until(word, SHMEM_CMP_EQ, turn);
      } else if (meter.rank() == meter.far()) {
        shmem_uint64_wait_until(word, SHMEM_CMP_EQ, turn);
        shmem_uint64_p(word, turn, 0);
      }
    }
  });
  return Status::ok();
}

Status run_put_signal(Meter& meter, const Test& test) {
  const std::size_t most = meter.plan().sizes.back();
  MEMSPAN_TRY_ASSIGN(std::byte* const there, meter.symmetric(most), test.name);
  MEMSPAN_TRY_ASSIGN(std::byte* const memory, meter.symmetric(sizeof(uint64_t)), test.name);
  auto* const signal = reinterpret_cast<uint64_t*>(memory);
  const std::vector<std::byte> here = own_memory(meter);
  uint64_t turn = 0;
  const auto send = [&](std::size_t bytes, int pe) {
    shmem_putmem_signal(there, here.data(), bytes, signal, turn, SHMEM_SIGNAL_SET, pe);
  };
  for (const std::size_t bytes : meter.plan().sizes)
    meter.measure(test, bytes, Actors::kAll, 2, [&](std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) {
        ++turn;
        if (meter.rank() == 0) {
          send(bytes, meter.far());
          shmem_signal_wait_until(signal, SHMEM_CMP_EQ, turn);
        } else if (meter.rank() == meter.far()) {
          shmem_signal_wait_until(signal, SHMEM_CMP_EQ, turn);
          send(bytes, 0);
        }
      }
    });
  return Status::ok();
}

}  // namespace memspan::perf
