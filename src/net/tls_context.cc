// SPDX-License-Identifier: Apache-2.0
// Contexts from secrets or certificates.
#include "net/tls_parts.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace memspan {
namespace {

constexpr const char* kSuites =
    "TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
// The key of a shared secret is made for SHA-384: with another hash the server ignores it.
constexpr const char* kSecretSuite = "TLS_AES_256_GCM_SHA384";
constexpr unsigned char kSecretSuiteNumber[] = {0x13, 0x02};
// 128 bits' worth: RSA of 3072 bits, curves of 256, no SHA-1.
constexpr int kSecurityLevel = 3;
// Enough for chains of ten and more; OpenSSL would accept four times as much from a peer.
constexpr long kMostChainBytes = 24L << 10;
constexpr std::string_view kIdentity = "memspan";
// Separates the TLS key from anything else that may be derived from the same secret.
constexpr std::string_view kLabel = "memspan store connection, version 1";

// The external key, kept with the context that uses it.
struct SharedKey {
  std::array<unsigned char, 48> bytes = {};
  ~SharedKey() { OPENSSL_cleanse(bytes.data(), bytes.size()); }
};

int shared_key_index() {
  static const int index = SSL_CTX_get_ex_new_index(
      0, nullptr, nullptr, nullptr, [](void*, void* key, CRYPTO_EX_DATA*, int, long, void*) {
        delete static_cast<SharedKey*>(key);
      });
  return index;
}

SSL_SESSION* session_with_key(SSL* ssl) {
  const auto* key =
      static_cast<const SharedKey*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), shared_key_index()));
  SSL_SESSION* session = SSL_SESSION_new();
  const SSL_CIPHER* suite = SSL_CIPHER_find(ssl, kSecretSuiteNumber);
  if (session != nullptr && suite != nullptr &&
      SSL_SESSION_set1_master_key(session, key->bytes.data(), key->bytes.size()) == 1 &&
      SSL_SESSION_set_cipher(session, suite) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
    return session;
  SSL_SESSION_free(session);
  return nullptr;
}

int use_key(SSL* ssl, const EVP_MD*, const unsigned char** id, std::size_t* length,
            SSL_SESSION** session) {
  *session = session_with_key(ssl);
  *id = reinterpret_cast<const unsigned char*>(kIdentity.data());
  *length = kIdentity.size();
  return *session == nullptr ? 0 : 1;
}

// No session for another identity: the handshake then fails, since there is no certificate.
int find_key(SSL* ssl, const unsigned char* id, std::size_t length, SSL_SESSION** session) {
  *session = nullptr;
  if (std::string_view(reinterpret_cast<const char*>(id), length) != kIdentity) return 1;
  *session = session_with_key(ssl);
  return *session == nullptr ? 0 : 1;
}

Result<TlsHandle<SSL_CTX>> new_context(TlsContext::Side side, const char* suites) {
  ERR_clear_error();
  const bool is_server = side == TlsContext::Side::kServer;
  TlsHandle<SSL_CTX> context(SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method()));
  if (context == nullptr) return Status(Code::kInternal, "OpenSSL: " + openssl_reason());
  SSL_CTX* raw = context.get();
  SSL_CTX_set_security_level(raw, kSecurityLevel);
  SSL_CTX_set_options(raw, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_max_cert_list(raw, kMostChainBytes);
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                            SSL_MODE_RELEASE_BUFFERS);
  const bool is_set = SSL_CTX_set_min_proto_version(raw, TLS1_3_VERSION) == 1 &&
                      SSL_CTX_set_max_proto_version(raw, TLS1_3_VERSION) == 1 &&
                      SSL_CTX_get_min_proto_version(raw) == TLS1_3_VERSION &&
                      SSL_CTX_set_ciphersuites(raw, suites) == 1 &&
                      SSL_CTX_set_num_tickets(raw, 0) == 1;
  if (!is_set) return Status(Code::kInternal, "OpenSSL refuses TLS 1.3: " + openssl_reason());
  return context;
}

