// SPDX-License-Identifier: Apache-2.0
// The protection of the connection to a store, read from where a start reads it, and tried as far
// as that goes without a store.
#include <fmt/format.h>

#include "core/environment.h"
#include "info/gather.h"
#include "info/look_up.h"
#include "info/tls_certificates.h"
#include "info/tls_remedies.h"
#include "net/own_addresses.h"
#include "net/security.h"
#include "net/trusted_networks.h"
#include "store/host_secret.h"
#include "store/store_address.h"
#include "world/launch.h"
#include "world/membership.h"

namespace memspan::info {
namespace {

// The store's place, as a start finds it. A value.
struct StorePlace {
  StoreAddress address;
  bool is_elsewhere = true;  // PE 0 does not host it
};

Result<std::optional<StorePlace>> find_store(const std::string& url) {
  const auto named = url.empty() ? environment("MEMSPAN_STORE") : std::optional(url);
  // Processes of oshrun have its store and look no further.
  if (url.empty() && !environment(kLaunchVariable)) {
    MEMSPAN_TRY_ASSIGN(const auto rendezvous, rendezvous_from_environment(),
                       "looking for the store");
    if (rendezvous)
      return std::optional(StorePlace{rendezvous->store, rendezvous->is_store_elsewhere});
  }
  if (!named || named->empty()) return std::optional<StorePlace>();
  MEMSPAN_TRY_ASSIGN(StoreAddress address, StoreAddress::parse(*named), "looking for the store");
  return std::optional(StorePlace{std::move(address)});
}

Findings secret_findings(const std::string& file) {
  Findings findings{tls_finding("kind", "a secret that all members have, TLS 1.3", "secret")};
  Finding finding = tls_finding("secret_file", fmt::format("\"{}\": can be used", file), file);
  const auto security = security_from_secret_file("the secret's file", file);
  if (!security.is_ok()) {
    finding.text = security.status().message();
    finding = judged(std::move(finding), Judgement::kProblem,
                     "a private file with 16 bytes or more, the same for all members",
                     secret_remedy(file));
  }
  findings.push_back(std::move(finding));
  return findings;
}

Finding unknown_host(const Status& why, const Endpoint& store) {
  Finding finding = tls_finding("secret_file", why.message(), false);
  // Members wait longer for an answer.
  const Judgement judgement = why.code() == Code::kTimeout ? Judgement::kNote : Judgement::kProblem;
  return judged(std::move(finding), judgement, "a name whose address every member can find out",
                fmt::format("getent hosts {}, or name the store by its address", store.host));
}

// A secret that only this user can read, in a file on the store's host.
Finding host_secret_finding(const StorePlace& store, const Deadline& deadline) {
  const Endpoint& place = store.address.first();
  auto found = look_up(place, deadline);
  if (!found.is_ok()) return unknown_host(found.status(), place);
  std::erase_if(*found, [](const HostAddress& each) { return !each.is_here; });
  if (found->empty())
    return judged(
        tls_finding("secret_file", fmt::format("{} is another host, which lacks this user's secret",
                                               place.to_string())),
        Judgement::kProblem, "a secret or certificates, which members on several hosts need",
        "export MEMSPAN_JOB_SECRET_FILE=FILE, the same on all hosts");
  if (!store.is_elsewhere)
    return tls_finding("secret_file",
                       "PE 0 writes it at the start, for processes of this user on this host",
                       true);
  auto secret = read_host_secret({found->front().text, place.port});
  for (std::size_t i = 1; i < found->size() && !secret.is_ok(); ++i)
    secret = read_host_secret({(*found)[i].text, place.port});
  Finding finding = tls_finding("secret_file", "the store's secret exists and can be read", true);
  if (secret.is_ok()) return finding;
  finding.text = secret.status().message();
  finding.value = false;
  // Perhaps no store runs yet: a start waits for it.
  return judged(std::move(finding),
                secret.code() == Code::kNotFound ? Judgement::kNote : Judgement::kProblem,
                "a store of this user that runs at " + place.to_string(),
                "memspan-store --listen " + place.to_string());
}

// Nothing was given.
Findings host_secret_findings(const std::optional<StorePlace>& store, const Deadline& deadline) {
  Findings findings{tls_finding(
      "kind", "a secret of this host that only this user can read, TLS 1.3", "host_secret")};
  if (store) findings.push_back(host_secret_finding(*store, deadline));
  return findings;
}

Findings etcd_findings(const StoreAddress& address) {
  Findings findings{tls_finding("kind", "none: etcd without certificates", "plain")};
  const auto trusted = TrustedNetworks::from_environment();
  for (const Endpoint& member : address.endpoints) {
    Finding finding = tls_finding("network", member.place() + " is trusted", true);
    const bool is_known =
        is_loopback(member.host) ||
        (trusted.is_ok() && (trusted->are_all() ||
                             (is_numeric_address(member.host) && trusted->contain(member.host))));
    if (is_known) continue;
    finding.text = trusted.is_ok()
                       ? member.place() + " is on a network that is not declared trusted"
                       : trusted.status().message();
    finding.value = false;
    findings.push_back(judged(std::move(finding), Judgement::kProblem,
                              "certificates, or a network that is trusted",
                              "export MEMSPAN_TRUSTED_FABRIC=10.0.0.0/8"));
    break;
  }
  return findings;
}

}  // namespace

Findings gather_tls(const TlsWish& wish) {
  const Deadline deadline = Deadline::after(wish.patience);
  const auto found = find_store(wish.url);
  if (!found.is_ok())
    return {judged(tls_finding("store", found.status().message()), Judgement::kProblem,
                   "the address of a store",
                   wish.url.empty() ? "set the variable that is named right, or unset it"
                                    : "memspan-info --tls tcp://HOST:PORT")};
  const std::optional<StorePlace>& store = *found;
  Findings findings{tls_finding("store",
                                "none is named: under oshrun on one host there is no connection to "
                                "protect")};
  if (store) {
    const std::string url = store->address.to_string();
    const bool is_hosted = !store->is_elsewhere;
    findings = {tls_finding("store", is_hosted ? url + ", which PE 0 hosts" : url, url)};
  }
  Findings more;
  const auto given = environment("MEMSPAN_JOB_SECRET_FILE");
  if (!wish.tls_info.empty()) {
    const auto certificates = parse_tls_info(wish.tls_info);
    if (certificates.is_ok())
      more = certificate_findings(*certificates,
                                  store ? std::optional(store->address) : std::nullopt, deadline);
    else
      more = {judged(tls_finding("kind", certificates.status().message()), Judgement::kProblem,
                     "tlsCert, tlsPk, tlsCaPath and tlsCaFile",
                     "memspan-info --tls --tls-info \"tlsCert: me.pem; tlsPk: me.key; "
                     "tlsCaPath: ca; tlsCaFile: ca.pem\"")};
  } else if (store && store->address.is_etcd()) {
    more = etcd_findings(store->address);
  } else if (!wish.secret_file.empty() || given) {
    more = secret_findings(wish.secret_file.empty() ? *given : wish.secret_file);
  } else {
    more = host_secret_findings(store, deadline);
  }
  append(findings, std::move(more));
  return findings;
}

}  // namespace memspan::info
