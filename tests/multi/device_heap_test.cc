// SPDX-License-Identifier: Apache-2.0
// The symmetric heap in memory of a GPU, on the stand-in of the CUDA driver, where every load or
// store of such memory by the library is a fault. The argument says what is tried; `moves` runs in
// jobs on several hosts, too.
#include <aclshmem.h>
#include <memspan/memspan.h>
#include <openshmem/shmem.h>
#include <openshmem/shmemx.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "memory/address_plan.h"

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "PE %d, line %d: %s (%s)\n", my_pe, __LINE__, #condition, \
                   memspan_last_error());                                            \
      std::_Exit(1);                                                                 \
    }                                                                                \
  } while (false)

namespace {
int my_pe = -1;
int pes = 0;
}  // namespace

#include "support/cuda_driver/gpu.h"

namespace {

constexpr std::size_t kHeapBytes = std::size_t{16} << 20;

int next_pe() {
  return (my_pe + 1) % pes;
}
int previous_pe() {
  return (my_pe + pes - 1) % pes;
}
bool says(const char* text) {
  return std::strstr(memspan_last_error(), text) != nullptr;
}

// With an id: instance 1 of the process.
void start(aclshmemx_uniqueid_t* id = nullptr) {
  aclshmemx_init_attr_t attributes{};
  attributes.my_pe = std::atoi(std::getenv("RANK"));
  attributes.n_pes = std::atoi(std::getenv("WORLD_SIZE"));
  attributes.local_mem_size = kHeapBytes;
  attributes.instance_id = id == nullptr ? 0 : 1;
  attributes.comm_args = id;
  CHECK(aclshmemx_init_attr(
            id == nullptr ? ACLSHMEMX_INIT_WITH_DEFAULT : ACLSHMEMX_INIT_WITH_UNIQUEID,
            &attributes) == ACLSHMEM_SUCCESS);
  my_pe = aclshmem_my_pe();
  pes = aclshmem_n_pes();
}

template <typename T>
T* on_device(std::size_t count) {
  auto* made = static_cast<T*>(aclshmemx_calloc(count, sizeof(T), DEVICE_SIDE));
  CHECK(made != nullptr);
  return made;
}
template <typename T>
T* on_host(std::size_t count) {
  auto* made = static_cast<T*>(aclshmemx_calloc(count, sizeof(T), HOST_SIDE));
  CHECK(made != nullptr);
  return made;
}
template <typename T>
T look(const T* at) {
  T value;
  CHECK(gpu_copies(&value, at, sizeof value));
  return value;
}
template <typename T>
void store(T* at, T value) {
  CHECK(gpu_copies(at, &value, sizeof value));
}

void check_allocations() {
  CHECK(aclshmemx_get_heap_base(DEVICE_SIDE) == nullptr);
  CHECK(aclshmemx_get_heap_base(HOST_SIDE) == memspan_heap_base());
  auto* first = static_cast<char*>(aclshmemx_malloc(1000, DEVICE_SIDE));
  CHECK(first != nullptr && aclshmemx_get_heap_base(DEVICE_SIDE) == first);
  auto* second = static_cast<char*>(aclshmem_malloc(64));
  CHECK(second == first + 1024);
  auto* third = static_cast<char*>(aclshmemx_align(4096, 10, DEVICE_SIDE));
  CHECK(third != nullptr && (third - first) % 4096 == 0);
  CHECK(look(second) == 0);
  store(second, 'x');
  aclshmem_free(second);
  // The same place again, and zeros in it.
  CHECK(aclshmem_malloc(64) == second && look(second) == 'x');
  aclshmemx_free(second, DEVICE_SIDE);
  CHECK(aclshmem_calloc(8, 8) == second && look(second) == 0);

  // Each kind is freed as what it is.
  auto* there = on_host<int>(1);
  aclshmemx_free(second, HOST_SIDE);
  CHECK(says("is DEVICE_SIDE memory, and this frees HOST_SIDE memory"));
  aclshmem_free(there);
  CHECK(says("is HOST_SIDE memory, and this frees DEVICE_SIDE memory"));
  aclshmemx_free(second + 16, DEVICE_SIDE);
  CHECK(says("is not the start of an allocated symmetric block in memory of a device"));
  *there = 1;
  aclshmemx_free(there, HOST_SIDE);

  CHECK(aclshmemx_malloc(2 * kHeapBytes, DEVICE_SIDE) == nullptr);
  CHECK(says("do not fit the symmetric heap of 16777216 bytes in memory of cuda"));
  CHECK(says("MEMSPAN_DEVICE_HEAP_SIZE"));
  aclshmem_free(second);
  aclshmemx_free(third, DEVICE_SIDE);
  aclshmem_free(first);
  // One block as large as all of it: nothing is left over.
  CHECK((first = static_cast<char*>(aclshmem_malloc(kHeapBytes))) != nullptr);
  aclshmem_free(first);
}

// A PE's memory has one address in all processes of its host.
void check_addresses() {
  auto* word = on_device<std::uint64_t>(1);
  auto* addresses = on_host<std::uint64_t>(static_cast<std::size_t>(pes));
  for (int pe = 0; pe < pes; ++pe)
    aclshmem_uint64_p(addresses + my_pe, reinterpret_cast<std::uint64_t>(word), pe);
  aclshmem_barrier_all();
  CHECK(aclshmem_ptr(word, my_pe) == word);
  for (int pe = 0; pe < pes; ++pe) {
    const bool is_near = aclshmem_ptr(addresses, pe) != nullptr;
    auto* theirs = static_cast<std::uint64_t*>(aclshmem_ptr(word, pe));
    CHECK(is_near == (theirs != nullptr));
    if (is_near) CHECK(addresses[pe] == reinterpret_cast<std::uint64_t>(theirs));
  }
  if (auto* theirs = static_cast<std::uint64_t*>(aclshmem_ptr(word, next_pe())))
    store(theirs, std::uint64_t{100} + static_cast<std::uint64_t>(my_pe));
  aclshmem_barrier_all();
  const bool is_written = aclshmem_ptr(word, previous_pe()) != nullptr;
  CHECK(look(word) == (is_written ? 100U + static_cast<unsigned>(previous_pe()) : 0U));
  CHECK(aclshmem_ptr(word, pes) == nullptr && aclshmem_ptr(word, -1) == nullptr);
  aclshmem_barrier_all();
  aclshmem_free(word);
  aclshmemx_free(addresses, HOST_SIDE);
}

// From every kind of memory into every kind, and back.
void check_moves() {
  constexpr std::size_t kCount = 400'000;  // more than a staging buffer
  using Numbers = std::vector<std::int32_t>;
  const std::size_t bytes = kCount * sizeof(std::int32_t);
  auto* device = on_device<std::int32_t>(kCount);
  auto* mine = on_device<std::int32_t>(kCount);
  auto* host = on_host<std::int32_t>(kCount);
  auto* own = reinterpret_cast<std::int32_t*>(gpu_alloc(bytes));
  Numbers numbers(kCount);
  Numbers seen(kCount);
  int turn = 0;
  for (std::int32_t* dest : {device, host}) {
    for (int kind = 0; kind < 3; ++kind) {
      std::iota(numbers.begin(), numbers.end(), 1000 * my_pe + ++turn);
      std::int32_t* source = numbers.data();
      if (kind > 0) {
        source = kind == 1 ? mine : own;
        CHECK(gpu_copies(source, numbers.data(), bytes));
      }
      aclshmem_int32_put(dest, source, kCount, next_pe());
      aclshmem_barrier_all();
      CHECK(gpu_copies(seen.data(), dest, bytes));
      std::iota(numbers.begin(), numbers.end(), 1000 * previous_pe() + turn);
      CHECK(seen == numbers);
      // What I have put is what I get.
      std::iota(numbers.begin(), numbers.end(), 1000 * my_pe + turn);
      std::int32_t* back = kind == 0 ? seen.data() : source;
      const std::vector<std::int32_t> nothing(kCount);
      CHECK(gpu_copies(back, nothing.data(), bytes));
      aclshmem_getmem(back, dest, bytes, next_pe());
      CHECK(gpu_copies(seen.data(), back, bytes));
      CHECK(seen == numbers);
      aclshmem_barrier_all();
    }
  }
  // Single elements, and strides.
  aclshmem_int32_p(device + 7, 70 + my_pe, next_pe());
  CHECK(aclshmem_int32_g(device + 7, next_pe()) == 70 + my_pe);
  aclshmem_barrier_all();
  CHECK(look(device + 7) == 70 + previous_pe());
  aclshmem_barrier_all();
  numbers.assign(kCount, 0);
  CHECK(gpu_copies(device, numbers.data(), bytes));
  std::iota(numbers.begin(), numbers.end(), 10 * my_pe);
  CHECK(gpu_copies(mine, numbers.data(), bytes));
  aclshmem_barrier_all();
  aclshmem_int32_iput(device, mine, 2, 3, 10, next_pe());
  aclshmem_int32_iput(device + 100, numbers.data(), 2, 3, 10, next_pe());
  aclshmem_int32_iput(host + 100, mine, 2, 3, 10, next_pe());
  aclshmem_barrier_all();
  for (int i = 0; i < 10; ++i) {
    for (const int at : {2 * i, 100 + 2 * i})
      CHECK(look(device + at) == 10 * previous_pe() + 3 * i && look(device + at + 1) == 0);
    CHECK(host[100 + 2 * i] == 10 * previous_pe() + 3 * i);
  }
  aclshmem_iget32(own, device, 1, 2, 10, next_pe());
  for (int i = 0; i < 10; ++i) CHECK(look(own + i) == 10 * my_pe + 3 * i);
  aclshmem_barrier_all();
  aclshmem_free(device);
  aclshmem_free(mine);
  aclshmemx_free(host, HOST_SIDE);
}

void check_signals() {
  constexpr std::size_t kCount = 8;
  auto* data = on_device<float>(kCount);
  auto* source = on_device<float>(kCount);
  auto* device_signal = on_device<std::int32_t>(1);
  auto* host_signal = on_host<std::int32_t>(1);
  for (std::size_t i = 0; i < kCount; ++i)
    store(source + i, static_cast<float>(my_pe * 10 + static_cast<int>(i)));
  int value = 0;
  for (std::int32_t* signal : {device_signal, host_signal}) {
    aclshmem_float_put_signal(data, source, kCount, reinterpret_cast<std::uint8_t*>(signal),
                              ++value, ACLSHMEM_SIGNAL_SET, next_pe());
    aclshmem_signal_wait_until(signal, ACLSHMEM_CMP_EQ, value);
    CHECK(look(data + 7) == static_cast<float>(previous_pe() * 10 + 7));
    int holds = 0;
    aclshmem_int32_test(signal, ACLSHMEM_CMP_GT, value, &holds);
    CHECK(holds == 0);
    aclshmem_barrier_all();
  }
  // A signal of the host is added to, behind data of the device.
  aclshmem_float_put_signal(data, source, 1, reinterpret_cast<std::uint8_t*>(host_signal), 40,
                            ACLSHMEM_SIGNAL_ADD, next_pe());
  aclshmem_int32_wait_until(host_signal, ACLSHMEM_CMP_EQ, 42);
  // The same with 64-bit signals.
  auto* wide = on_device<std::uint64_t>(1);
  shmem_float_put_signal(data, source, kCount, wide, 5, SHMEM_SIGNAL_SET, next_pe());
  CHECK(shmem_signal_wait_until(wide, SHMEM_CMP_GE, 5) == 5 && shmem_signal_fetch(wide) == 5);
  shmem_barrier_all();
  shmem_signal_set(wide, std::uint64_t{1} << 40, next_pe());
  CHECK(shmem_signal_wait_until(wide, SHMEM_CMP_NE, 5) == std::uint64_t{1} << 40);
  CHECK(shmem_uint64_atomic_fetch(wide, next_pe()) == std::uint64_t{1} << 40);
  shmem_barrier_all();
  shmem_uint64_atomic_set(wide, 3, next_pe());
  shmem_barrier_all();
  CHECK(look(wide) == 3);
  shmem_barrier_all();
  aclshmem_free(wide);
  aclshmem_free(data);
  aclshmem_free(source);
  aclshmem_free(device_signal);
  aclshmemx_free(host_signal, HOST_SIDE);
}

// Every collective, from each kind of memory into each.
void check_collectives() {
  constexpr std::size_t kCount = 1000;
  const auto all = kCount * static_cast<std::size_t>(pes);
  std::int64_t* dests[] = {on_device<std::int64_t>(2 * all), on_host<std::int64_t>(2 * all)};
  std::int64_t* sources[] = {on_device<std::int64_t>(2 * all), on_host<std::int64_t>(2 * all)};
  std::vector<std::int64_t> numbers(2 * all);
  for (int ends = 0; ends < 3; ++ends) {  // both are the host's: not our business
    std::int64_t* const dest = dests[ends % 2];
    std::int64_t* const source = sources[ends / 2];
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = 10'000 * my_pe + static_cast<std::int64_t>(i);
    CHECK(gpu_copies(source, numbers.data(), 2 * all * sizeof(std::int64_t)));
    const auto at = [&](std::size_t i) { return look(dest + i); };
    const auto last = kCount - 1;
    const auto most = static_cast<std::int64_t>(last);
    aclshmem_barrier_all();
    const int root = pes - 1;
    CHECK(shmem_int64_broadcast(SHMEM_TEAM_WORLD, dest, source, kCount, root) == 0);
    CHECK(at(last) == 10'000 * root + most);
    aclshmem_barrier_all();
    CHECK(shmem_int64_fcollect(SHMEM_TEAM_WORLD, dest, source, kCount) == 0);
    for (int pe = 0; pe < pes; ++pe)
      CHECK(at(kCount * static_cast<std::size_t>(pe) + last) == 10'000 * pe + most);
    aclshmem_barrier_all();
    const std::size_t mine = my_pe == 0 ? 3 : 5;
    CHECK(shmem_int64_collect(SHMEM_TEAM_WORLD, dest, source, mine) == 0);
    for (int pe = 1; pe < pes; ++pe)
      CHECK(at(3 + 5 * static_cast<std::size_t>(pe - 1) + 4) == 10'000 * pe + 4);
    CHECK(at(2) == 2);
    aclshmem_barrier_all();
    CHECK(shmem_int64_alltoall(SHMEM_TEAM_WORLD, dest, source, kCount) == 0);
    for (int pe = 0; pe < pes; ++pe)
      CHECK(at(kCount * static_cast<std::size_t>(pe)) ==
            10'000 * pe + static_cast<std::int64_t>(kCount) * my_pe);
    aclshmem_barrier_all();
    CHECK(shmem_int64_alltoalls(SHMEM_TEAM_WORLD, dest, source, 2, 1, 7) == 0);
    for (int pe = 0; pe < pes; ++pe)
      CHECK(at(14 * static_cast<std::size_t>(pe) + 12) == 10'000 * pe + 7 * my_pe + 6);
    aclshmem_barrier_all();
    CHECK(shmem_int64_sum_reduce(SHMEM_TEAM_WORLD, dest, source, kCount) == 0);
    CHECK(at(last) == 10'000 * (pes * (pes - 1) / 2) + pes * most);
    aclshmem_barrier_all();
    CHECK(shmem_int64_sum_inscan(SHMEM_TEAM_WORLD, dest, source, kCount) == 0);
    CHECK(at(last) == 10'000 * (my_pe * (my_pe + 1) / 2) + (my_pe + 1) * most);
    aclshmem_barrier_all();
    CHECK(shmem_int64_sum_exscan(SHMEM_TEAM_WORLD, dest, source, kCount) == 0);
    CHECK(at(last) == 10'000 * (my_pe * (my_pe - 1) / 2) + my_pe * most);
    aclshmem_barrier_all();
    // In place.
    CHECK(shmem_int64_max_reduce(SHMEM_TEAM_WORLD, source, source, kCount) == 0);
    CHECK(look(source + last) == 10'000 * (pes - 1) + most);
    aclshmem_barrier_all();
  }
  for (const int kind : {1, 0}) {
    aclshmemx_free(dests[1 - kind], kind == 1 ? DEVICE_SIDE : HOST_SIDE);
    aclshmemx_free(sources[1 - kind], kind == 1 ? DEVICE_SIDE : HOST_SIDE);
  }
}

// In the order of a stream of the GPU, while the caller goes on: nothing moves before the gate
// opens.
void check_stream() {
  constexpr std::size_t kBytes = 3 << 20;  // more than what a link stages at once
  auto* device = on_device<char>(kBytes);
  auto* mine = on_device<char>(kBytes);
  auto* host = on_host<char>(kBytes);
  auto* device_signal = on_device<std::int32_t>(1);
  auto* host_signal = on_host<std::int32_t>(1);
  void* const stream = gpu_stream();
  static std::atomic<bool> is_open;
  int turn = 0;
  for (char* dest : {device, host}) {
    for (std::int32_t* signal : {device_signal, host_signal}) {
      ++turn;
      const bool is_from_device = turn % 2 == 0;
      is_open = false;
      gpu_call(
          stream,
          [](void*) {
            while (!is_open) sched_yield();
          },
          nullptr);
      const std::vector<char> text(kBytes, static_cast<char>(16 * turn + my_pe));
      CHECK(gpu_copies(mine, text.data(), kBytes));
      char* const source = is_from_device ? mine : const_cast<char*>(text.data());
      aclshmemx_putmem_on_stream(dest, source, kBytes, next_pe(), stream);
      aclshmemx_quiet_on_stream(stream);
      aclshmemx_signal_op_on_stream(signal, turn, ACLSHMEM_SIGNAL_SET, next_pe(), stream);
      aclshmemx_signal_wait_until_on_stream(
          signal, is_from_device ? ACLSHMEM_CMP_EQ : ACLSHMEM_CMP_GE, turn, stream);
      aclshmemx_barrier_all_on_stream(stream);
      // What came from the previous PE, of the next PE's memory: what I have put there.
      std::vector<char> back(kBytes);
      aclshmemx_getmem_on_stream(mine, dest, kBytes, next_pe(), stream);
      aclshmemx_getmem_on_stream(back.data(), dest, kBytes, next_pe(), stream);
      char first = 0;
      aclshmem_getmem(&first, dest, 1, next_pe());
      CHECK(first != text[0]);
      is_open = true;
      CHECK(gpu_synchronize(stream) == 0);
      std::vector<char> seen(kBytes);
      CHECK(gpu_copies(seen.data(), dest, kBytes));
      CHECK(seen == std::vector<char>(kBytes, static_cast<char>(16 * turn + previous_pe())));
      CHECK(back == text);
      CHECK(gpu_copies(seen.data(), mine, kBytes) && seen == text);
      aclshmem_barrier_all();
    }
  }
  aclshmemx_signal_op_on_stream(host_signal, 10, ACLSHMEM_SIGNAL_ADD, next_pe(), stream);
  aclshmemx_barrier_on_stream(ACLSHMEM_TEAM_WORLD, stream);
  CHECK(gpu_synchronize(stream) == 0);
  CHECK(*host_signal == turn + 10);
  // The library's own stream copies memory of the device as well.
  aclshmemx_putmem_on_stream(device, mine, 16, next_pe(), nullptr);
  aclshmemx_barrier_all_on_stream(nullptr);
  aclshmem_barrier_all();
  CHECK(look(device) == static_cast<char>(16 * turn + previous_pe()));
  aclshmem_barrier_all();
  for (void* block :
       {static_cast<void*>(device), static_cast<void*>(mine), static_cast<void*>(device_signal)})
    aclshmem_free(block);
  aclshmemx_free(host, HOST_SIDE);
  aclshmemx_free(host_signal, HOST_SIDE);
}

void moves() {
  start();
  check_allocations();
  check_addresses();
  check_moves();
  check_signals();
  check_collectives();
  check_stream();
  CHECK(aclshmem_finalize() == 0);
  // A second job begins anew.
  start();
  CHECK(aclshmemx_get_heap_base(DEVICE_SIDE) == nullptr);
  check_signals();
  CHECK(aclshmem_finalize() == 0);
}

// Two jobs have a heap each.
void instances() {
  start();
  auto* word = on_device<std::int32_t>(1);
  store(word, 1 + my_pe);
  auto* told = on_host<aclshmemx_uniqueid_t>(1);
  if (my_pe == 0) {
    aclshmemx_uniqueid_t made;
    CHECK(aclshmemx_get_uniqueid(&made) == 0);
    for (int pe = 0; pe < pes; ++pe) aclshmem_putmem(told, &made, sizeof made, pe);
  }
  aclshmem_barrier_all();
  aclshmemx_uniqueid_t id = *told;
  start(&id);
  CHECK(aclshmemx_get_heap_base(DEVICE_SIDE) == nullptr);
  auto* other = on_device<std::int32_t>(1);
  CHECK(other != word && aclshmemx_get_heap_base(DEVICE_SIDE) == other);
  aclshmem_int32_p(other, 50 + my_pe, next_pe());
  aclshmem_barrier_all();
  CHECK(look(other) == 50 + previous_pe() && look(word) == 1 + my_pe);
  CHECK(aclshmemx_instance_ctx_set(0) == 0);
  CHECK(aclshmem_int32_g(word, next_pe()) == 1 + next_pe());
  aclshmem_barrier_all();
  CHECK(aclshmemx_finalize(1) == 0);
  CHECK(aclshmem_int32_g(word, previous_pe()) == 1 + previous_pe());
  CHECK(aclshmemx_finalize(0) == 0);
}

// One PE has too little: nobody gets any, and once it has enough all do.
void shortage() {
  start();
  if (my_pe == pes - 1) setenv("MEMSPAN_TEST_CUDA_BYTES", "2097152", 1);
  CHECK(aclshmemx_malloc(64, DEVICE_SIDE) == nullptr);
  CHECK(says("of memory of CUDA device 0 are wanted"));
  CHECK(says(("PE " + std::to_string(pes - 1)).c_str()));
  CHECK(aclshmemx_get_heap_base(DEVICE_SIDE) == nullptr);
  unsetenv("MEMSPAN_TEST_CUDA_BYTES");
  if (my_pe == 0) setenv("MEMSPAN_DEVICE_HEAP_SIZE", "3M", 1);
  CHECK(aclshmemx_malloc(64, DEVICE_SIDE) == nullptr);
  CHECK(says("MEMSPAN_DEVICE_HEAP_SIZE has to be the same on all"));
  setenv("MEMSPAN_DEVICE_HEAP_SIZE", "3 potatoes", 1);
  CHECK(aclshmemx_malloc(64, DEVICE_SIDE) == nullptr);
  CHECK(says("MEMSPAN_DEVICE_HEAP_SIZE is \"3 potatoes\""));
  setenv("MEMSPAN_DEVICE_HEAP_SIZE", "3M", 1);
  CHECK(aclshmem_malloc((4 << 20) + 1) == nullptr);  // whole pages of the device
  void* all = aclshmem_malloc(4 << 20);
  CHECK(all != nullptr);
  aclshmem_free(all);
  check_signals();
  CHECK(aclshmem_finalize() == 0);
}

// Where something else lies at the first place in one process, all take the next one.
void taken() {
  start();
  auto* const place = reinterpret_cast<void*>(memspan::address_windows().device_heap);
  if (my_pe == 1)
    CHECK(mmap(place, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) ==
          place);
  CHECK(aclshmem_malloc(64) != nullptr);
  const auto base = reinterpret_cast<std::uintptr_t>(aclshmemx_get_heap_base());
  const auto window = static_cast<std::uintptr_t>(memspan::address_windows().device_heap);
  CHECK(base == window + (1U << 30) + static_cast<std::size_t>(my_pe) * kHeapBytes);
  check_signals();
  CHECK(aclshmem_finalize() == 0);
}

// MEMSPAN_DEVICE differs.
void mismatch() {
  if (std::atoi(std::getenv("RANK")) == 1) setenv("MEMSPAN_DEVICE", "host", 1);
  start();
  CHECK(aclshmemx_malloc(64, DEVICE_SIDE) == nullptr && says("MEMSPAN_DEVICE"));
  CHECK(aclshmemx_malloc(64, HOST_SIDE) != nullptr);
  CHECK(aclshmem_finalize() == 0);
}

// No driver: clear on all.
void absent() {
  start();
  CHECK(aclshmemx_malloc(64, DEVICE_SIDE) == nullptr && says("no CUDA driver"));
  auto* word = on_host<std::int32_t>(1);
  aclshmem_int32_p(word, my_pe, next_pe());
  aclshmem_barrier_all();
  CHECK(*word == previous_pe());
  CHECK(aclshmem_finalize() == 0);
}

volatile sig_atomic_t told = 0;

// The others keep what they have mapped, and go on.
void death() {
  start();
  shmemx_set_error_handler([](const char*, int, const char*) { told = 1; });
  auto* word = on_device<std::int32_t>(1);
  store(word, 7 + my_pe);
  aclshmem_barrier_all();
  if (my_pe == 1) kill(getpid(), SIGKILL);
  while (!told) aclshmem_barrier_all();
  CHECK(look(static_cast<std::int32_t*>(aclshmem_ptr(word, 1))) == 8);
  CHECK(aclshmem_int32_g(word, 1) == 8 && aclshmem_int32_g(word, 0) == 7);
  std::fprintf(stderr, "PE %d goes on\n", my_pe);
  std::_Exit(0);
}

// What ends the process, by its line.
void ends(const std::string& how) {
  start();
  auto* word = on_device<std::uint64_t>(2);
  std::uint64_t value = 1;
  std::size_t found = 0;
  if (how == "add") shmem_uint64_atomic_add(word, 1, 0);
  if (how == "signal_add")
    shmem_uint64_put_signal(word, &value, 1, word + 1, 1, SHMEM_SIGNAL_ADD, 0);
  if (how == "set_of_words")
    aclshmem_uint64_wait_until_any(word, 2, nullptr, ACLSHMEM_CMP_NE, 0, &found);
  if (how == "lock") shmem_set_lock(reinterpret_cast<long*>(word));
  if (how == "outside") aclshmem_putmem(word, &value, kHeapBytes + 1, 0);
  if (how == "misaligned")
    shmem_uint64_atomic_set(reinterpret_cast<std::uint64_t*>(reinterpret_cast<char*>(word) + 4), 1,
                            0);
  std::_Exit(0);
}

}  // namespace

int main(int, char** argv) {
  const std::string what = argv[1];
  if (what != "absent") use_gpu();
  if (what == "moves")
    moves();
  else if (what == "instances")
    instances();
  else if (what == "shortage")
    shortage();
  else if (what == "taken")
    taken();
  else if (what == "mismatch")
    mismatch();
  else if (what == "absent")
    absent();
  else if (what == "death")
    death();
  else
    ends(what);
  return 0;
}
