// SPDX-License-Identifier: Apache-2.0
#include "transport/registry.h"

#include <fmt/format.h>

#include "core/environment.h"

namespace memspan {
namespace {

MEMSPAN_REMEDY(kNoTransport, "no-common-transport",
               "Two processes cannot reach each other's memory, for the reasons in the message.",
               "Unset MEMSPAN_TRANSPORT; run `memspan-info --routes` under the same launcher.");

constexpr const char* kVariable = "MEMSPAN_TRANSPORT";

constexpr const char* kOtherHosts = "they are on different hosts";

std::string no_mapping(const Pair& pair) {
  if (!pair.same_node) return kOtherHosts;
  return pair.memory_is_mappable ? "" : "the memory is not in a file that both can map";
}

std::string no_cma(const Pair& pair) {
  return pair.same_node ? pair.no_process_access : kOtherHosts;
}

constexpr TransportEntry kTransports[] = {
    {"mapped", "loads and stores to memory that both processes map", no_mapping,
     "both are on one node and the memory is mapped"},
    {"cma", "process_vm_readv and process_vm_writev on memory of one node", no_cma,
     "both are on one node and the kernel lets them reach each other's memory"},
    {"message", "the library's own protocol over sockets",
     [](const Pair& pair) { return pair.no_message_address; }, "a connection can be made"},
};

std::string names() {
  std::string all;
  for (const TransportEntry& entry : kTransports)
    all += fmt::format("{}{}", all.empty() ? "" : ", ", entry.name);
  return all;
}

}  // namespace

std::span<const TransportEntry> transports() {
  return kTransports;
}

Result<AllowedTransports> AllowedTransports::parse(std::string_view text) {
  AllowedTransports allowed;
  if (text.empty()) return allowed;
  for (const std::string_view name : split(text, ',')) {
    if (std::none_of(std::begin(kTransports), std::end(kTransports),
                     [&](const TransportEntry& entry) { return entry.name == name; }))
      return Status(Code::kInvalidArgument,
                    fmt::format("{} names \"{}\"; allowed are {}, with commas between them",
                                kVariable, name, names()));
    allowed.names_.emplace_back(name);
  }
  return allowed;
}

Result<AllowedTransports> AllowedTransports::from_environment() {
  return parse(environment_or(kVariable, ""));
}

bool AllowedTransports::has(std::string_view name) const {
  return names_.empty() || std::find(names_.begin(), names_.end(), name) != names_.end();
}

Result<TransportChoice> AllowedTransports::choose(
    const Pair& pair, std::span<const std::string_view> candidates) const {
  std::string reasons;
  for (const TransportEntry& entry : kTransports) {
    if (std::find(candidates.begin(), candidates.end(), entry.name) == candidates.end()) continue;
    const std::string obstacle =
        has(entry.name) ? entry.obstacle(pair) : fmt::format("{} does not allow it", kVariable);
    if (obstacle.empty())
      return TransportChoice{entry.name, fmt::format("{}: {}", entry.name, entry.reason)};
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", entry.name, obstacle);
  }
  return Status(Code::kUnreachable, fmt::format("{} and {} have no transport in common ({}){}",
                                                pair.from, pair.to, reasons, kNoTransport));
}

}  // namespace memspan
