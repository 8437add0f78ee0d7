// SPDX-License-Identifier: Apache-2.0
#include "net/tls_parts.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <type_traits>

#include "core/private_file.h"

namespace memspan::inline net {
namespace {

constexpr std::size_t kMostFileBytes = std::size_t{1} << 20;
constexpr long kDaySeconds = 24L * 3600;

Status bad_file(std::string_view what, const std::string& path, std::string_view why) {
  return {Code::kInvalidArgument, fmt::format("{} \"{}\": {}", what, path, why)};
}

// Bytes that the destructor wipes.
struct Secret {
  std::string bytes;
  Secret() = default;
  explicit Secret(std::string of) : bytes(std::move(of)) {}
  Secret(Secret&&) = default;
  Secret& operator=(Secret&&) = default;
  ~Secret() { OPENSSL_cleanse(bytes.data(), bytes.size()); }
};

// A missing file is an invalid argument, like an unreadable one.
Result<std::string> checked(Result<std::string> bytes) {
  if (bytes.code() != Code::kNotFound) return bytes;
  return Status(Code::kInvalidArgument, bytes.status().message());
}

Result<std::string> read_pem(std::string_view what, const std::string& path) {
  return checked(read_public_file(what, path, kMostFileBytes));
}

Result<Secret> read_secret(std::string_view what, const PemSource& source) {
  if (source.path.empty()) return Secret(source.text);
  MEMSPAN_PASS_ASSIGN(std::string bytes,
                      checked(read_private_file(what, source.path, kMostFileBytes)));
  return Secret(std::move(bytes));
}

TlsHandle<BIO> reader(const std::string& text) {
  return TlsHandle<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// The first certificate is our own, the others are the intermediate ones.
Status load_chain(SSL_CTX* context, const std::string& path) {
  constexpr std::string_view kWhat = "the certificate";
  MEMSPAN_TRY_ASSIGN(const std::string text, read_pem(kWhat, path), "reading the TLS files");
  TlsHandle<BIO> bio = reader(text);
  TlsHandle<X509> own(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (own == nullptr) return bad_file(kWhat, path, "has no certificate in PEM form");
  if (SSL_CTX_use_certificate(context, own.get()) != 1)
    return bad_file(kWhat, path, openssl_reason());
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr))
    if (SSL_CTX_add0_chain_cert(context, next) != 1) {
      X509_free(next);
      return bad_file(kWhat, path, openssl_reason());
    }
  ERR_clear_error();
  return Status::ok();
}

int give_password(char* into, int room, int, void* given) {
  const auto* password = static_cast<const std::string*>(given);
  if (password->size() > static_cast<std::size_t>(room)) return -1;
  std::copy(password->begin(), password->end(), into);
  return static_cast<int>(password->size());
}

Result<Secret> key_password(const StoreCertificates& certificates) {
  if (!certificates.password.is_given()) return Secret();
  MEMSPAN_TRY_ASSIGN(Secret given, read_secret("the key's password", certificates.password),
                     "reading the TLS files");
  if (!certificates.decrypt) {
    // A file usually ends with a newline that is not part of the password.
    while (!given.bytes.empty() && (given.bytes.back() == '\n' || given.bytes.back() == '\r'))
      given.bytes.pop_back();
    return given;
  }
  MEMSPAN_TRY_ASSIGN(auto plain, certificates.decrypt(given.bytes),
                     "decrypting the key's password");
  return Secret(std::move(plain));
}

Status load_key(SSL_CTX* context, const StoreCertificates& certificates) {
  const std::string where =
      certificates.key.path.empty() ? "(given as text)" : certificates.key.path;
  constexpr std::string_view kWhat = "the private key";
  if (!certificates.key.is_given())
    return {Code::kInvalidArgument,
            "there is no private key: tlsPk in tls_info, or its text by "
            "set_config_store_tls_key()"};
  MEMSPAN_TRY_ASSIGN(Secret text, read_secret(kWhat, certificates.key), "reading the TLS files");
  MEMSPAN_TRY_ASSIGN(Secret password, key_password(certificates), "reading the TLS files");
  TlsHandle<BIO> bio = reader(text.bytes);
  TlsHandle<EVP_PKEY> key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, give_password, &password.bytes));
  if (key == nullptr)
    return bad_file(kWhat, where,
                    password.bytes.empty()
                        ? "is not a key in PEM form, or needs a password and none was given"
                        : "is not a key in PEM form, or the password is not its");
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1)
    return bad_file(kWhat, where, fmt::format("is not the certificate's: {}", openssl_reason()));
  return Status::ok();
}

// Passes every object of a PEM file to `take`; `kind` names one in messages.
template <typename Read, typename Take>
Status load_all(std::string_view what, std::string_view kind, const std::string& path, Read read,
                Take take) {
  MEMSPAN_TRY_ASSIGN(const std::string text, read_pem(what, path), "reading the TLS files");
  TlsHandle<BIO> bio = reader(text);
  int count = 0;
  for (;; ++count) {
    auto* const raw = read(bio.get(), nullptr, nullptr, nullptr);
    if (raw == nullptr) break;
    const TlsHandle<std::remove_pointer_t<decltype(raw)>> object(raw);
    if (Status status = take(object.get()); !status.is_ok())
      return bad_file(what, path, status.message());
  }
  ERR_clear_error();
  if (count > 0) return Status::ok();
  return bad_file(what, path, fmt::format("has no {} in PEM form", kind));
}