class OpenSslContext final : public TlsContext {
 public:
  OpenSslContext(Side side, TlsHandle<SSL_CTX> context)
      : side_(side), context_(std::move(context)) {}
  // With certificates, which `context` has.
  OpenSslContext(Side side, TlsHandle<SSL_CTX> context, std::vector<std::string> warnings,
                 std::optional<StreamIdentity> own_identity)
      : side_(side),
        context_(std::move(context)),
        has_certificates_(true),
        warnings_(std::move(warnings)),
        own_identity_(std::move(own_identity)) {}

  Result<std::unique_ptr<ByteChannel>> open(Fd socket, const std::string& host) const override {
    TlsHandle<SSL> ssl(SSL_new(context_.get()));
    if (ssl == nullptr) return Status(Code::kInternal, "OpenSSL: " + openssl_reason());
    if (has_certificates_ && side_ == Side::kClient)
      if (Status status = expect_host(ssl.get(), host); !status.is_ok()) return status;
    return make_tls_stream(std::move(socket), std::move(ssl), side_);
  }
  Status accepts(const ByteChannel& stream) const override {
    return has_certificates_ ? verify_peer_again(stream, context_.get()) : Status::ok();
  }
  const std::vector<std::string>& warnings() const override { return warnings_; }
  const std::optional<StreamIdentity>& own_identity() const override { return own_identity_; }

 private:
  const Side side_;
  const TlsHandle<SSL_CTX> context_;
  const bool has_certificates_ = false;
  const std::vector<std::string> warnings_;
  const std::optional<StreamIdentity> own_identity_;
};

Result<std::shared_ptr<const TlsContext>> make_from_secret(TlsContext::Side side,
                                                           std::string_view secret) {
  if (secret.size() < kLeastSecretBytes || secret.size() > kMostSecretBytes)
    return Status(Code::kInvalidArgument,
                  fmt::format("a job's secret has {} to {} bytes, not {}", kLeastSecretBytes,
                              kMostSecretBytes, secret.size()));
  MEMSPAN_TRY_ASSIGN(TlsHandle<SSL_CTX> context, new_context(side, kSecretSuite), "setting up TLS");
  auto key = std::make_unique<SharedKey>();
  unsigned length = 0;
  if (HMAC(EVP_sha384(), secret.data(), static_cast<int>(secret.size()),
           reinterpret_cast<const unsigned char*>(kLabel.data()), kLabel.size(), key->bytes.data(),
           &length) == nullptr ||
      SSL_CTX_set_ex_data(context.get(), shared_key_index(), key.get()) != 1)
    return Status(Code::kInternal, "deriving the key: " + openssl_reason());
  static_cast<void>(key.release());  // the context owns it now
  if (side == TlsContext::Side::kServer)
    SSL_CTX_set_psk_find_session_callback(context.get(), find_key);
  else
    SSL_CTX_set_psk_use_session_callback(context.get(), use_key);
  // A store without the secret could show a certificate instead, and a client that did not check it
  // would trust an impostor. This client trusts no authority, so it refuses all certificates.
  if (side == TlsContext::Side::kClient)
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  return std::shared_ptr<const TlsContext>(
      std::make_shared<OpenSslContext>(side, std::move(context)));
}

Result<std::shared_ptr<const TlsContext>> make_from_certificates(
    TlsContext::Side side, const StoreCertificates& certificates) {
  MEMSPAN_TRY_ASSIGN(TlsHandle<SSL_CTX> context, new_context(side, kSuites), "setting up TLS");
  MEMSPAN_PASS(load_certificates(context.get(), certificates));
  MEMSPAN_PASS(check_own_certificate(context.get(), side == TlsContext::Side::kServer));
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  auto warnings = warn_of_end(context.get(), certificates.certificate);
  auto own = member_of(SSL_CTX_get0_certificate(context.get()));
  if (!own.is_ok())
    return Status(
        Code::kInvalidArgument,
        fmt::format("tlsCert \"{}\": {}", certificates.certificate, own.status().message()));
  return std::shared_ptr<const TlsContext>(std::make_shared<OpenSslContext>(
      side, std::move(context), std::move(warnings), std::move(own).value()));
}

}  // namespace

Result<const TlsFactory*> tls_factory() {
  static const TlsFactory kFactory{MEMSPAN_VERSION, make_from_secret, make_from_certificates,
                                   summarize_by_openssl};
  return &kFactory;
}

}  // namespace memspan
