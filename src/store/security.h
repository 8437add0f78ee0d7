// SPDX-License-Identifier: Apache-2.0
// What protects the connections to a store. Nothing is plain unless its user says so.
//
//   kHostSecret    nothing was given: a fresh secret in a file that only this user may read
//                  (host_secret.h); members on one host
//   kSecret        everybody was given the same secret: TLS 1.3 with it as external PSK
//   kCertificates  mutual X.509 over TLS 1.3
//   kPlain         no TLS
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace memspan {

// A PEM text, or the path of a file with it; at most one of the two. A value.
struct PemSource {
  std::string text = {};
  std::string path = {};
  bool is_given() const { return !text.empty() || !path.empty(); }
};

// Makes the key's password from what was given as such.
using DecryptPassword = std::function<Result<std::string>(std::string_view cipher)>;

// A value. The files are read when a server or a client is made, and by StoreServer::reload().
struct StoreCertificates {
  std::vector<std::string> authorities;  // files of CA certificates
  std::string certificate;               // file: ours, then the ones between it and an authority
  PemSource key;                         // a file of it must be private (core/private_file.h)
  PemSource password = {};               // of the key, when it has one; a file must be private
  DecryptPassword decrypt = {};          // null: the password is as given
  std::vector<std::string> revocations = {};  // files of CRLs; empty: nothing is revoked
};

// A value.
struct StoreSecurity {
  enum class Kind { kHostSecret, kSecret, kCertificates, kPlain };
  Kind kind = Kind::kHostSecret;
  std::string secret = {};  // kSecret: kLeastSecretBytes and more
  StoreCertificates certificates = {};
};

inline constexpr std::size_t kLeastSecretBytes = 16;
inline constexpr std::size_t kMostSecretBytes = 4096;

// "key: value;" items, as both vendors write them. Known are tlsCert, tlsCaPath, tlsCaFile (a
// list of names in it), tlsCrlPath, tlsCrlFile (the same), tlsPk, tlsPkPwd and packagePath (which
// is accepted and has no effect: OpenSSL is linked). kInvalidArgument names the entry that is
// unknown, there twice, empty, without a colon, or missing.
Result<StoreCertificates> parse_tls_info(std::string_view text);

// kSecret with what a private file has; `what` names the file in messages. kInvalidArgument when
// the file is not private (core/private_file.h) or its secret too short or too long.
Result<StoreSecurity> security_from_secret_file(std::string_view what, const std::string& path);
// The same with MEMSPAN_JOB_SECRET_FILE, when that is set; kHostSecret otherwise.
Result<StoreSecurity> security_from_environment();

}  // namespace memspan
