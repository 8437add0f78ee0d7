// SPDX-License-Identifier: Apache-2.0
#include "world/foreign_launcher.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <limits>
#include <string>

#include "core/environment.h"

namespace memspan {
namespace {

struct Launcher {
  const char* who;
  const char* mark;  // every process that it starts has this
  const char* size;  // and the number of processes here; null: it does not say
};

// The first whose mark is there started the process: the ones above run inside the ones below.
// Slurm's mark is of a step (srun); the shell of a batch script has SLURM_NTASKS too, and is one.
constexpr Launcher kLaunchers[] = {
    {"Open MPI's launcher (mpirun, or its oshrun)", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"},
    {"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
    {"PALS", "PALS_RANKID", "PMI_SIZE"},
    {"a launcher with PMI (MPICH's mpiexec, for instance)", "PMI_SIZE", "PMI_SIZE"},
    {"Slurm's srun", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_TASKS"},
    {"a launcher with PMIx", "PMIX_RANK", nullptr},
    {"torchrun, or what set its variables,", "WORLD_SIZE", "WORLD_SIZE"},
};

// The oshrun of this installation, by its path: another vendor's has the same name.
std::string own_oshrun() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&check_no_foreign_launcher), &info) != 0) {
    const std::string library = info.dli_fname;
    char path[PATH_MAX];
    const std::string guess = library.substr(0, library.rfind('/') + 1) + "../bin/oshrun";
    if (realpath(guess.c_str(), path) != nullptr && access(path, X_OK) == 0) return path;
  }
  return "oshrun";
}

Status refuse(const Launcher& launcher, const std::string& seen, const std::string& count) {
  return {Code::kNotSupported,
          fmt::format("{} started this process ({}), and the processes of a memspan program cannot "
                      "find each other through it; start the program with memspan's own {} -n {}, "
                      "or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in each process",
                      launcher.who, seen, own_oshrun(), count)};
}

}  // namespace

Status check_no_foreign_launcher() {
  for (const Launcher& launcher : kLaunchers) {
    const auto mark = environment(launcher.mark);
    if (!mark) continue;
    const auto text = launcher.size == nullptr ? std::nullopt : environment(launcher.size);
    if (!text) return refuse(launcher, fmt::format("{} is {}", launcher.mark, *mark), "N");
    auto size = parse_integer(launcher.size, *text, 1, std::numeric_limits<std::int32_t>::max());
    if (size.is_ok() && *size == 1) return Status::ok();
    return refuse(launcher, fmt::format("{} is {}", launcher.size, *text),
                  size.is_ok() ? *text : "N");
  }
  return Status::ok();
}

}  // namespace memspan
