// SPDX-License-Identifier: Apache-2.0
#include "world/foreign_launcher.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <limits>

#include "core/environment.h"
#include "world/launch.h"

namespace memspan::inline world {
namespace {

using Protocol = ForeignLauncher::Protocol;

struct Known {
  const char* who;
  const char* mark;  // every process that it starts has this
  const char* rank;
  const char* size;  // null: it does not say
  const char* job;   // together with the next one it names it; null: not
  const char* job_step;
  Protocol offer;  // what it may offer its processes; with kPmi also kPmix
  const char* hint = "";
};

// The first launcher whose mark is set started the process: those above run inside those below.
// Slurm's mark is of a step (srun): a batch script's shell, a single process, has SLURM_NTASKS.
constexpr Known kLaunchers[] = {
    {"Open MPI's launcher (mpirun, or its oshrun)", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", nullptr, Protocol::kPmix},
    {"Flux", "FLUX_TASK_RANK", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_JOB_ID", nullptr,
     Protocol::kPmi},
    {"PALS", "PALS_RANKID", "PALS_RANKID", "PMI_SIZE", "PALS_APID", nullptr, Protocol::kPmi},
    {"a launcher with PMI (MPICH's mpiexec, for instance)", "PMI_SIZE", "PMI_RANK", "PMI_SIZE",
     nullptr, nullptr, Protocol::kPmi},
    {"Slurm's srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_JOB_ID",
     "SLURM_STEP_ID", Protocol::kPmix, "srun --mpi=pmix or --mpi=pmi2 offers one; "},
    {"a launcher with PMIx", "PMIX_RANK", "PMIX_RANK", nullptr, "PMIX_NAMESPACE", nullptr,
     Protocol::kPmix},
    {"torchrun, or what set its variables,", "WORLD_SIZE", "RANK", "WORLD_SIZE", nullptr, nullptr,
     Protocol::kNone},
};

// The oshrun of this installation, by its path: another vendor's has the same name.
std::string own_oshrun() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_oshrun), &info) != 0) {
    const std::string library = info.dli_fname;
    char path[PATH_MAX];
    const std::string guess = library.substr(0, library.rfind('/') + 1) + "../bin/oshrun";
    if (realpath(guess.c_str(), path) != nullptr && access(path, X_OK) == 0) return path;
  }
  return "oshrun";
}

Protocol protocol_of(const Known& known) {
  if (known.offer == Protocol::kPmi && environment("PMI_FD")) return Protocol::kPmi;
  return known.offer != Protocol::kNone && environment("PMIX_NAMESPACE") ? Protocol::kPmix
                                                                         : Protocol::kNone;
}

std::string job_of(const Known& known) {
  std::string job;
  for (const char* const variable : {known.job, known.job_step})
    if (const auto part = variable == nullptr ? std::nullopt : environment(variable))
      job += (job.empty() ? "" : ".") + *part;
  return job;
}

Result<std::optional<int>> number(const char* variable, std::int64_t least) {
  if (variable == nullptr) return std::optional<int>();
  MEMSPAN_TRY_ASSIGN(const auto value,
                     environment_integer(variable, least, std::numeric_limits<std::int32_t>::max()),
                     "looking for the launcher of this process");
  return value ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
}

const Known* find_known() {
  for (const Known& known : kLaunchers)
    if (environment(known.mark)) return &known;
  return nullptr;
}

}  // namespace

Result<std::optional<ForeignLauncher>> find_foreign_launcher() {
  const Known* const known = find_known();
  if (known == nullptr) return std::optional<ForeignLauncher>();
  MEMSPAN_PASS_ASSIGN(const auto size, number(known->size, 1));
  MEMSPAN_PASS_ASSIGN(const auto rank, number(known->rank, 0));
  return std::optional(ForeignLauncher{
      .who = known->who,
      .seen = fmt::format("{} is {}", size ? known->size : known->mark,
                          size ? std::to_string(*size) : environment_or(known->mark, "")),
      .hint = known->hint,
      .protocol = protocol_of(*known),
      .rank = rank,
      .size = size,
      .job = job_of(*known)});
}

const char* launcher_variable() {
  if (environment(kLaunchVariable)) return kLaunchVariable;
  const Known* const known = find_known();
  return known == nullptr ? nullptr : known->mark;
}

Status refuse(const ForeignLauncher& launcher, const std::string& reason) {
  return {
      Code::kNotSupported,
      fmt::format("{} started this process ({}), and the processes of a memspan program cannot "
                  "find each other through it: {}; {}start the program with memspan's own {} "
                  "-n {}, or set {}RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in each process",
                  launcher.who, launcher.seen, reason, launcher.hint, own_oshrun(),
                  launcher.size ? std::to_string(*launcher.size) : "N",
                  launcher.rank && launcher.size
                      ? "MEMSPAN_STORE to the address of a running memspan-store, or "
                      : "")};
}

}  // namespace memspan::inline world
