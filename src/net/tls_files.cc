// SPDX-License-Identifier: Apache-2.0
#include "net/tls_parts.h"

#include <fmt/format.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <type_traits>

#include "core/private_file.h"

namespace memspan {
namespace {

constexpr std::size_t kMostFileBytes = std::size_t{1} << 20;
constexpr long kDaySeconds = 24 * 3600;

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

}  // namespace

std::string openssl_reason() {
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  const char* reason = ERR_reason_error_string(error);
  return reason == nullptr ? "no reason given" : reason;
}

Result<std::string> read_pem(std::string_view what, const std::string& path) {
  return checked(read_public_file(what, path, kMostFileBytes));
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

}  // namespace memspan
