// SPDX-License-Identifier: Apache-2.0
#include "net/tls_parts.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/pem.h>

#include <algorithm>
#include <charconv>
#include <ctime>

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

// `found` becomes -1 if it has none, -2 if it has them twice.
TlsHandle<GENERAL_NAMES> alternative_names(const X509* certificate, int* found) {
  return TlsHandle<GENERAL_NAMES>(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, found, nullptr)));
}

std::string text_of(BIO* bio) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio, &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

std::string name_of(const X509_NAME* name) {
  const TlsHandle<BIO> bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_RFC2253);
  return text_of(bio.get());
}

std::string time_of(const ASN1_TIME* time) {
  std::tm parts = {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return "?";
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

// One text per name, such as "DNS:localhost".
std::vector<std::string> names_of(const X509* certificate) {
  const auto all = alternative_names(certificate, nullptr);
  std::vector<std::string> names;
  for (int i = 0; all != nullptr && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const TlsHandle<BIO> bio(BIO_new(BIO_s_mem()));
    GENERAL_NAME_print(bio.get(), sk_GENERAL_NAME_value(all.get(), i));
    names.push_back(text_of(bio.get()));
  }
  return names;
}

std::string key_of(X509* certificate) {
  const EVP_PKEY* key = X509_get0_pubkey(certificate);
  if (key == nullptr) return "unknown";
  return fmt::format("{} of {} bits", OBJ_nid2sn(EVP_PKEY_get_base_id(key)),
                     EVP_PKEY_get_bits(key));
}

}  // namespace

Result<std::optional<StreamIdentity>> member_of(const X509* certificate) {
  int found = 0;
  const auto names = alternative_names(certificate, &found);
  if (names == nullptr && found != -1) return unreadable("they are malformed");
  std::optional<StreamIdentity> member;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i)
    MEMSPAN_PASS(take_name(sk_GENERAL_NAME_value(names.get(), i), member));
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

std::int64_t seconds_to(const ASN1_TIME* time) {
  int days = 0;
  int seconds = 0;
  if (ASN1_TIME_diff(&days, &seconds, nullptr, time) != 1) return 0;
  return days * std::int64_t{86400} + seconds;
}

Result<CertificateSummary> summarize_by_openssl(const std::string& path) {
  MEMSPAN_PASS_ASSIGN(const std::string text, read_pem("the certificate", path));
  const TlsHandle<BIO> bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  const TlsHandle<X509> found(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (found == nullptr)
    return Status(Code::kInvalidArgument,
                  fmt::format("the certificate \"{}\": has no certificate in PEM form", path));
  X509* certificate = found.get();
  CertificateSummary summary{.subject = name_of(X509_get_subject_name(certificate)),
                             .issuer = name_of(X509_get_issuer_name(certificate)),
                             .names = names_of(certificate),
                             .begins = time_of(X509_get0_notBefore(certificate)),
                             .ends = time_of(X509_get0_notAfter(certificate)),
                             .seconds_to_begin = seconds_to(X509_get0_notBefore(certificate)),
                             .seconds_to_end = seconds_to(X509_get0_notAfter(certificate)),
                             .key = key_of(certificate)};
  ERR_clear_error();
  return summary;
}

}  // namespace memspan