// OpenSSL returns 1 for success.
Status from_openssl(int result) {
  return result == 1 ? Status::ok() : Status(Code::kInvalidArgument, openssl_reason());
}

Status load_authorities(X509_STORE* store, const std::string& path) {
  return load_all("the authority", "certificate", path, PEM_read_bio_X509, [&](X509* authority) {
    return from_openssl(X509_STORE_add_cert(store, authority));
  });
}

Status load_revocations(X509_STORE* store, const std::string& path) {
  return load_all("the revocation list", "list", path, PEM_read_bio_X509_CRL, [&](X509_CRL* list) {
    const ASN1_TIME* end = X509_CRL_get0_nextUpdate(list);
    if (end != nullptr && X509_cmp_current_time(end) < 0)
      return Status(Code::kInvalidArgument, "is out of date");
    return from_openssl(X509_STORE_add_crl(store, list));
  });
}

// OpenSSL accepts an authority as a member if its purposes allow that. We refuse it: the holder of
// such a member's key could make more members.
int refuse_authority_as_member(int is_good, X509_STORE_CTX* check) {
  if (is_good != 1 || X509_STORE_CTX_get_error_depth(check) != 0 ||
      X509_check_ca(X509_STORE_CTX_get_current_cert(check)) == 0)
    return is_good;
  X509_STORE_CTX_set_error(check, X509_V_ERR_INVALID_CA);
  return 0;
}

// ---- names

std::int64_t seconds_to(const ASN1_TIME* time) {
  int days = 0;
  int seconds = 0;
  if (ASN1_TIME_diff(&days, &seconds, nullptr, time) != 1) return 0;
  return days * std::int64_t{86400} + seconds;
}

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

std::string openssl_reason() {
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  const char* reason = ERR_reason_error_string(error);
  return reason == nullptr ? "no reason given" : reason;
}

Status load_certificates(SSL_CTX* context, const StoreCertificates& certificates) {
  ERR_clear_error();
  MEMSPAN_PASS(load_chain(context, certificates.certificate));
  MEMSPAN_PASS(load_key(context, certificates));
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  for (const std::string& path : certificates.authorities)
    MEMSPAN_PASS(load_authorities(store, path));
  for (const std::string& path : certificates.revocations)
    MEMSPAN_PASS(load_revocations(store, path));
  unsigned long flags = X509_V_FLAG_X509_STRICT;
  if (!certificates.revocations.empty()) flags |= X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL;
  X509_STORE_set_flags(store, flags);
  X509_STORE_set_verify_cb(store, refuse_authority_as_member);
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), flags);
  return Status::ok();
}

Status check_own_certificate(SSL_CTX* context, bool is_server) {
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(context, &chain);
  return verify(context, SSL_CTX_get0_certificate(context), chain, is_server)
      .annotate("our own certificate");
}

std::vector<std::string> warn_of_end(SSL_CTX* context, const std::string& file) {
  const auto left = seconds_to(X509_get0_notAfter(SSL_CTX_get0_certificate(context)));
  if (left > 30 * kDaySeconds) return {};
  return {fmt::format("the certificate \"{}\" ends in {} days", file, left / kDaySeconds)};
}

Status verify(SSL_CTX* context, X509* certificate, STACK_OF(X509) * chain, bool as_server) {
  TlsHandle<X509_STORE_CTX> check(X509_STORE_CTX_new());
  if (check == nullptr ||
      X509_STORE_CTX_init(check.get(), SSL_CTX_get_cert_store(context), certificate, chain) != 1)
    return {Code::kInternal, "OpenSSL: " + openssl_reason()};
  X509_STORE_CTX_set_default(check.get(), as_server ? "ssl_server" : "ssl_client");
  X509_VERIFY_PARAM* rules = X509_STORE_CTX_get0_param(check.get());
  X509_VERIFY_PARAM_set_auth_level(rules, SSL_CTX_get_security_level(context));
  X509_VERIFY_PARAM_set1(rules, SSL_CTX_get0_param(context));
  if (X509_verify_cert(check.get()) == 1) return Status::ok();
  const int error = X509_STORE_CTX_get_error(check.get());
  ERR_clear_error();
  return {Code::kInvalidArgument, X509_verify_cert_error_string(error)};
}

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

Result<CertificateSummary> summarize_by_openssl(const std::string& path) {
  MEMSPAN_PASS_ASSIGN(const std::string text, read_pem("the certificate", path));
  const TlsHandle<BIO> bio = reader(text);
  const TlsHandle<X509> found(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (found == nullptr) return bad_file("the certificate", path, "has no certificate in PEM form");
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

}  // namespace memspan::inline net
