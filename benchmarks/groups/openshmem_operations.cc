// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM next to the MPI. The collectives of both work on the symmetric heap. Put and get have
// the same local memory; the remote one is the heap, and for the MPI what its own window allocates,
// which it can reach in the best way it has.
#include <mpi.h>
#include <shmem.h>

#include <cstdlib>
#include <cstring>

#include "operations.h"

namespace bench {
namespace {

constexpr std::size_t kAlignment = 4096, kBesideTheBuffers = std::size_t{32} << 20;

class OpenShmemOperations : public Operations {
 public:
  OpenShmemOperations(const Processes& processes, std::size_t largest)
      : processes_(processes), room_(largest), local_(ordinary_memory(largest)) {
    const std::string heap = std::to_string(2 * largest + kBesideTheBuffers);
    ::setenv("SHMEM_SYMMETRIC_SIZE", heap.c_str(), 0);
    shmem_init();
    if (shmem_my_pe() != processes.rank || shmem_n_pes() != processes.count)
      give_up("rank " + std::to_string(processes.rank) + " is PE " + std::to_string(shmem_my_pe()) +
              " of " + std::to_string(shmem_n_pes()));
    source_ = heap_memory();
    result_ = heap_memory();
    fill_with_floats(source_, room_, processes.rank);
    MPI_Win_allocate(static_cast<MPI_Aint>(room_), 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                     &window_memory_, &window_);
    std::memset(window_memory_, 0, room_);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
  }
  ~OpenShmemOperations() override {
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
    shmem_free(result_);
    shmem_free(source_);
    shmem_finalize();
  }
  OpenShmemOperations(const OpenShmemOperations&) = delete;
  OpenShmemOperations& operator=(const OpenShmemOperations&) = delete;

  Cell cell(const std::string& name, std::size_t size) override {
    if (name == "shmem_barrier")
      return {name,
              0,
              [] { shmem_barrier_all(); },
              [] { MPI_Barrier(MPI_COMM_WORLD); },
              {},
              [] { return true; }};
    if (name == "shmem_broadcast") return broadcast(size);
    if (name == "shmem_alltoall") return all_to_all(size);
    return name == "put" ? put(size) : get(size);
  }

 private:
  // Its root's result is written, too; MPI_Bcast has no such result.
  Cell broadcast(std::size_t size) {
    void* const values = processes_.rank == 0 ? source_ : result_;
    const auto ours = [this, size] {
      shmem_broadcastmem(SHMEM_TEAM_WORLD, result_, source_, size, 0);
    };
    const auto rival = [values, size] {
      MPI_Bcast(values, static_cast<int>(size), MPI_BYTE, 0, MPI_COMM_WORLD);
    };
    const auto check = [this, ours, rival, size] {
      const bool is_same = leave_the_same(ours, rival, result_, size);
      return processes_.rank == 0 || is_same;
    };
    return {"shmem_broadcast", size, ours, rival, copy(size), check};
  }

  Cell all_to_all(std::size_t size) {
    const std::size_t part = size / static_cast<std::size_t>(processes_.count);
    const auto ours = [this, part] { shmem_alltoallmem(SHMEM_TEAM_WORLD, result_, source_, part); };
    const auto rival = [this, count = static_cast<int>(part)] {
      MPI_Alltoall(source_, count, MPI_BYTE, result_, count, MPI_BYTE, MPI_COMM_WORLD);
    };
    const std::size_t written = part * static_cast<std::size_t>(processes_.count);
    const auto check = [this, ours, rival, written] {
      return leave_the_same(ours, rival, result_, written);
    };
    return {"shmem_alltoall", size, ours, rival, copy(size), check};
  }

  Cell put(std::size_t size) {
    const int count = static_cast<int>(size);
    const auto ours = [this, size] {
      shmem_putmem(result_, local_.get(), size, 1);
      shmem_quiet();
    };
    const auto rival = [this, count] {
      MPI_Put(local_.get(), count, MPI_BYTE, 1, 0, count, MPI_BYTE, window_);
      MPI_Win_flush(1, window_);
    };
    void* const there = shmem_ptr(result_, 1);
    const auto bare = [this, there, size] { std::memcpy(there, local_.get(), size); };
    const auto check = [this, ours, rival, size] {
      fill_with_floats(local_.get(), size, 3);
      std::memset(result_, 0x55, size);
      MPI_Barrier(MPI_COMM_WORLD);
      if (processes_.rank == 0) {
        ours();
        rival();
      }
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Win_sync(window_);
      return processes_.rank != 1 || (std::memcmp(result_, local_.get(), size) == 0 &&
                                      std::memcmp(window_memory_, local_.get(), size) == 0);
    };
    return {"put", size, ours, rival, bare, check, true};
  }

  Cell get(std::size_t size) {
    const int count = static_cast<int>(size);
    const auto ours = [this, size] { shmem_getmem(local_.get(), source_, size, 1); };
    const auto rival = [this, count] {
      MPI_Get(local_.get(), count, MPI_BYTE, 1, 0, count, MPI_BYTE, window_);
      MPI_Win_flush(1, window_);
    };
    void* const there = shmem_ptr(source_, 1);
    const auto bare = [this, there, size] { std::memcpy(local_.get(), there, size); };
    const auto check = [this, ours, rival, size] {
      std::memcpy(window_memory_, source_, size);
      MPI_Win_sync(window_);
      MPI_Barrier(MPI_COMM_WORLD);
      return processes_.rank != 0 || leave_the_same_here(ours, rival, size);
    };
    return {"get", size, ours, rival, bare, check, true};
  }
  // For calls of one process.
  bool leave_the_same_here(const Call& ours, const Call& rival, std::size_t size) {
    std::memset(local_.get(), 0x55, size);
    ours();
    const std::string one(local_.get(), local_.get() + size);
    std::memset(local_.get(), 0x2a, size);
    rival();
    return std::memcmp(one.data(), local_.get(), size) == 0;
  }

  Call copy(std::size_t size) {
    return [this, size] { std::memcpy(result_, source_, size); };
  }
  void* heap_memory() {
    void* const memory = shmem_align(kAlignment, room_);
    if (memory == nullptr) give_up("the symmetric heap has no room for " + std::to_string(room_));
    std::memset(memory, 0, room_);
    return memory;
  }

  const Processes processes_;
  const std::size_t room_;
  const std::unique_ptr<char[]> local_;
  void *source_ = nullptr, *result_ = nullptr, *window_memory_ = nullptr;
  MPI_Win window_ = MPI_WIN_NULL;
};

}  // namespace

Family openshmem_operations() {
  return {{"shmem_barrier", "shmem_broadcast", "shmem_alltoall", "put", "get"},
          [](const Processes& processes, std::size_t largest) -> std::unique_ptr<Operations> {
            return std::make_unique<OpenShmemOperations>(processes, largest);
          }};
}

}  // namespace bench
