// SPDX-License-Identifier: Apache-2.0
#include "info/route_way.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "net/own_addresses.h"

namespace memspan::info {
namespace {

std::string listens_at(const CarrierOptions& carrier) {
  if (carrier.kind == CarrierOptions::Kind::kUcx) return carrier.ucx.host;
  const bool is_tcp = carrier.sockets.family == SocketOptions::Family::kTcp;
  return is_tcp ? carrier.sockets.host : std::string();
}

// "tcp", "unix" or "ucx".
std::string_view kind_of(const CarrierOptions& carrier) {
  if (carrier.kind == CarrierOptions::Kind::kUcx) return "ucx";
  return listens_at(carrier).empty() ? "unix" : "tcp";
}

std::string carrier_text(const std::vector<End>& ends) {
  const CarrierOptions& near = *ends.front().carrier;
  const CarrierOptions& far = *ends.back().carrier;
  const std::string address = listens_at(near);
  if (address.empty()) return "Unix sockets";
  const bool is_ucx = near.kind == CarrierOptions::Kind::kUcx;
  const std::string interface = interface_of(address);
  // An end that encrypts makes the other encrypt.
  const bool encrypts = near.encrypts || far.encrypts;
  return fmt::format("{} from {}{}{}{}", is_ucx ? "ucx" : "TCP", address,
                     interface.empty() ? "" : " (interface " + interface + ")",
                     listens_at(far) == address ? "" : " to " + listens_at(far),
                     encrypts ? ", under TLS" : "");
}

// For two processes that differ in a setting that must be equal.
Finding differing(Finding finding, const std::vector<End>& ends, const char* variable,
                  std::string_view one, std::string_view other) {
  const ProcessFacts& near = *ends.front().facts;
  const ProcessFacts& far = *ends.back().facts;
  finding.text =
      fmt::format("{} takes {} ({} is {}), {} {} (it is {})", near.name, one, variable,
                  shown(near.settings, variable), far.name, other, shown(far.settings, variable));
  finding.value = {};
  return judged(
      std::move(finding), Judgement::kProblem,
      fmt::format("the same {} in all processes of a job", variable),
      fmt::format("export {}=VALUE before each of them starts, or unset it for both", variable));
}

Finding unset(Finding finding, std::string text, std::string wanted, const char* variable) {
  finding.text = std::move(text);
  return judged(std::move(finding), Judgement::kProblem, std::move(wanted),
                fmt::format("unset {}", variable));
}

// The transport "message" has been chosen, for this reason.
Finding carried(Finding finding, const std::vector<End>& ends, const std::string& why) {
  for (const End& end : ends)
    if (!end.carrier.is_ok())
      return unset(std::move(finding),
                   fmt::format("{}, but not from {}: {}", why, end.facts->name,
                               end.carrier.status().message()),
                   "a carrier that both have", "MEMSPAN_CARRIER MEMSPAN_NET MEMSPAN_ENCRYPT_DATA");
  const std::string_view kind = kind_of(*ends.front().carrier);
  const std::string_view other = kind_of(*ends.back().carrier);
  if (kind != other) return differing(std::move(finding), ends, kCarrierVariable, kind, other);
  const std::string carrier = carrier_text(ends);
  finding.text = fmt::format("{}, by {}", why, carrier);
  finding.value.set("carrier", carrier);
  return finding;
}

}  // namespace

std::vector<End> ends_of(const ProcessFacts& from, const ProcessFacts& to, bool are_near) {
  const bool has_process = from.is_process || to.is_process;
  // Unix sockets reach if both share a network namespace.
  const bool is_one_kernel =
      from.is_process && to.is_process ? from.network == to.network : are_near;
  std::vector<End> ends;
  for (const auto& [one, other] : {std::pair(&from, &to), std::pair(&to, &from)}) {
    if (has_process ? !one->is_process : !one->is_this_host) continue;
    std::optional<Endpoint> there;
    if (!is_one_kernel && !other->is_process) there = Endpoint{other->address, 1};
    const BorrowedSettings borrowed(one->settings);
    ends.push_back({one, AllowedTransports::from_environment(),
                    choose_carrier(is_one_kernel ? Reach::kOneKernel : Reach::kNetwork, there)});
  }
  return ends;
}

Finding way(std::string key, const Pair& pair, const std::vector<End>& ends,
            std::initializer_list<std::string_view> candidates) {
  Finding finding{.group = "route", .key = std::move(key)};
  std::vector<TransportChoice> choices;
  for (const End& end : ends) {
    const auto choice = end.allowed.is_ok()
                            ? end.allowed->choose(pair, {candidates.begin(), candidates.size()})
                            : end.allowed.status();
    if (!choice.is_ok())
      return unset(std::move(finding), choice.status().message(), "a transport that both may use",
                   kTransportVariable);
    choices.push_back(*choice);
  }
  const TransportChoice& choice = choices.front();
  finding.value = json::Value().set("transport", choice.name);
  if (choice.name != choices.back().name)
    return differing(std::move(finding), ends, kTransportVariable, choice.name,
                     choices.back().name);
  if (choice.name == "message") return carried(std::move(finding), ends, choice.why);
  finding.text = choice.why;
  return finding;
}

}  // namespace memspan::info
