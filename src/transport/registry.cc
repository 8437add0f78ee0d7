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

Status needs_node(const Pair& pair) {
  return pair.same_node ? Status::ok() : Status(Code::kUnreachable, "they are on different hosts");
}

Status mapped_reaches(const Pair& pair) {
  MEMSPAN_PASS(needs_node(pair));
  if (pair.memory_is_mappable) return Status::ok();
  return {Code::kUnreachable, "the memory is not in a file that both can map"};
}

Status cma_reaches(const Pair& pair) {
  MEMSPAN_PASS(needs_node(pair));
  if (pair.no_process_access.empty()) return Status::ok();
  return {Code::kUnreachable, pair.no_process_access};
}

Status message_reaches(const Pair& pair) {
  if (pair.no_message_address.empty()) return Status::ok();
  return {Code::kUnreachable, pair.no_message_address};
}

constexpr TransportEntry kTransports[] = {
    {"mapped", "loads and stores to memory that both processes map", mapped_reaches,
     "both are on one node and the memory is mapped"},
    {"cma", "process_vm_readv and process_vm_writev on memory of one node", cma_reaches,
     "both are on one node and the kernel lets them reach each other's memory"},
    {"message", "the library's own protocol over sockets", message_reaches,
     "a connection can be made"},
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
    const Status reaches = has(entry.name) ? entry.reaches(pair)
                                           : Status(Code::kUnreachable,
                                                    fmt::format("{} does not allow it", kVariable));
    if (reaches.is_ok())
      return TransportChoice{entry.name, fmt::format("{}: {}", entry.name, entry.reason)};
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", entry.name, reaches.message());
  }
  return Status(Code::kUnreachable, fmt::format("{} and {} have no transport in common ({}){}",
                                                pair.from, pair.to, reasons, kNoTransport));
}

}  // namespace memspan
