// SPDX-License-Identifier: Apache-2.0
// What contexts by OpenSSL are made of: certificates, keys and revocation lists from files, and the
// names in certificates.
#pragma once

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>

#include "net/tls.h"

namespace memspan::inline net {

// Frees OpenSSL's objects.
struct TlsFree {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(X509_CRL* list) const { X509_CRL_free(list); }
  void operator()(X509_STORE_CTX* check) const { X509_STORE_CTX_free(check); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};
template <typename T>
using TlsHandle = std::unique_ptr<T, TlsFree>;

// Returns OpenSSL's error on this thread, such as "ee key too small", and clears it.
std::string openssl_reason();

// Loads our certificate, its chain and its key, then authorities and revocation lists. With lists,
// every certificate of a chain is looked up. kInvalidArgument names the file.
Status load_certificates(SSL_CTX* context, const StoreCertificates& certificates);
// Refuses a certificate that no peer would accept: out of date, revoked, of another authority, or
// for the other side of a connection.
Status check_own_certificate(SSL_CTX* context, bool is_server);
// One sentence if the certificate expires within 30 days, else empty.
std::vector<std::string> warn_of_end(SSL_CTX* context, const std::string& file);
// Verifies a certificate and the ones that came with it against the trust of `context`.
Status verify(SSL_CTX* context, X509* certificate, STACK_OF(X509) * chain, bool as_server);

// ---- names in certificates

// Reads the URI "urn:memspan:job:JOB:rank:3" in the certificate's subject alternative names;
// nullopt if none begins with "urn:memspan:". kAuth if one does but has another form, if two name
// different members, or if the names cannot be read. Such a certificate was meant to bind its
// owner, so it must not permit every identity.
Result<std::optional<StreamIdentity>> member_of(const X509* certificate);
// Sets the name or numeric address that the server's certificate must have. Its common name is
// ignored.
Status expect_host(SSL* ssl, const std::string& host);
// As summarize_certificate().
Result<CertificateSummary> summarize_by_openssl(const std::string& path);

// ---- connections

// Limits what a TLS client may announce before it has proved anything.
//
// OpenSSL allocates a handshake message when its first bytes arrive, and accepts up to 128 KiB. The
// plain messages of TLS 1.3 clients are hellos of a few hundred bytes. So each must fit in its
// record of at most 16 KiB. Sees the bytes of a handshake in pieces of any size. One thread at a
// time.
class TlsRecords {
 public:
  // Returns false from the first plain message on that exceeds its record.
  bool look_at(std::string_view bytes) {
    for (char byte : bytes) take(static_cast<unsigned char>(byte));
    return is_good_;
  }

 private:
  // A record: type, two bytes of version, two of length. Its content begins with the message's type
  // and three bytes of length.
  static constexpr std::size_t kHeader = 5;
  static constexpr std::size_t kMessageHeader = 4;
  static constexpr unsigned char kHandshake = 22;

  void take(unsigned char byte) {
    if (at_ < seen_.size()) seen_[at_] = byte;
    ++at_;
    if (at_ < kHeader) return;
    const std::size_t length = std::size_t{seen_[3]} << 8 | seen_[4];
    const bool is_plain = seen_[0] == kHandshake;
    if (is_plain && length < kMessageHeader) is_good_ = false;
    if (is_plain && at_ == seen_.size()) {
      const std::size_t message = std::size_t{seen_[6]} << 16 | seen_[7] << 8 | seen_[8];
      is_good_ = is_good_ && message <= length - kMessageHeader;
    }
    if (at_ == kHeader + length) at_ = 0;
  }

  std::array<unsigned char, kHeader + kMessageHeader> seen_ = {};
  std::size_t at_ = 0;  // received bytes of the record
  bool is_good_ = true;
};

}  // namespace memspan::inline net
