// SPDX-License-Identifier: Apache-2.0
// Those who trust one authority: its certificates as files, and stores and members that use them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "certificates.h"
#include "store/client.h"
#include "store/server.h"

namespace memspan {

inline CertificateWish authority_wish(const std::string& name, int path_length = -1) {
  return {.common_name = name,
          .names = {},
          .usage = "",
          .is_authority = true,
          .path_length = path_length};
}

// Not thread-safe.
class Trust {
 public:
  explicit Trust(const std::string& name = "the root")
      : root_(issue(authority_wish(name))), root_file_(folder_.write(to_pem(root_))) {}

  const Issued& root() const { return root_; }
  TestFolder& folder() { return folder_; }
  Issued member(const CertificateWish& wish = {}) const { return issue(wish, &root_); }

  // Files that show `leaf` (and what stands between it and the root) and trust the root.
  StoreCertificates files(const Issued& leaf, const std::vector<Issued>& chain = {}) {
    std::string text = to_pem(leaf);
    for (const Issued& next : chain) text += to_pem(next);
    return {.authorities = {root_file_},
            .certificate = folder_.write(text),
            .key = {.path = folder_.write(key_to_pem(leaf))}};
  }
  StoreCertificates files() { return files(member()); }

 private:
  TestFolder folder_;
  Issued root_;
  std::string root_file_;
};

inline StoreSecurity with(StoreCertificates certificates) {
  return {.kind = StoreSecurity::Kind::kCertificates, .certificates = std::move(certificates)};
}

inline StoreSecurity with_secret(std::string secret) {
  return {.kind = StoreSecurity::Kind::kSecret, .secret = std::move(secret)};
}

inline StoreSecurity plain() {
  return {.kind = StoreSecurity::Kind::kPlain};
}

inline Result<std::unique_ptr<StoreServer>> listen(StoreSecurity security) {
  return StoreServer::listen({"127.0.0.1", 0}, {.security = std::move(security)});
}

}  // namespace memspan
