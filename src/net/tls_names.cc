// SPDX-License-Identifier: Apache-2.0
#include "net/tls_names.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <charconv>

namespace memspan {
namespace {

constexpr std::string_view kOurNames = "urn:memspan:";
constexpr std::string_view kMemberName = "urn:memspan:job:";

bool is_address(const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return ::inet_pton(AF_INET, host.c_str(), bytes) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

// Ignores case, because names of this kind are case-insensitive.
bool is_ours(std::string_view uri) {
  return uri.size() >= kOurNames.size() &&
         std::equal(kOurNames.begin(), kOurNames.end(), uri.begin(),
                    [](char ours, char c) { return ours == (c >= 'A' && c <= 'Z' ? c + 32 : c); });
}

// Accepts only the form "urn:memspan:job:JOB:rank:3".
std::optional<StreamIdentity> parse_member(std::string_view uri) {
  constexpr std::string_view kRank = ":rank:";
  if (!uri.starts_with(kMemberName) || !is_printable(uri)) return std::nullopt;
  uri.remove_prefix(kMemberName.size());
  const std::size_t at = uri.rfind(kRank);
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  StreamIdentity member{.job = std::string(uri.substr(0, at))};
  const std::string_view rank = uri.substr(at + kRank.size());
  std::from_chars(rank.data(), rank.data() + rank.size(), member.rank);
  if (member.rank < 0 || std::to_string(member.rank) != rank) return std::nullopt;
  return member;
}

std::string shown(std::string_view uri) {
  std::string text(uri.substr(0, 128));
  for (char& c : text)
    if (!is_printable({&c, 1})) c = '?';
  return text;
}

Status unreadable(std::string_view why) {
  return {Code::kAuth, "the certificate's names of members cannot be read: " + std::string(why)};
}

// Reads one name; `member` is the result of the names before.
Status take_name(const GENERAL_NAME* name, std::optional<StreamIdentity>& member) {
  if (name->type != GEN_URI) return Status::ok();
  const ASN1_IA5STRING* text = name->d.uniformResourceIdentifier;
  const std::string_view uri(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                             static_cast<std::size_t>(ASN1_STRING_length(text)));
  if (!is_ours(uri)) return Status::ok();
  auto named = parse_member(uri);
  if (!named)
    return unreadable(fmt::format("\"{}\" is not urn:memspan:job:JOB:rank:NUMBER", shown(uri)));
  if (member && *member != *named) return unreadable("it names two members");
  member = std::move(named);
  return Status::ok();
}

}  // namespace

Result<std::optional<StreamIdentity>> member_of(const X509* certificate) {
  int found = 0;  // -1: it has no names, -2: twice
  auto* names = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, &found, nullptr));
  if (names == nullptr && found != -1) return unreadable("they are malformed");
  std::optional<StreamIdentity> member;
  Status status;
  for (int i = 0; i < sk_GENERAL_NAME_num(names) && status.is_ok(); ++i)
    status = take_name(sk_GENERAL_NAME_value(names, i), member);
  GENERAL_NAMES_free(names);
  if (!status.is_ok()) return status;
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
