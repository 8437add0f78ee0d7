// SPDX-License-Identifier: Apache-2.0
// TLS 1.3 for the store's connections, by OpenSSL: what a side knows and trusts (TlsContext), and
// a connection under it (a StoreStream).
//
// Always holds: no version but 1.3, no resumption, no early data, no renegotiation. With
// certificates both sides show one, the server's names its address, and neither a key shorter
// than 128 bits' worth of security nor SHA-1 is accepted. A server answers nothing to who does
// not begin with a TLS record.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/fd.h"
#include "core/status.h"
#include "store/security.h"
#include "store/stream.h"

namespace memspan {

// Immutable; thread-safe.
class TlsContext {
 public:
  enum class Side { kServer, kClient };

  // From a secret (which both sides have) or certificates. kInvalidArgument names the file and
  // what is wrong with it: also a certificate that is not ours to use, such as an expired one.
  static Result<std::shared_ptr<const TlsContext>> from_secret(Side side, std::string_view secret);
  static Result<std::shared_ptr<const TlsContext>> from_certificates(
      Side side, const StoreCertificates& certificates);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // A connection that begins. `host` is the name or numeric address that a client went to and
  // that the server's certificate must have; a server leaves it empty.
  Result<std::unique_ptr<StoreStream>> open(Fd socket, const std::string& host) const;
  // Whether the certificate that the peer of `stream` showed is good by what this side trusts
  // now. Streams without certificates are.
  Status accepts(const StoreStream& stream) const;
  // What the user should know though it is no error: a certificate that ends within 30 days.
  const std::vector<std::string>& warnings() const;

 private:
  struct State;
  explicit TlsContext(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;  // shared by no one; OpenSSL counts its own references
};

}  // namespace memspan
