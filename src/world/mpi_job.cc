// SPDX-License-Identifier: Apache-2.0
#include "world/mpi_job.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "core/environment.h"

namespace memspan::inline world {
namespace {

// For dlsym(): a loaded MPI library, even if its symbols are not global, as in an interpreter's
// module; else RTLD_DEFAULT.
void* mpi_library() {
  std::string path;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        const std::string_view name = info->dlpi_name;
        const bool is_mpi = name.substr(name.rfind('/') + 1).substr(0, 6) == "libmpi";
        if (is_mpi) *static_cast<std::string*>(found) = name;
        return is_mpi ? 1 : 0;
      },
      &path);
  // It is already loaded, and stays loaded because others use it.
  void* const loaded =
      path.empty() ? nullptr : dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  return loaded != nullptr ? loaded : RTLD_DEFAULT;
}

// Handles of the ABI that MPICH, Intel MPI and others share.
constexpr std::uintptr_t kMpichWorld = 0x44000000;
constexpr std::uintptr_t kMpichByte = 0x4c00010d;
constexpr int kThreadMultiple = 3;  // in both ABIs

template <typename Function>
Function find(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

// An object of the library. The linker may have put it into the program, which the library then
// uses: that one is the first of the global scope.
void* find_object(void* library, const char* name) {
  void* const original = dlsym(library, name);
  void* const first = original == nullptr ? nullptr : dlsym(RTLD_DEFAULT, name);
  return first == nullptr ? original : first;
}

// Its components look for its symbols among the global ones.
Result<void*> load() {
  std::array<const char*, 4> names{"libmpi.so.12", "libmpich.so.12", "libmpi.so.40", "libmpi.so"};
  // The launcher's MPI comes first.
  if (environment("OMPI_COMM_WORLD_SIZE"))
    std::rotate(names.begin(), names.begin() + 2, names.end());
  for (const char* const name : names)
    if (void* const library = dlopen(name, RTLD_NOW | RTLD_GLOBAL)) return library;
  return Status(Code::kNotSupported,
                fmt::format("no MPI is loaded, and none of {} can be; LD_PRELOAD loads another one",
                            fmt::join(names, ", ")));
}

int (*finalize)() = nullptr;

Status initialize(void* library) {
  const auto init = find<int (*)(int*, char***, int, int*)>(library, "MPI_Init_thread");
  finalize = find<int (*)()>(library, "MPI_Finalize");
  if (init == nullptr || finalize == nullptr)
    return {Code::kNotSupported, "the MPI library has no MPI_Init_thread or no MPI_Finalize"};
  int provided = 0;
  if (const int code = init(nullptr, nullptr, kThreadMultiple, &provided); code != 0)
    return {Code::kSystem, fmt::format("MPI_Init_thread failed with {}", code)};
  std::atexit([] {
    if (mpi_state() == MpiState::kInitialized) finalize();
  });
  return Status::ok();
}

}  // namespace

MpiState mpi_state() {
  // Equal in every MPI, because it uses no types of MPI.
  using Question = int (*)(int*);
  void* const library = mpi_library();
  const auto initialized = find<Question>(library, "MPI_Initialized");
  const auto finalized = find<Question>(library, "MPI_Finalized");
  if (initialized == nullptr || finalized == nullptr) return MpiState::kAbsent;
  int is_so = 0;
  finalized(&is_so);
  if (is_so != 0) return MpiState::kFinalized;
  initialized(&is_so);
  return is_so != 0 ? MpiState::kInitialized : MpiState::kNotInitialized;
}

Result<MpiJob> MpiJob::join(const void* communicator) {
  const MpiState state = mpi_state();
  if (state == MpiState::kFinalized)
    return Status(Code::kNotSupported, "MPI has been finalized; start before MPI_Finalize");
  void* library = mpi_library();
  if (state == MpiState::kAbsent) {
    MEMSPAN_TRY_ASSIGN(library, load(), "starting by MPI");
  }
  if (state != MpiState::kInitialized) MEMSPAN_PASS(initialize(library));
  MpiJob job;
  job.broadcast_ = find<Broadcast>(library, "MPI_Bcast");
  const auto ask_rank = find<int (*)(Handle, int*)>(library, "MPI_Comm_rank");
  const auto ask_size = find<int (*)(Handle, int*)>(library, "MPI_Comm_size");
  if (job.broadcast_ == nullptr || ask_rank == nullptr || ask_size == nullptr)
    return Status(Code::kNotSupported, "the MPI library has no MPI_Bcast, rank or size");
  void* const world = find_object(library, "ompi_mpi_comm_world");
  const bool is_open_mpi = world != nullptr;
  job.communicator_ = is_open_mpi ? reinterpret_cast<Handle>(world) : kMpichWorld;
  job.byte_ =
      is_open_mpi ? reinterpret_cast<Handle>(find_object(library, "ompi_mpi_byte")) : kMpichByte;
  if (communicator != nullptr) {
    job.communicator_ = 0;
    std::memcpy(&job.communicator_, communicator, is_open_mpi ? sizeof(void*) : sizeof(int));
  }
  if (ask_rank(job.communicator_, &job.rank_) != 0 || ask_size(job.communicator_, &job.size_) != 0)
    return Status(Code::kInvalidArgument, "the communicator is none of this MPI");
  return job;
}

Result<std::string> MpiJob::broadcast(const std::string& text) const {
  std::array<char, kMostBytes + 1> all{};
  if (text.size() > kMostBytes)
    return Status(Code::kInvalidArgument, fmt::format("{} bytes to broadcast", text.size()));
  if (rank_ == 0) std::memcpy(all.data(), text.data(), text.size());
  if (const int code =
          broadcast_(all.data(), static_cast<int>(all.size()), byte_, 0, communicator_);
      code != 0)
    return Status(Code::kSystem, fmt::format("MPI_Bcast failed with {}", code));
  return std::string(all.data());
}

}  // namespace memspan::inline world
