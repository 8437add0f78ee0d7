// SPDX-License-Identifier: Apache-2.0
#include "transport/registry.h"

#include <fmt/format.h>

#include "core/environment.h"

namespace memspan::inline transport {
namespace {

MEMSPAN_REMEDY(kNoTransport, "no-common-transport",
               "Two processes cannot reach each other's memory, for the reasons in the message.",
               "Unset MEMSPAN_TRANSPORT; run `memspan-info --routes` under the same launcher.");

constexpr const char* kVariable = "MEMSPAN_TRANSPORT";

constexpr TransportEntry kTransports[] = {
    {"mapped", "loads and stores to memory that both processes map", true,
     "both are on one node and the memory is mapped"},
    {"cma", "process_vm_readv and process_vm_writev on memory of one node", true,
     "both are on one node and the kernel lets them reach each other's memory"},
    {"message", "the library's own protocol over sockets", false, "a connection can be made"},
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
    std::string obstacle;
    if (!has(entry.name))
      obstacle = fmt::format("{} does not allow it", kVariable);
    else if (entry.is_for_one_node && !pair.same_node)
      obstacle = "they are on different hosts";
    if (obstacle.empty())
      return TransportChoice{entry.name, fmt::format("{}: {}", entry.name, entry.reason)};
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", entry.name, obstacle);
  }
  return Status(Code::kUnreachable, fmt::format("{} and {} have no transport in common ({}){}",
                                                pair.from, pair.to, reasons, kNoTransport));
}

}  // namespace memspan::inline transport
