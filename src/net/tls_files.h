// SPDX-License-Identifier: Apache-2.0
// Loads certificates, keys and revocation lists from files into OpenSSL's contexts.
#pragma once

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "net/security.h"

namespace memspan {

// Frees OpenSSL's objects.
struct TlsFree {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(X509_CRL* list) const { X509_CRL_free(list); }
  void operator()(X509_STORE_CTX* check) const { X509_STORE_CTX_free(check); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(BIO* bio) const { BIO_free(bio); }
};
template <typename T>
using TlsHandle = std::unique_ptr<T, TlsFree>;

// Returns OpenSSL's error on this thread, such as "ee key too small", and clears it.
std::string openssl_reason();

// Loads our certificate, its chain and its key. kInvalidArgument names the file.
Status load_identity(SSL_CTX* context, const StoreCertificates& certificates);
// Loads authorities and revocation lists. With lists, every certificate of a chain is looked up.
Status load_trust(SSL_CTX* context, const StoreCertificates& certificates);
// Refuses a certificate that no peer would accept: out of date, revoked, of another authority, or
// for the other side of a connection.
Status check_own_certificate(SSL_CTX* context, bool is_server);
// One sentence if the certificate expires within 30 days, else empty.
std::vector<std::string> warn_of_end(SSL_CTX* context, const std::string& file);
// Verifies a certificate and the ones that came with it against the trust of `context`.
Status verify(SSL_CTX* context, X509* certificate, STACK_OF(X509) * chain, bool as_server);

}  // namespace memspan
