// SPDX-License-Identifier: Apache-2.0
// Contexts from secrets or certificates, and connections under them.
#include "net/tls_parts.h"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/socket.h>

#include "core/mutex.h"

namespace memspan::inline net {
namespace {

MEMSPAN_REMEDY(kCertificateRefused, "certificate-refused",
               "The certificate has another authority or has expired, or the secrets differ.",
               "Run `openssl verify -CAfile ca.pem me.pem`; compare `sha256sum` of the secrets.");

// ---- connections

// The first byte of every TLS handshake record. A peer that sends another one does not speak TLS.
constexpr unsigned char kHandshakeRecord = 22;
// New keys cost us as much as the peer, and OpenSSL makes them whenever the peer asks. A peer that
// asks more often than this in a row, without data in between, is cut off.
constexpr int kMostKeyUpdates = 32;
// OpenSSL's buffer for writing is this small until the handshake is over.
constexpr long kHandshakeFragment = 2048;

// State of a connection's BIO. Used under the connection's lock.
struct Wire {
  int socket = -1;
  int key_updates = 0;  // since the last data
  bool is_flooded() const { return key_updates > kMostKeyUpdates; }
  TlsRecords records = {};
  bool is_guarded = false;  // checks records
  bool has_excess = false;  // a record announced too much
};

Wire& wire_of(BIO* bio) {
  return *static_cast<Wire*>(BIO_get_data(bio));
}

void count_key_updates(int is_ours, int, int type, const void* bytes, std::size_t length, SSL*,
                       void* wire) {
  if (is_ours == 0 && type == SSL3_RT_HANDSHAKE && length > 0 &&
      *static_cast<const unsigned char*>(bytes) == SSL3_MT_KEY_UPDATE)
    ++static_cast<Wire*>(wire)->key_updates;
}

int bio_write(BIO* bio, const char* bytes, int length) {
  BIO_clear_retry_flags(bio);
  const ssize_t sent = ::send(wire_of(bio).socket, bytes, static_cast<std::size_t>(length),
                              MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
    BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int bio_read(BIO* bio, char* into, int room) {
  BIO_clear_retry_flags(bio);
  if (wire_of(bio).is_flooded()) return -1;
  const ssize_t got =
      ::recv(wire_of(bio).socket, into, static_cast<std::size_t>(room), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
    BIO_set_retry_read(bio);
  Wire& wire = wire_of(bio);
  wire.has_excess =
      wire.is_guarded && got > 0 && !wire.records.look_at({into, static_cast<std::size_t>(got)});
  if (wire.has_excess) return -1;
  if (got == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(got);
}

long bio_control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return 0;
}

// Made once and never freed: OpenSSL has no owner for it.
const BIO_METHOD* socket_method() {
  static const BIO_METHOD* const made = [] {
    BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "memspan");
    MEMSPAN_CHECK(method != nullptr);
    BIO_meth_set_write(method, bio_write);
    BIO_meth_set_read(method, bio_read);
    BIO_meth_set_ctrl(method, bio_control);
    return method;
  }();
  return made;
}

class TlsStream final : public ByteChannel {
 public:
  TlsStream(Fd socket, TlsHandle<SSL> ssl, TlsContext::Side side)
      : ByteChannel(std::move(socket)), side_(side), ssl_(std::move(ssl)) {
    wire_.socket = ByteChannel::socket();
    wire_.is_guarded = side == TlsContext::Side::kServer;
  }
  // Call it first.
  Status connect_bio() {
    MutexLock lock(mutex_);
    BIO* bio = BIO_new(socket_method());
    if (bio == nullptr) return {Code::kInternal, "OpenSSL: " + openssl_reason()};
    BIO_set_data(bio, &wire_);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);  // ssl_ owns it now
    if (wire_.is_guarded) SSL_set_max_send_fragment(ssl_.get(), kHandshakeFragment);
    SSL_set_msg_callback(ssl_.get(), count_key_updates);
    SSL_set_msg_callback_arg(ssl_.get(), &wire_);
    return Status::ok();
  }

  ChannelStep handshake() override {
    if (side_ == TlsContext::Side::kServer && !has_first_byte_)
      if (auto step = look_at_first_byte()) return *step;
    MutexLock lock(mutex_);
    ERR_clear_error();
    const int result =
        side_ == TlsContext::Side::kServer ? SSL_accept(ssl_.get()) : SSL_connect(ssl_.get());
    if (result > 0 && std::exchange(wire_.is_guarded, false)) {
      SSL_set_max_send_fragment(ssl_.get(), SSL3_RT_MAX_PLAIN_LENGTH);
      SSL_set_split_send_fragment(ssl_.get(), SSL3_RT_MAX_PLAIN_LENGTH);
    }
    return step(result, 0, "shaking hands under TLS");
  }
  ChannelStep read(char* into, std::size_t room) override {
    MutexLock lock(mutex_);
    ERR_clear_error();
    std::size_t bytes = 0;
    const int result = SSL_read_ex(ssl_.get(), into, room, &bytes);
    if (result > 0) wire_.key_updates = 0;
    return step(result, bytes, "reading under TLS");
  }
  ChannelStep write(std::string_view bytes) override {
    MutexLock lock(mutex_);
    ERR_clear_error();
    std::size_t written = 0;
    const int result = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &written);
    return step(result, written, "writing under TLS");
  }
  Result<std::optional<StreamIdentity>> identity() const override {
    MutexLock lock(mutex_);
    const X509* certificate = SSL_get0_peer_certificate(ssl_.get());
    if (certificate == nullptr) return std::optional<StreamIdentity>();
    return member_of(certificate);
  }
  bool has_peer_certificate() const override {
    MutexLock lock(mutex_);
    return SSL_get0_peer_certificate(ssl_.get()) != nullptr;
  }
  // Call it if the peer has a certificate.
  Status verify_again(SSL_CTX* context) const {
    MutexLock lock(mutex_);
    return verify(context, SSL_get0_peer_certificate(ssl_.get()),
                  SSL_get_peer_cert_chain(ssl_.get()), side_ == TlsContext::Side::kClient);
  }

 private:
  ChannelStep step(int result, std::size_t bytes, std::string_view doing) MEMSPAN_REQUIRES(mutex_) {
    if (result > 0) return {.bytes = bytes};
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        return {.next = ChannelStep::Next::kReadable};
      case SSL_ERROR_WANT_WRITE:
        return {.next = ChannelStep::Next::kWritable};
      case SSL_ERROR_ZERO_RETURN:
        return {.next = ChannelStep::Next::kEnd};
      default:
        return {.next = ChannelStep::Next::kFailed, .failure = why_failed(doing)};
    }
  }
  // A broken connection may be retried. A lack of trust is permanent.
  Status why_failed(std::string_view doing) const MEMSPAN_REQUIRES(mutex_) {
    if (wire_.has_excess) return {Code::kAuth, "its first message is longer than its record"};
    if (wire_.is_flooded())
      return {Code::kStoreLost, "the other side changes its keys all the time"};
    const unsigned long error = ERR_peek_error();
    const std::string reason = openssl_reason();
    if (ERR_GET_LIB(error) != ERR_LIB_SSL ||
        ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
      return {Code::kStoreLost, fmt::format("the connection ended while {}", doing)};
    if (ERR_GET_REASON(error) == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION)
      return {
          Code::kAuth,
          "the other side does not speak TLS 1.3; if it is a store, it was configured without TLS"};
    if (ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED)
      return {Code::kAuth,
              fmt::format("the other side's certificate is refused: {}{}",
                          X509_verify_cert_error_string(SSL_get_verify_result(ssl_.get())),
                          kCertificateRefused)};
    if (ERR_GET_REASON(error) > SSL_AD_REASON_OFFSET)
      return {Code::kAuth, fmt::format("the other side refuses this process: {}{}", reason,
                                       kCertificateRefused)};
    const bool is_no_tls = ERR_GET_REASON(error) == SSL_R_WRONG_VERSION_NUMBER ||
                           ERR_GET_REASON(error) == SSL_R_PACKET_LENGTH_TOO_LONG;
    return {Code::kAuth,
            fmt::format("{}: {}", doing, is_no_tls ? "the other side does not speak TLS" : reason)};
  }
  // OpenSSL would answer plain bytes with a plain alert.
  std::optional<ChannelStep> look_at_first_byte() {
    unsigned char first = 0;
    const ssize_t got = ::recv(socket(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
      return ChannelStep{.next = ChannelStep::Next::kReadable};
    if (got <= 0) return ChannelStep{.next = ChannelStep::Next::kEnd};
    if (first != kHandshakeRecord)
      return ChannelStep{.next = ChannelStep::Next::kFailed,
                         .failure = Status(Code::kAuth, "the other side does not speak TLS")};
    has_first_byte_ = true;
    return std::nullopt;
  }

  const TlsContext::Side side_;
  bool has_first_byte_ = false;
  Wire wire_;            // used by OpenSSL's calls, all under the lock
  mutable Mutex mutex_;  // OpenSSL allows one thread at a time in a connection
  TlsHandle<SSL> ssl_ MEMSPAN_GUARDED_BY(mutex_);
};

// ---- contexts

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
  OpenSslContext(Side side, TlsHandle<SSL_CTX> context, bool has_certificates,
                 std::vector<std::string> warnings,
                 const std::optional<StreamIdentity>& own_identity)
      : side_(side),
        context_(std::move(context)),
        has_certificates_(has_certificates),
        warnings_(std::move(warnings)),
        own_identity_(own_identity) {}

  Result<std::unique_ptr<ByteChannel>> open(Fd socket, const std::string& host) const override {
    TlsHandle<SSL> ssl(SSL_new(context_.get()));
    if (ssl == nullptr) return Status(Code::kInternal, "OpenSSL: " + openssl_reason());
    if (has_certificates_ && side_ == Side::kClient)
      if (Status status = expect_host(ssl.get(), host); !status.is_ok()) return status;
    auto stream = std::make_unique<TlsStream>(std::move(socket), std::move(ssl), side_);
    if (Status status = stream->connect_bio(); !status.is_ok()) return status;
    return std::unique_ptr<ByteChannel>(std::move(stream));
  }
  Status accepts(const ByteChannel& stream) const override {
    if (!has_certificates_ || !stream.has_peer_certificate()) return Status::ok();
    // Only a TlsStream has a peer certificate.
    return static_cast<const TlsStream&>(stream).verify_again(context_.get());
  }
  const std::vector<std::string>& warnings() const override { return warnings_; }
  const std::optional<StreamIdentity>& own_identity() const override { return own_identity_; }

 private:
  const Side side_;
  const TlsHandle<SSL_CTX> context_;
  const bool has_certificates_;
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
  return std::shared_ptr<const TlsContext>(std::make_shared<OpenSslContext>(
      side, std::move(context), false, std::vector<std::string>(), std::nullopt));
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
      side, std::move(context), true, std::move(warnings), std::move(own).value()));
}

}  // namespace

Result<const TlsFactory*> tls_factory() {
  static const TlsFactory kFactory{MEMSPAN_VERSION, make_from_secret, make_from_certificates,
                                   summarize_by_openssl};
  return &kFactory;
}

}  // namespace memspan::inline net
