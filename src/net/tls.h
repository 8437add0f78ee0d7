// SPDX-License-Identifier: Apache-2.0
// TLS 1.3 for the store's connections: the credentials and trust of a side (TlsContext), and a
// connection under it (a ByteChannel).
//
// Invariant: no version but 1.3, no resumption, no early data, no renegotiation. With certificates,
// both sides show one, and the server's names its address. Keys below 128 bits of security and
// SHA-1 are refused. A server does not answer a peer that does not begin with a TLS record.
//
//   tls_context.cc, tls_files.cc   by OpenSSL; programs that have these linked (memspan-store,
//                    tests) need no more
//   tls_loaded.cc    libmemspan.so and oshrun: load libmemspan_tls.so (tls_module.cc), which has
//                    them, when a connection first needs it. A process that starts under oshrun
//                    never does, and OpenSSL would cost it more than everything else together
//   tls_absent.cc    a build without OpenSSL (MEMSPAN_TLS=OFF)
#pragma once

#include "net/byte_channel.h"
#include "net/security.h"

namespace memspan::inline net {

// Immutable; thread-safe.
class TlsContext : NotCopyable {
 public:
  enum class Side { kServer, kClient };

  // From a secret (which both sides have) or certificates. kInvalidArgument names the file and its
  // error, also for a certificate that this side may not use, such as an expired one. kNotSupported
  // if libmemspan_tls.so is missing, or the build has no TLS.
  static Result<std::shared_ptr<const TlsContext>> from_secret(Side side, std::string_view secret);
  static Result<std::shared_ptr<const TlsContext>> from_certificates(
      Side side, const StoreCertificates& certificates);
  virtual ~TlsContext() = default;

  // Takes a new connection. `host` is the name or numeric address that a client connects to and
  // that the server's certificate must have; a server leaves it empty.
  virtual Result<std::unique_ptr<ByteChannel>> open(Fd socket, const std::string& host) const = 0;
  // Whether this side trusts the certificate that the peer of `stream` showed. Streams without
  // certificates are accepted.
  virtual Status accepts(const ByteChannel& stream) const = 0;
  // Warnings for the user: a certificate that expires within 30 days.
  virtual const std::vector<std::string>& warnings() const = 0;
  // The member that our own certificate names.
  virtual const std::optional<StreamIdentity>& own_identity() const = 0;
};

// A readable summary of the first certificate in a file, valid or not. A value.
struct CertificateSummary {
  std::string subject;  // "CN=a member,O=..."
  std::string issuer;
  std::vector<std::string> names;  // subject alternative names: "DNS:localhost", "URI:urn:..."
  std::string begins;              // "2026-11-25T02:44:04Z"
  std::string ends;
  std::int64_t seconds_to_begin = 0;  // below 0: it has begun
  std::int64_t seconds_to_end = 0;    // below 0: it is over
  std::string key;                    // "EC of 256 bits"
};

// kInvalidArgument: the file is missing, or has no certificate in PEM form. kNotSupported without
// TLS. Checks nothing: TlsContext::from_certificates() does.
Result<CertificateSummary> summarize_certificate(const std::string& path);

// Makes these; a value that can be passed from one loaded library to another.
struct TlsFactory {
  const char* version;  // MEMSPAN_VERSION of the module
  decltype(&TlsContext::from_secret) from_secret;
  decltype(&TlsContext::from_certificates) from_certificates;
  decltype(&summarize_certificate) summarize;
};
// The one of this process. kNotSupported without TLS.
Result<const TlsFactory*> tls_factory();
// libmemspan_tls.so exports a function of this type.
inline constexpr const char* kTlsModuleEntry = "memspan_tls_factory";
using TlsModuleEntry = const TlsFactory* (*)();

inline Result<std::shared_ptr<const TlsContext>> TlsContext::from_secret(Side side,
                                                                         std::string_view secret) {
  MEMSPAN_PASS_ASSIGN(const TlsFactory* const factory, tls_factory());
  return factory->from_secret(side, secret);
}

inline Result<std::shared_ptr<const TlsContext>> TlsContext::from_certificates(
    Side side, const StoreCertificates& certificates) {
  MEMSPAN_PASS_ASSIGN(const TlsFactory* const factory, tls_factory());
  return factory->from_certificates(side, certificates);
}

inline Result<CertificateSummary> summarize_certificate(const std::string& path) {
  MEMSPAN_PASS_ASSIGN(const TlsFactory* const factory, tls_factory());
  return factory->summarize(path);
}

}  // namespace memspan::inline net
