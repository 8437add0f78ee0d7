// SPDX-License-Identifier: Apache-2.0
// Processes that another vendor's launcher started agree on a store of PE 0, and meet there.
//
//   each PE              PE 0                                each PE
//   put its host ─fence─> listen, put address + secret ─fence─> get it, connect
#include <fmt/format.h>

#include "core/environment.h"
#include "core/random.h"
#include "net/own_addresses.h"
#include "world/membership.h"
#include "world/mpi_job.h"

namespace memspan::inline world {
namespace {

constexpr const char* kHostKey = "host";  // "KERNEL|NAME"
constexpr const char* kStoreKey = "store";
constexpr const char* kAddressVariable = "SHMEM_MASTER_ADDR";
constexpr std::size_t kSecretBytes = 32;
constexpr std::string_view kNoSecret = "-";
constexpr std::size_t kMostTold = 400;  // launchers take 1 KiB of digits, and an error may be long

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
  Rendezvous rendezvous{.rank = channel.rank(),
                        .size = channel.size(),
                        .store = {},
                        .security = security,
                        .hosted = nullptr};
  MEMSPAN_PASS(channel.put(kHostKey, kernel_identity() + "|" + host_name(), deadline));
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

}  // namespace memspan::inline world
