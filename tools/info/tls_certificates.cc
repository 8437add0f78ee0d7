// SPDX-License-Identifier: Apache-2.0
#include "info/tls_certificates.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "core/fd.h"
#include "info/look_up.h"
#include "info/tls_remedies.h"
#include "net/byte_channel.h"
#include "net/own_addresses.h"
#include "net/tls.h"

namespace memspan::info {
namespace {

constexpr std::int64_t kDay = 86400;
constexpr std::int64_t kSoonDays = 30;

std::string days_text(std::int64_t seconds) {
  const std::int64_t days = (seconds < 0 ? -seconds : seconds) / kDay;
  return fmt::format("{} day{}", days, days == 1 ? "" : "s");
}

Finding validity(const CertificateSummary& seen) {
  Finding finding = tls_finding("valid_until",
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
Finding usable(const StoreCertificates& certificates, TlsContext::Side side,
               const Status& context) {
  const bool is_server = side == TlsContext::Side::kServer;
  Finding finding = tls_finding(is_server ? "as_store" : "as_member",
                                is_server ? "can host the store" : "can go to the store", true);
  if (context.is_ok()) return finding;
  finding.text = context.message();
  finding.value = false;
  // Members need no server certificate, but the host of the store does.
  return judged(std::move(finding), Judgement::kProblem,
                is_server ? "a certificate with which a store can be hosted"
                          : "a certificate that a store takes",
                certificate_remedy(context, certificates, side));
}

// The result for a member that connects to a store at `host` with this certificate. The two shake
// hands over a pair of sockets, so that a start's own check decides.
Status greet(const TlsContext& store, const TlsContext& member, const std::string& host) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    return Status::from_errno("socketpair");
  Fd far(ends[0]);
  Fd near(ends[1]);
  MEMSPAN_TRY_ASSIGN(const auto there, store.open(std::move(far), {}), "as store");
  MEMSPAN_TRY_ASSIGN(const auto here, member.open(std::move(near), host), "as member");
  constexpr int kMostTurns = 8;  // each answers at once, so three are all of it
  for (int turn = 0; turn < kMostTurns; ++turn) {
    const ChannelStep step = here->handshake();
    if (step.next == ChannelStep::Next::kDone) return Status::ok();
    if (step.next == ChannelStep::Next::kFailed) return step.failure;
    static_cast<void>(there->handshake());
  }
  return {Code::kInternal, "internal error at a handshake with ourselves: it does not end"};
}

// `finding` for the addresses of the store: members take only a certificate that names the one to
// which they go.
Finding for_address(Finding finding, const std::function<Status(const std::string&)>& greets,
                    const std::string& names, const StoreAddress& address,
                    const Deadline& deadline) {
  const auto unfit = [&](const Endpoint& at, Judgement judgement, std::string text) {
    const std::string name = (is_numeric_address(at.host) ? "IP:" : "DNS:") + at.host;
    finding.text = std::move(text);
    finding.value = false;
    return judged(std::move(finding), judgement,
                  fmt::format("a certificate that names {} where the store at {} is hosted",
                              at.host, at.to_string()),
                  "have the authority issue one with subjectAltName=" + name);
  };
  const Endpoint* unnamed = nullptr;
  bool is_named = false;
  for (const Endpoint& at : address.endpoints) {
    if (is_any_address(at.host)) continue;  // members go to another one
    const Status taken = greets(at.host);
    is_named = is_named || taken.is_ok();
    if (taken.is_ok()) continue;
    unnamed = &at;
    const auto found = look_up(at, deadline);
    if (found.is_ok() && std::any_of(found->begin(), found->end(),
                                     [](const HostAddress& each) { return each.is_here; }))
      return unfit(at, Judgement::kProblem,
                   fmt::format("cannot host the store at {}: the certificate names {}, and "
                               "members say: {}",
                               at.to_string(), names, taken.message()));
  }
  if (is_named || unnamed == nullptr) return finding;
  return unfit(*unnamed, Judgement::kNote,
               fmt::format("can host a store, but not the one at {}: the certificate names {}",
                           unnamed->to_string(), names));
}

std::string joined(const std::vector<std::string>& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

Findings summary_findings(const StoreCertificates& certificates, const CertificateSummary& seen) {
  json::Value names{json::Value::Array()};
  for (const std::string& name : seen.names) names.add(name);
  return {tls_finding("certificate",
                      fmt::format("\"{}\": {}, issued by {}, {}", certificates.certificate,
                                  seen.subject, seen.issuer, seen.key),
                      json::Value()
                          .set("file", certificates.certificate)
                          .set("subject", seen.subject)
                          .set("issuer", seen.issuer)
                          .set("key", seen.key)),
          tls_finding("names", joined(seen.names), std::move(names)), validity(seen)};
}

}  // namespace

Findings certificate_findings(const StoreCertificates& certificates,
                              const std::optional<StoreAddress>& store, const Deadline& deadline) {
  using Side = TlsContext::Side;
  Findings findings{tls_finding("kind", "certificates of both sides, TLS 1.3", "certificates")};
  const auto seen = summarize_certificate(certificates.certificate);
  if (seen.is_ok()) append(findings, summary_findings(certificates, *seen));
  const auto member = TlsContext::from_certificates(Side::kClient, certificates);
  findings.push_back(usable(certificates, Side::kClient, member.status()));
  // Errors in the files are reported once.
  if (!member.is_ok()) return findings;
  const auto server = TlsContext::from_certificates(Side::kServer, certificates);
  Finding as_store = usable(certificates, Side::kServer, server.status());
  if (server.is_ok() && seen.is_ok() && store && !store->is_etcd())
    as_store = for_address(
        std::move(as_store),
        [&](const std::string& host) { return greet(**server, **member, host); },
        joined(seen->names), *store, deadline);
  findings.push_back(std::move(as_store));
  return findings;
}

}  // namespace memspan::info
