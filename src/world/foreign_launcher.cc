// SPDX-License-Identifier: Apache-2.0
#include "world/foreign_launcher.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <limits.h>
#include <stdlib.h>

#include <array>
#include <limits>

#include "core/environment.h"
#include "core/random.h"
#include "net/own_addresses.h"
#include "world/membership.h"
#include "world/mpi_job.h"

namespace memspan {
namespace {

using Protocol = ForeignLauncher::Protocol;

// The protocols that a launcher may offer its processes.
enum class Speech { kNone, kPmix, kPmiOrPmix };

struct Known {
  const char* who;
  const char* mark;  // every process that it starts has this
  const char* rank;
  const char* size;  // null: it does not say
  const char* job;   // together with the next one it names it; null: not
  const char* job_step;
  Speech speech;
  const char* hint = "";
};

// The first launcher whose mark is set started the process: those above run inside those below.
// Slurm's mark is of a step (srun): a batch script's shell, a single process, has SLURM_NTASKS.
constexpr Known kLaunchers[] = {
    {"Open MPI's launcher (mpirun, or its oshrun)", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", nullptr, Speech::kPmix},
    {"Flux", "FLUX_TASK_RANK", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_JOB_ID", nullptr,
     Speech::kPmiOrPmix},
    {"PALS", "PALS_RANKID", "PALS_RANKID", "PMI_SIZE", "PALS_APID", nullptr, Speech::kPmiOrPmix},
    {"a launcher with PMI (MPICH's mpiexec, for instance)", "PMI_SIZE", "PMI_RANK", "PMI_SIZE",
     nullptr, nullptr, Speech::kPmiOrPmix},
    {"Slurm's srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_JOB_ID",
     "SLURM_STEP_ID", Speech::kPmix, "srun --mpi=pmix or --mpi=pmi2 offers one; "},
    {"a launcher with PMIx", "PMIX_RANK", "PMIX_RANK", nullptr, "PMIX_NAMESPACE", nullptr,
     Speech::kPmix},
    {"torchrun, or what set its variables,", "WORLD_SIZE", "RANK", "WORLD_SIZE", nullptr, nullptr,
     Speech::kNone},
};

// The oshrun of this installation, by its path: another vendor's has the same name.
std::string own_oshrun() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&refuse), &info) != 0) {
    const std::string library = info.dli_fname;
    char path[PATH_MAX];
    const std::string guess = library.substr(0, library.rfind('/') + 1) + "../bin/oshrun";
    if (realpath(guess.c_str(), path) != nullptr && access(path, X_OK) == 0) return path;
  }
  return "oshrun";
}

