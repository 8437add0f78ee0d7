// SPDX-License-Identifier: Apache-2.0
#include "store/tls_names.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/x509v3.h>

#include <charconv>

namespace memspan {
namespace {

constexpr std::string_view kMemberName = "urn:memspan:job:";

bool is_address(const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return ::inet_pton(AF_INET, host.c_str(), bytes) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

// "urn:memspan:job:JOB:rank:3"
std::optional<StreamIdentity> parse_member(std::string_view uri) {
  constexpr std::string_view kRank = ":rank:";
  if (!uri.starts_with(kMemberName)) return std::nullopt;
  uri.remove_prefix(kMemberName.size());
  const std::size_t at = uri.rfind(kRank);
  if (at == std::string_view::npos) return std::nullopt;
  StreamIdentity member{.job = std::string(uri.substr(0, at))};
  const std::string_view rank = uri.substr(at + kRank.size());
  auto [end, error] = std::from_chars(rank.data(), rank.data() + rank.size(), member.rank);
  if (error != std::errc() || end != rank.data() + rank.size() || member.rank < 0)
    return std::nullopt;
  return member;
}

}  // namespace

std::optional<StreamIdentity> member_of(const X509* certificate) {
  auto* names = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  std::optional<StreamIdentity> member;
  for (int i = 0; i < sk_GENERAL_NAME_num(names) && !member; ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names, i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
    member = parse_member({reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                           static_cast<std::size_t>(ASN1_STRING_length(uri))});
  }
  GENERAL_NAMES_free(names);
  return member;
}

Status expect_host(SSL* ssl, const std::string& host) {
  X509_VERIFY_PARAM* rules = SSL_get0_param(ssl);
  X509_VERIFY_PARAM_set_hostflags(
      rules, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  const int is_set = is_address(host)
                         ? X509_VERIFY_PARAM_set1_ip_asc(rules, host.c_str())
                         : X509_VERIFY_PARAM_set1_host(rules, host.c_str(), host.size());
  if (is_set == 1) return Status::ok();
  return {Code::kInvalidArgument, fmt::format("\"{}\" is not a host's name or address", host)};
}

}  // namespace memspan
