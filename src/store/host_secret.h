// SPDX-License-Identifier: Apache-2.0
// TLS without any set-up among the processes of one user on one host. The listening process writes
// a fresh secret into a file that only this user may read. Connecting processes read it there.
//
//   <private runtime folder>/store-<network namespace>-<address>-<port>.secret
//
// The name follows from the address. The folder is any of the user's own
// (private_runtime_directories()). A file that outlived its store (which was killed) holds a
// useless secret; the next store of the user removes it.
#pragma once

#include "core/fd.h"
#include "net/endpoint.h"

namespace memspan::inline store {

// The listening side's file; it exists from publish() to destruction. Move-only.
class HostSecret {
 public:
  // `endpoint` has a numeric address, perhaps the wildcard ("0.0.0.0", "::"), and the real port.
  static Result<HostSecret> publish(const Endpoint& endpoint);
  HostSecret(HostSecret&&) noexcept = default;
  HostSecret& operator=(HostSecret&&) = delete;
  ~HostSecret();

  const std::string& secret() const { return secret_; }

 private:
  HostSecret(std::string path, std::string secret, Fd file)
      : path_(std::move(path)), secret_(std::move(secret)), file_(std::move(file)) {}
  std::string path_;
  std::string secret_;
  Fd file_;  // its lock shows that this process lives; not valid: moved from
};

// Returns the secret that the store at that numeric address published last. kNotFound names the
// file.
Result<std::string> read_host_secret(const Endpoint& endpoint);

}  // namespace memspan::inline store
