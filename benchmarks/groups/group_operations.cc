// SPDX-License-Identifier: Apache-2.0
// A group of memspan next to MPI_COMM_WORLD, on the same ordinary memory.
#include <memspan/group.h>
#include <mpi.h>

#include <algorithm>
#include <cstring>

#include "operations.h"

namespace bench {
namespace {

constexpr std::uint32_t kTimeoutMs = 60'000;

int exchange(void*, const void* mine, std::size_t bytes, void* all) {
  const int count = static_cast<int>(bytes);
  return MPI_Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, MPI_COMM_WORLD);
}

class GroupOperations : public Operations {
 public:
  GroupOperations(const Processes& processes, std::size_t largest)
      : processes_(processes),
        room_(std::max(largest, static_cast<std::size_t>(processes.count) * sizeof(float))),
        source_(ordinary_memory(room_)),
        result_(ordinary_memory(room_)) {
    fill_with_floats(source_.get(), room_, processes.rank);
    must("memspan_group_create", memspan_group_create(processes.rank, processes.count, exchange,
                                                      nullptr, kTimeoutMs, &group_));
  }
  ~GroupOperations() override { must("memspan_group_destroy", memspan_group_destroy(group_)); }
  GroupOperations(const GroupOperations&) = delete;
  GroupOperations& operator=(const GroupOperations&) = delete;

  Cell cell(const std::string& name, std::size_t size) override {
    if (name == "barrier") return barrier();
    if (name == "allreduce") return all_reduce(size);
    if (name == "broadcast") return broadcast(size);
    if (name == "alltoall") return all_to_all(size);
    if (name == "allgather") return all_gather(size);
    return reduce_scatter(size);
  }

 private:
  Cell barrier() {
    return {"barrier",
            0,
            [this] { must("barrier", memspan_group_barrier(group_)); },
            [] { MPI_Barrier(MPI_COMM_WORLD); },
            {},
            [] { return true; }};
  }

  Cell all_reduce(std::size_t size) {
    const std::size_t count = size / sizeof(float);
    return collective(
        "allreduce", size,
        [this, count] {
          must("all_reduce", memspan_group_all_reduce(group_, result_.get(), source_.get(), count,
                                                      MEMSPAN_TYPE_FLOAT32, MEMSPAN_OP_SUM));
        },
        [this, count] {
          MPI_Allreduce(source_.get(), result_.get(), static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                        MPI_COMM_WORLD);
        },
        size);
  }

  // In place: the root's values go into the others' results.
  Cell broadcast(std::size_t size) {
    Cell made = collective(
        "broadcast", size,
        [this, size] { must("broadcast", memspan_group_broadcast(group_, values(), size, 0)); },
        [this, size] { MPI_Bcast(values(), static_cast<int>(size), MPI_BYTE, 0, MPI_COMM_WORLD); },
        size);
    if (processes_.rank == 0) made.check = others_check(made);
    return made;
  }
  // The root has no result to look at.
  static std::function<bool()> others_check(const Cell& cell) {
    return [check = cell.check] {
      check();
      return true;
    };
  }
  void* values() { return processes_.rank == 0 ? source_.get() : result_.get(); }

  Cell all_to_all(std::size_t size) {
    const std::size_t part = size / parts();
    return collective(
        "alltoall", size,
        [this, results = parts_of(result_, part), values = parts_of(source_, part),
         bytes = std::vector<std::size_t>(parts(), part)] {
          must("all_to_all", memspan_group_all_to_all(group_, results.data(), bytes.data(),
                                                      const_cast<const void* const*>(values.data()),
                                                      bytes.data()));
        },
        [this, count = static_cast<int>(part)] {
          MPI_Alltoall(source_.get(), count, MPI_BYTE, result_.get(), count, MPI_BYTE,
                       MPI_COMM_WORLD);
        },
        part * parts());
  }

  Cell all_gather(std::size_t size) {
    const std::size_t part = size / parts();
    return collective(
        "allgather", size,
        [this, part, results = parts_of(result_, part)] {
          must("all_gather", memspan_group_all_gather(group_, results.data(), source_.get(), part));
        },
        [this, count = static_cast<int>(part)] {
          MPI_Allgather(source_.get(), count, MPI_BYTE, result_.get(), count, MPI_BYTE,
                        MPI_COMM_WORLD);
        },
        part * parts());
  }

  // At least one element for each.
  Cell reduce_scatter(std::size_t size) {
    const std::size_t count = std::max(size / parts() / sizeof(float), std::size_t{1});
    return collective(
        "reduce_scatter", size,
        [this, count, values = parts_of(source_, count * sizeof(float))] {
          must("reduce_scatter",
               memspan_group_reduce_scatter(group_, result_.get(),
                                            const_cast<const void* const*>(values.data()), count,
                                            MEMSPAN_TYPE_FLOAT32, MEMSPAN_OP_SUM));
        },
        [this, count = static_cast<int>(count)] {
          MPI_Reduce_scatter_block(source_.get(), result_.get(), count, MPI_FLOAT, MPI_SUM,
                                   MPI_COMM_WORLD);
        },
        count * sizeof(float));
  }

  // `written` bytes are what a call leaves in the results.
  Cell collective(const char* name, std::size_t size, Call ours, Call rival, std::size_t written) {
    const auto check = [this, ours, rival, written] {
      return leave_the_same(ours, rival, result_.get(), written);
    };
    const auto copy = [this, size] { std::memcpy(result_.get(), source_.get(), size); };
    return {name, size, std::move(ours), std::move(rival), copy, check};
  }

  std::size_t parts() const { return static_cast<std::size_t>(processes_.count); }
  std::vector<void*> parts_of(const std::unique_ptr<char[]>& memory, std::size_t bytes) const {
    std::vector<void*> all;
    for (std::size_t i = 0; i < parts(); ++i) all.push_back(memory.get() + i * bytes);
    return all;
  }

  const Processes processes_;
  const std::size_t room_;
  const std::unique_ptr<char[]> source_, result_;
  memspan_group_t group_ = nullptr;
};

}  // namespace

Family group_operations() {
  return {{"barrier", "allreduce", "broadcast", "alltoall", "allgather", "reduce_scatter"},
          [](const Processes& processes, std::size_t largest) -> std::unique_ptr<Operations> {
            return std::make_unique<GroupOperations>(processes, largest);
          }};
}

}  // namespace bench
