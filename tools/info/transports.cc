// SPDX-License-Identifier: Apache-2.0
// Transports, the carriers below "message", and the vendors' names of engines.
#include <fmt/format.h>

#include "core/environment.h"
#include "info/gather.h"
#include "transport/message/ucx/ucx_carrier.h"
#include "transport/registry.h"
#include "world/carrier_choice.h"

namespace memspan::info {
namespace {

Finding wrong_variable(const Status& status) {
  return judged({.group = "transport", .key = "allowed", .text = status.message()},
                Judgement::kProblem, "a list of mapped, cma and message",
                "unset MEMSPAN_TRANSPORT");
}

// Two processes of this host whose memory is the library's, and such as reach each other's.
Findings transport_findings(const AllowedTransports& allowed) {
  Findings findings;
  for (const TransportEntry& entry : transports()) {
    const bool is_allowed = allowed.has(entry.name);
    findings.push_back(
        {.group = "transport",
         .key = std::string(entry.name),
         .text = fmt::format("{}{}", entry.what,
                             is_allowed ? "" : " (MEMSPAN_TRANSPORT does not allow it)"),
         .value = is_allowed});
  }
  return findings;
}

std::string describe(const CarrierOptions& chosen) {
  if (chosen.kind == CarrierOptions::Kind::kUcx)
    return fmt::format("ucx, listening at {}", chosen.ucx.host);
  return fmt::format("{}, listening at {}{}", "TCP", chosen.sockets.host,
                     chosen.encrypts ? ", under TLS" : "");
}

Finding carrier_finding() {
  Finding finding{.group = "carrier", .key = "other_hosts"};
  const auto chosen = choose_carrier(Reach::kNetwork, std::nullopt);
  if (chosen.is_ok()) {
    finding.text = describe(*chosen);
    finding.value =
        json::Value()
            .set("carrier", chosen->kind == CarrierOptions::Kind::kUcx ? "ucx" : "socket")
            .set("address", chosen->kind == CarrierOptions::Kind::kUcx ? chosen->ucx.host
                                                                       : chosen->sockets.host)
            .set("encrypts", chosen->encrypts);
    return finding;
  }
  finding.text = chosen.status().message();
  // Without a network there are no other hosts; a variable that says something wrong is a mistake.
  const bool is_mistake = chosen.code() != Code::kUnavailable;
  return judged(std::move(finding), is_mistake ? Judgement::kProblem : Judgement::kNote,
                "an address at which other hosts reach this one",
                is_mistake ? "unset MEMSPAN_CARRIER MEMSPAN_NET MEMSPAN_ENCRYPT_DATA"
                           : "export MEMSPAN_NET=INTERFACE");
}

Finding ucx_finding() {
  const bool is_there = has_ucx_module();
  return {.group = "carrier",
          .key = "ucx",
          .text = is_there ? "what UCX finds on the network (MEMSPAN_CARRIER=ucx)"
                           : "not in this installation (libmemspan_ucx.so is missing)",
          .value = is_there};
}

Findings engine_findings(bool is_mapped) {
  return {
      {.group = "engine",
       .key = "MTE",
       .text = is_mapped ? "in use: the caller's own loads and stores" : "no: peers are not mapped",
       .value = is_mapped},
      {.group = "engine",
       .key = "SDMA",
       .text = "the copy engines of a CUDA device, for its memory; else the caller copies"},
      {.group = "engine",
       .key = "RoCE",
       .text = "not by itself; the carrier ucx uses RDMA where UCX finds it"}};
}

}  // namespace

Findings gather_transports() {
  Findings findings;
  const auto allowed = AllowedTransports::from_environment();
  if (allowed.is_ok())
    append(findings, transport_findings(*allowed));
  else
    findings.push_back(wrong_variable(allowed.status()));
  findings.push_back({.group = "carrier",
                      .key = "socket",
                      .text = "Unix sockets in one network namespace, else TCP",
                      .value = true});
  findings.push_back(ucx_finding());
  findings.push_back(carrier_finding());
  append(findings, engine_findings(!allowed.is_ok() || allowed->has("mapped")));
  return findings;
}

}  // namespace memspan::info
