// SPDX-License-Identifier: Apache-2.0
// A device whose threads are threads of the processor: the primitives of <memspan/kernel_device.h>,
// so that what kernels do on a GPU runs in tests (MEMSPAN_KERNEL_PRIMITIVES names this file).
//
// A block is one of a launch on the host device; run_threads() gives it more threads than one.
#pragma once

#include <memspan/kernel_calls.h>
#include <memspan/kernel_state.h>
#include <memspan/kernel_types.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#define MEMSPAN_KERNEL_FUNCTION inline
#define MEMSPAN_KERNEL_OUT_OF_LINE inline

namespace memspan::kernel {

// One for the program: the functions in line that read it are.
inline memspan_kernel_state this_units_state;

namespace primitive {

// What the threads of a block share.
struct Block {
  explicit Block(unsigned threads) : number(memspan_kernel_block()), step(threads) {}
  unsigned number;
  std::barrier<> step;
  std::uint64_t given = 0;
};
struct Place {
  Block* shared = nullptr;  // null: the block is this thread
  unsigned thread = 0;
  unsigned threads = 1;
  unsigned blocks = 0;
};
inline thread_local Place place;

// body() by so many threads of this block.
template <typename Body>
void run_threads(unsigned threads, Body body) {
  Block shared(threads);
  const unsigned blocks = memspan_kernel_blocks();
  const auto run = [&](unsigned thread) {
    place = {&shared, thread, threads, blocks};
    body();
    place = {};
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(run, i);
  run(0);
  for (std::thread& one : others) one.join();
}

inline const memspan_kernel_state& state() {
  return this_units_state;
}
inline unsigned block() {
  return place.shared == nullptr ? memspan_kernel_block() : place.shared->number;
}
inline unsigned blocks() {
  return place.shared == nullptr ? memspan_kernel_blocks() : place.blocks;
}
inline unsigned thread() {
  return place.thread;
}
inline unsigned threads() {
  return place.threads;
}
inline void sync_block() {
  if (place.shared != nullptr) place.shared->step.arrive_and_wait();
}

// A warp is as large as its block.
template <Scope scope>
struct Group {
  unsigned index() const { return thread(); }
  unsigned size() const { return threads(); }
  void sync() const { sync_block(); }
  std::uint64_t broadcast(std::uint64_t value) const {
    if (place.shared == nullptr) return value;
    sync_block();
    if (index() == 0) place.shared->given = value;
    sync_block();
    return place.shared->given;
  }
};
template <>
struct Group<Scope::kThread> {
  unsigned index() const { return 0; }
  unsigned size() const { return 1; }
  void sync() const {}
  std::uint64_t broadcast(std::uint64_t value) const { return value; }
};

inline void sync_grid(const char*) {
  sync_block();
  if (thread() == 0) memspan_kernel_sync(MEMSPAN_KERNEL_GRID);
  sync_block();
}

template <typename T>
T load(const T* word, int order) {
  T value;
  __atomic_load(word, &value, order);
  return value;
}
template <typename T>
T load_relaxed(const T* word) {
  return load(word, __ATOMIC_RELAXED);
}
template <typename T>
T load_acquire(const T* word) {
  return load(word, __ATOMIC_ACQUIRE);
}
template <typename T>
void store_relaxed(T* word, T value) {
  __atomic_store(word, &value, __ATOMIC_RELAXED);
}
template <typename T>
void store_release(T* word, T value) {
  __atomic_store(word, &value, __ATOMIC_RELEASE);
}
template <typename T>
T exchange(T* word, T value) {
  return __atomic_exchange_n(word, value, __ATOMIC_ACQ_REL);
}
template <typename T>
T compare_exchange(T* word, T expected, T value) {
  __atomic_compare_exchange_n(word, &expected, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return expected;
}
template <typename T>
T add(T* word, T value) {
  return __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL);
}
template <typename T>
T bit_and(T* word, T value) {
  return __atomic_fetch_and(word, value, __ATOMIC_ACQ_REL);
}
template <typename T>
T bit_or(T* word, T value) {
  return __atomic_fetch_or(word, value, __ATOMIC_ACQ_REL);
}
template <typename T>
T bit_xor(T* word, T value) {
  return __atomic_fetch_xor(word, value, __ATOMIC_ACQ_REL);
}
inline void fence() {
#if defined(__SANITIZE_THREAD__)  // which does not know fences
  static std::atomic<int> meeting{0};
  meeting.fetch_add(0, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}
inline std::uint64_t take_ticket(std::uint64_t* counter) {
  return __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}
inline void pause() {
  if (place.shared == nullptr) memspan_kernel_let_others_begin();
  sched_yield();
}
inline std::uint64_t nanoseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count());
}
// Where a GPU's launch would fail, the process ends with code 3.
[[noreturn]] inline void end(const char* call, const char* why) {
  std::fprintf(stderr, "emulated device: %s: %s\n", call, why);
  _exit(3);
}

}  // namespace primitive

namespace {

// MEMSPAN_TEST_NATIVE_ATOMICS=0: as on a bus without atomics.
class ThisUnit {
 public:
  ThisUnit() { memspan_kernel_register_unit(&unit_); }
  ~ThisUnit() { memspan_kernel_unregister_unit(&unit_); }
  ThisUnit(const ThisUnit&) = delete;
  ThisUnit& operator=(const ThisUnit&) = delete;

 private:
  static const char* map(void*, std::size_t) { return nullptr; }
  static void unmap(void*) {}
  static const char* allocate(void** memory, std::size_t bytes) {
    *memory = std::calloc(1, bytes);
    return *memory == nullptr ? "no memory" : nullptr;
  }
  static void release(void* memory) { std::free(memory); }
  static int has_native_atomics() {
    const char* const choice = std::getenv("MEMSPAN_TEST_NATIVE_ATOMICS");
    return choice == nullptr || std::strcmp(choice, "0") != 0 ? 1 : 0;
  }
  static const char* set_state(const memspan_kernel_state* state) {
    this_units_state = *state;
    return nullptr;
  }

  memspan_kernel_unit unit_{MEMSPAN_KERNEL_STATE_VERSION, map,       unmap,  allocate, release,
                            has_native_atomics,           set_state, nullptr};
};
ThisUnit this_unit;

}  // namespace

}  // namespace memspan::kernel
