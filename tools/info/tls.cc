// SPDX-License-Identifier: Apache-2.0
// The protection of the connection to a store, read from where a start reads it, and tried as far
// as that goes without a store.
#include <fmt/format.h>

#include "core/environment.h"
#include "core/trusted_networks.h"
#include "info/gather.h"
#include "store/host_secret.h"
#include "store/security.h"
#include "store/store_address.h"
#include "store/tls.h"
#include "store/tls_summary.h"
#include "world/own_addresses.h"

namespace memspan::info {
namespace {

constexpr std::int64_t kDay = 86400;
constexpr std::int64_t kSoonDays = 30;

Finding make(std::string key, std::string text, json::Value value = {}) {
  return {
      .group = "tls", .key = std::move(key), .text = std::move(text), .value = std::move(value)};
}

bool is_loopback(const std::string& host) {
  if (host == "localhost") return true;
  const auto none = TrustedNetworks::parse("0");
  return none.is_ok() && is_numeric_address(host) && none->contain(host);
}

std::string days_text(std::int64_t seconds) {
  const std::int64_t days = (seconds < 0 ? -seconds : seconds) / kDay;
  return fmt::format("{} day{}", days, days == 1 ? "" : "s");
}

Finding validity(const CertificateSummary& seen) {
  Finding finding = make("valid_until",
                         fmt::format("from {} until {}, {} left", seen.begins, seen.ends,
                                     days_text(seen.seconds_to_end)),
                         json::Value()
                             .set("from", seen.begins)
                             .set("until", seen.ends)
                             .set("seconds_left", seen.seconds_to_end));
  if (seen.seconds_to_end < 0)
    finding.text = fmt::format("ended {} ago, at {}", days_text(seen.seconds_to_end), seen.ends);
  if (seen.seconds_to_begin > 0)
    finding.text =
        fmt::format("begins in {}, at {}", days_text(seen.seconds_to_begin), seen.begins);
  const bool is_out = seen.seconds_to_end < 0 || seen.seconds_to_begin > 0;
  if (!is_out && seen.seconds_to_end > kSoonDays * kDay) return finding;
  return judged(std::move(finding), is_out ? Judgement::kProblem : Judgement::kNote,
                fmt::format("a certificate that is valid now and for {} days", kSoonDays),
                "have the authority issue a new one (or set the clock right: date)");
}

// As a start would: the contexts of both sides are made, and so files, key, chain, purposes and
// revocations are looked at.
Finding usable(const StoreCertificates& certificates, TlsContext::Side side) {
  const bool is_server = side == TlsContext::Side::kServer;
  Finding finding = make(is_server ? "as_store" : "as_member",
                         is_server ? "can host the store" : "can go to the store", true);
  const auto context = TlsContext::from_certificates(side, certificates);
  if (context.is_ok()) return finding;
  finding.text = context.status().message();
  finding.value = false;
  // Members need no certificate for servers, but whoever hosts the store does.
  return judged(std::move(finding), Judgement::kProblem,
                is_server ? "a certificate with which a store can be hosted"
                          : "a certificate that a store takes",
                "openssl verify -CAfile AUTHORITY -purpose " +
                    std::string(is_server ? "sslserver" : "sslclient") + " CERTIFICATE");
}

Findings certificate_findings(const StoreCertificates& certificates) {
  Findings findings{make("kind", "certificates of both sides, TLS 1.3", "certificates")};
  const auto seen = summarize_certificate(certificates.certificate);
  if (seen.is_ok()) {
    json::Value names{json::Value::Array()};
    std::string text;
    for (const std::string& name : seen->names) {
      names.add(name);
      text += (text.empty() ? "" : ", ") + name;
    }
    findings.push_back(make("certificate",
                            fmt::format("\"{}\": {}, issued by {}, {}", certificates.certificate,
                                        seen->subject, seen->issuer, seen->key),
                            json::Value()
                                .set("file", certificates.certificate)
                                .set("subject", seen->subject)
                                .set("issuer", seen->issuer)
                                .set("key", seen->key)));
    findings.push_back(make("names", text.empty() ? "none" : text, std::move(names)));
    findings.push_back(validity(*seen));
  }
  findings.push_back(usable(certificates, TlsContext::Side::kClient));
  // What is wrong with the files is said once.
  if (findings.back().judgement == Judgement::kGood)
    findings.push_back(usable(certificates, TlsContext::Side::kServer));
  return findings;
}

Findings secret_findings(const std::string& file) {
  Findings findings{make("kind", "a secret that all members have, TLS 1.3", "secret")};
  Finding finding = make("secret_file", fmt::format("\"{}\": can be used", file), file);
  const auto security = security_from_secret_file("the secret's file", file);
  if (!security.is_ok()) {
    finding.text = security.status().message();
    finding = judged(std::move(finding), Judgement::kProblem,
                     "a private file with 16 bytes or more, the same for all members",
                     fmt::format("chmod 600 {0}; or: (umask 077; head -c 32 /dev/urandom | base64 "
                                 "> {0})",
                                 file));
  }
  findings.push_back(std::move(finding));
  return findings;
}

// Nothing was given: a secret of the store's that only this user can read, on the store's host.
Findings host_secret_findings(const std::optional<StoreAddress>& address) {
  Findings findings{
      make("kind", "a secret of this host that only this user can read, TLS 1.3", "host_secret")};
  if (!address) return findings;
  const Endpoint& store = address->first();
  const auto towards = address_towards(store);
  const bool is_here = is_loopback(store.host) ||
                       (towards && is_numeric_address(store.host) && *towards == store.host) ||
                       store.host == "0.0.0.0" || store.host == "::";
  if (!is_here) {
    findings.push_back(judged(
        make("secret_file",
             fmt::format("{} is another host, where this user's secret is not", store.to_string())),
        Judgement::kProblem, "a secret or certificates, which members on several hosts need",
        "export MEMSPAN_JOB_SECRET_FILE=FILE, the same on all hosts"));
    return findings;
  }
  const Endpoint numeric{store.host == "localhost" ? "127.0.0.1" : store.host, store.port};
  const auto secret = read_host_secret(numeric);
  Finding finding = make("secret_file", "the store's secret is there and can be read", true);
  if (!secret.is_ok()) {
    finding.text = secret.status().message();
    finding.value = false;
    // It may be that no store runs yet: whoever starts waits for it.
    finding = judged(std::move(finding),
                     secret.code() == Code::kNotFound ? Judgement::kNote : Judgement::kProblem,
                     "a store of this user that runs at " + store.to_string(),
                     "memspan-store --listen " + store.to_string());
  }
  findings.push_back(std::move(finding));
  return findings;
}

Findings etcd_findings(const StoreAddress& address) {
  Findings findings{make("kind", "none: etcd without certificates", "plain")};
  const auto trusted = TrustedNetworks::from_environment();
  for (const Endpoint& member : address.endpoints) {
    Finding finding = make("network", member.place() + " is trusted", true);
    const bool is_known =
        is_loopback(member.host) ||
        (trusted.is_ok() && (trusted->are_all() ||
                             (is_numeric_address(member.host) && trusted->contain(member.host))));
    if (is_known) continue;
    finding.text = trusted.is_ok()
                       ? member.place() + " is on a network that nobody declared trusted"
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
  std::optional<StoreAddress> address;
  const std::string url = wish.url.empty() ? environment_or("MEMSPAN_STORE", "") : wish.url;
  Findings findings;
  if (!url.empty()) {
    auto parsed = StoreAddress::parse(url);
    if (!parsed.is_ok())
      return {judged(make("store", parsed.status().message()), Judgement::kProblem,
                     "the address of a store", "memspan-info --tls tcp://HOST:PORT")};
    address = *parsed;
    findings.push_back(make("store", address->to_string(), address->to_string()));
  } else {
    findings.push_back(make("store",
                            "none is named: under oshrun on one host there is no "
                            "connection to protect"));
  }
  Findings more;
  const auto given = environment("MEMSPAN_JOB_SECRET_FILE");
  if (!wish.tls_info.empty()) {
    const auto certificates = parse_tls_info(wish.tls_info);
    if (certificates.is_ok())
      more = certificate_findings(*certificates);
    else
      more = {judged(make("kind", certificates.status().message()), Judgement::kProblem,
                     "tlsCert, tlsPk, tlsCaPath and tlsCaFile",
                     "memspan-info --tls --tls-info \"tlsCert: me.pem; tlsPk: me.key; "
                     "tlsCaPath: ca; tlsCaFile: ca.pem\"")};
  } else if (address && address->is_etcd()) {
    more = etcd_findings(*address);
  } else if (!wish.secret_file.empty() || given) {
    more = secret_findings(wish.secret_file.empty() ? *given : wish.secret_file);
  } else {
    more = host_secret_findings(address);
  }
  append(findings, std::move(more));
  return findings;
}

}  // namespace memspan::info
