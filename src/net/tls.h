// SPDX-License-Identifier: Apache-2.0
// TLS 1.3 for the store's connections: the credentials and trust of a side (TlsContext), and a
// connection under it (a ByteChannel).
//
// Invariant: no version but 1.3, no resumption, no early data, no renegotiation. With certificates,
// both sides show one, and the server's names its address. Keys below 128 bits of security and
// SHA-1 are refused. A server does not answer a peer that does not begin with a TLS record.
//
//   tls_context.cc, tls_files.cc, tls_stream.cc, tls_summary.cc   by OpenSSL
//   tls_linked.cc    programs that have these linked (memspan-store, tests)
//   tls_loaded.cc    libmemspan.so and oshrun: load libmemspan_tls.so (tls_module.cc), which has
//                    them, when a connection first needs it. A process that starts under oshrun
//                    never does, and OpenSSL would cost it more than everything else together
//   tls_absent.cc    a build without OpenSSL (MEMSPAN_TLS=OFF)
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/fd.h"
#include "core/status.h"
#include "net/byte_channel.h"
#include "net/security.h"
#include "net/tls_summary.h"

namespace memspan {

// Immutable; thread-safe.
class TlsContext {
 public:
  enum class Side { kServer, kClient };

  // From a secret (which both sides have) or certificates. kInvalidArgument names the file and its
  // error, also for a certificate that this side may not use, such as an expired one. kNotSupported
  // if libmemspan_tls.so is missing, or the build has no TLS.
  static Result<std::shared_ptr<const TlsContext>> from_secret(Side side, std::string_view secret);
  static Result<std::shared_ptr<const TlsContext>> from_certificates(
      Side side, const StoreCertificates& certificates);
  virtual ~TlsContext() = default;
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

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

 protected:
  TlsContext() = default;
};

using CertificateSummarizer = Result<CertificateSummary> (*)(const std::string& path);

// Makes contexts; a value that can be passed from one loaded library to another.
struct TlsFactory {
  const char* version;  // MEMSPAN_VERSION of the module
  Result<std::shared_ptr<const TlsContext>> (*from_secret)(TlsContext::Side side,
                                                           std::string_view secret);
  Result<std::shared_ptr<const TlsContext>> (*from_certificates)(
      TlsContext::Side side, const StoreCertificates& certificates);
  CertificateSummarizer summarize;
};
CertificateSummarizer openssl_summarizer();
const TlsFactory& openssl_tls_factory();
// libmemspan_tls.so exports a function of this type.
inline constexpr const char* kTlsModuleEntry = "memspan_tls_factory";
using TlsModuleEntry = const TlsFactory* (*)();

}  // namespace memspan
