// SPDX-License-Identifier: Apache-2.0
// The protection of the connections to a store. It is plain only if the user asks for that.
//
//   kHostSecret    the default: a fresh secret in a file that only this user may read
//                  (host_secret.h); members on one host
//   kSecret        all members were given one secret: TLS 1.3 with it as external PSK
//   kCertificates  mutual X.509 over TLS 1.3
//   kPlain         no TLS
#pragma once

#include <functional>
#include <vector>

#include "core/status.h"

namespace memspan::inline net {

// A PEM text, or the path of a file with it; at most one of the two. A value.
struct PemSource {
  std::string text = {};
  std::string path = {};
  bool is_given() const { return !text.empty() || !path.empty(); }
};

// Decrypts the key's password.
using DecryptPassword = std::function<Result<std::string>(std::string_view cipher)>;

// A value. The files are read when a server or a client is made, and by StoreServer::reload().
struct StoreCertificates {
  std::vector<std::string> authorities;       // files of CA certificates
  std::string certificate;                    // file: ours, then the intermediate ones
  PemSource key;                              // a file of it must be private (core/private_file.h)
  PemSource password = {};                    // of the key, when it has one; a file must be private
  DecryptPassword decrypt = {};               // null: the password is as given
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

// "key: value;" items, in both vendors' form. Known are tlsCert, tlsCaPath, tlsCaFile (a list of
// names in it), tlsCrlPath, tlsCrlFile (also a list), tlsPk, tlsPkPwd and packagePath. packagePath
// has no effect, because OpenSSL is linked. kInvalidArgument names an entry that is unknown,
// duplicate, empty, without a colon, or missing.
Result<StoreCertificates> parse_tls_info(std::string_view text);

// Returns kSecret with the content of a private file; `what` names the file in messages.
// kInvalidArgument if the file is not private (core/private_file.h) or its secret too short or too
// long.
Result<StoreSecurity> security_from_secret_file(std::string_view what, const std::string& path);
// Reads the file of MEMSPAN_JOB_SECRET_FILE, if that is set; kHostSecret otherwise.
Result<StoreSecurity> security_from_environment();

}  // namespace memspan::inline net