Protocol protocol_of(const Known& known) {
  if (known.speech == Speech::kPmiOrPmix && environment("PMI_FD")) return Protocol::kPmi;
  return known.speech != Speech::kNone && environment("PMIX_NAMESPACE") ? Protocol::kPmix
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

Result<std::optional<ForeignLauncher>> describe(const Known& known) {
  ForeignLauncher launcher;
  launcher.who = known.who;
  launcher.hint = known.hint;
  MEMSPAN_PASS_ASSIGN(launcher.size, number(known.size, 1));
  MEMSPAN_PASS_ASSIGN(launcher.rank, number(known.rank, 0));
  launcher.seen = launcher.size
                      ? fmt::format("{} is {}", known.size, *launcher.size)
                      : fmt::format("{} is {}", known.mark, environment_or(known.mark, ""));
  launcher.protocol = protocol_of(known);
  launcher.job = job_of(known);
  return std::optional<ForeignLauncher>(std::move(launcher));
}

const Known* find_known() {
  for (const Known& known : kLaunchers)
    if (environment(known.mark)) return &known;
  return nullptr;
}

// Processes that another vendor's launcher started agree on a store of PE 0, and meet there.
//
//   each PE              PE 0                                each PE
//   put its host ─fence─> listen, put address + secret ─fence─> get it, connect

constexpr const char* kHostKey = "host";
constexpr const char* kStoreKey = "store";
constexpr const char* kAddressVariable = "SHMEM_MASTER_ADDR";
constexpr std::size_t kSecretBytes = 32;
constexpr std::string_view kNoSecret = "-";
constexpr std::size_t kMostTold = 400;  // launchers take 1 KiB of digits, and an error may be long

// "KERNEL|NAME".
std::string own_host() {
  return kernel_identity() + "|" + host_name();
}

// Chooses the address at which PE 0 listens.
Result<Endpoint> choose_endpoint(LauncherChannel& channel, const Deadline& deadline) {
  if (auto given = environment(kAddressVariable)) return Endpoint{*given, 0};
  const std::string own_kernel = kernel_identity();
  for (int rank = 1; rank < channel.size(); ++rank) {
    MEMSPAN_TRY_ASSIGN(const std::string host, channel.get(rank, kHostKey, deadline),
                       fmt::format("asking where PE {} is", rank));
    const std::size_t end = std::min(host.find('|'), host.size());
    if (host.compare(0, end, own_kernel) == 0) continue;
    const std::string name = host.substr(std::min(end + 1, host.size()));
    if (auto own = address_for_other_hosts(Endpoint{name, 1})) return Endpoint{*own, 0};
    return Status(Code::kUnavailable,
                  fmt::format("no interface of PE 0's host has an address at which PE {} on {} "
                              "could reach it; {} names one",
                              rank, name, kAddressVariable));
  }
  return Endpoint{"127.0.0.1", 0};
}

// Opens the store; returns what the others need of it: "URL SECRET".
Result<std::string> host_store(LauncherChannel& channel, Rendezvous& rendezvous,
                               const Deadline& deadline) {
  MEMSPAN_TRY_ASSIGN(const Endpoint endpoint, choose_endpoint(channel, deadline),
                     "choosing the store's address");
  // A program that chose how to protect the store keeps its secrets to itself.
  std::string secret(kNoSecret);
  if (rendezvous.security.kind == StoreSecurity::Kind::kHostSecret) {
    secret = random_hex(kSecretBytes);
    rendezvous.security = {.kind = StoreSecurity::Kind::kSecret, .secret = secret};
  }
  MEMSPAN_TRY_ASSIGN(rendezvous.hosted, listen_for_job(rendezvous, endpoint), "hosting the store");
  rendezvous.store = rendezvous.hosted->endpoint();
  return fmt::format("{} {}", rendezvous.store.to_string(), secret);
}

Status read_store(const std::string& told, Rendezvous& rendezvous) {
  MEMSPAN_TRY_ASSIGN(const std::string place, decode_outcome(told), "PE 0");
  const std::size_t blank = std::min(place.find(' '), place.size());
  MEMSPAN_TRY_ASSIGN(rendezvous.store, StoreAddress::parse(place.substr(0, blank)),
                     "reading where PE 0's store is");
  const std::string secret = place.substr(std::min(blank + 1, place.size()));
  if (secret != kNoSecret && rendezvous.security.kind == StoreSecurity::Kind::kHostSecret)
    rendezvous.security = {.kind = StoreSecurity::Kind::kSecret, .secret = secret};
  return Status::ok();
}

Result<Rendezvous> agree_on_store(LauncherChannel& channel, const StoreSecurity& security,
                                  const Deadline& deadline) {
  Rendezvous rendezvous;
  rendezvous.rank = channel.rank();
  rendezvous.size = channel.size();
  rendezvous.security = security;
  MEMSPAN_PASS(channel.put(kHostKey, own_host(), deadline));
  MEMSPAN_TRY(channel.fence(deadline), "waiting for all processes of the job");
  Status opened;
  if (rendezvous.rank == 0) {
    const auto place = host_store(channel, rendezvous, deadline);
    opened = place.status();
    MEMSPAN_PASS(channel.put(kStoreKey, encode_outcome(place).substr(0, kMostTold), deadline));
  }
  MEMSPAN_TRY(channel.fence(deadline), "waiting for PE 0 to publish the store's address");
  MEMSPAN_PASS(opened);
  if (rendezvous.rank == 0) return rendezvous;
  MEMSPAN_TRY_ASSIGN(const std::string told, channel.get(0, kStoreKey, deadline),
                     "asking where PE 0's store is");
  MEMSPAN_PASS(read_store(told, rendezvous));
  return rendezvous;
}

Result<std::unique_ptr<LauncherChannel>> open_channel(const ForeignLauncher& launcher,
                                                      const Deadline& deadline) {
  if (launcher.protocol == ForeignLauncher::Protocol::kNone)
    return refuse(launcher, "it offers neither PMIx nor PMI-1 with PMI_FD");
  auto channel = launcher.protocol == ForeignLauncher::Protocol::kPmi ? open_pmi_channel(deadline)
                                                                      : open_pmix_channel();
  if (!channel.is_ok()) return refuse(launcher, channel.status().message());
  return channel;
}

}  // namespace

Result<std::optional<ForeignLauncher>> find_foreign_launcher() {
  if (const Known* const known = find_known()) return describe(*known);
  return std::optional<ForeignLauncher>();
}

const char* launcher_variable() {
  constexpr const char* kOwn = "MEMSPAN_RANK";  // of oshrun
  if (environment(kOwn)) return kOwn;
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

Result<Membership> join_by_foreign_launcher(const ForeignLauncher& launcher, Duration limit,
                                            const StoreSecurity& security) {
  const Deadline deadline = Deadline::after(limit);
  if (launcher.size == 1) return join_single();
  MEMSPAN_PASS_ASSIGN(auto channel, open_channel(launcher, deadline));
  if (channel->size() == 1) return join_single();
  MEMSPAN_TRY_ASSIGN(Rendezvous rendezvous, agree_on_store(*channel, security, deadline),
                     fmt::format("finding the others through {}", launcher.who));
  if (mpi_state() != MpiState::kNotInitialized) channel.reset();
  MEMSPAN_PASS_ASSIGN(Membership joined, join_rendezvous(rendezvous, deadline.remaining()));
  joined.how += fmt::format(", with the place from {}", launcher.who);
  joined.launcher = std::move(channel);
  rendezvous.hosted = nullptr;
  joined.again = std::move(rendezvous);
  return joined;
}

}  // namespace memspan
