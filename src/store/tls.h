// SPDX-License-Identifier: Apache-2.0
// TLS 1.3 for the store's connections: what a side knows and trusts (TlsContext), and a connection
// under it (a StoreStream).
//
// Always holds: no version but 1.3, no resumption, no early data, no renegotiation. With
// certificates both sides show one, the server's names its address, and neither a key shorter
// than 128 bits' worth of security nor SHA-1 is accepted. A server answers nothing to who does
// not begin with a TLS record.
//
//   tls_context.cc, tls_files.cc, tls_stream.cc, tls_summary.cc   by OpenSSL
//   tls_linked.cc    programs that have these linked (memspan-store, tests)
//   tls_loaded.cc    libmemspan.so and oshrun: libmemspan_tls.so (tls_module.cc) has them and is
//                    loaded when a connection first needs it, since a process that starts under
//                    oshrun never does, and OpenSSL costs it more than everything else together
//   tls_absent.cc    a build without OpenSSL (MEMSPAN_TLS=OFF)
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/fd.h"
#include "core/status.h"
#include "store/security.h"
#include "store/stream.h"
#include "store/tls_summary.h"

namespace memspan {

// Immutable; thread-safe.
class TlsContext {
 public:
  enum class Side { kServer, kClient };

  // From a secret (which both sides have) or certificates. kInvalidArgument names the file and
  // what is wrong with it: also a certificate that is not ours to use, such as an expired one.
  // kNotSupported when libmemspan_tls.so is not there, or the build has no TLS.
  static Result<std::shared_ptr<const TlsContext>> from_secret(Side side, std::string_view secret);
  static Result<std::shared_ptr<const TlsContext>> from_certificates(
      Side side, const StoreCertificates& certificates);
  virtual ~TlsContext() = default;
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // A connection that begins. `host` is the name or numeric address that a client went to and
  // that the server's certificate must have; a server leaves it empty.
  virtual Result<std::unique_ptr<StoreStream>> open(Fd socket, const std::string& host) const = 0;
  // Whether the certificate that the peer of `stream` showed is good by what this side trusts
  // now. Streams without certificates are.
  virtual Status accepts(const StoreStream& stream) const = 0;
  // What the user should know though it is no error: a certificate that ends within 30 days.
  virtual const std::vector<std::string>& warnings() const = 0;
  // The member that our own certificate names.
  virtual const std::optional<StreamIdentity>& own_identity() const = 0;

 protected:
  TlsContext() = default;
};

using CertificateSummarizer = Result<CertificateSummary> (*)(const std::string& path);

// Who makes contexts, as a value that can cross from one loaded library into another.
struct TlsFactory {
  const char* version;  // MEMSPAN_VERSION of who made it
  Result<std::shared_ptr<const TlsContext>> (*from_secret)(TlsContext::Side side,
                                                           std::string_view secret);
  Result<std::shared_ptr<const TlsContext>> (*from_certificates)(
      TlsContext::Side side, const StoreCertificates& certificates);
  CertificateSummarizer summarize;
};
CertificateSummarizer openssl_summarizer();
const TlsFactory& openssl_tls_factory();
// What libmemspan_tls.so exports: a function of this type.
inline constexpr const char* kTlsModuleEntry = "memspan_tls_factory";
using TlsModuleEntry = const TlsFactory* (*)();

}  // namespace memspan
