// SPDX-License-Identifier: Apache-2.0
// Authorities, certificates, keys and revocation lists, good and bad ones, made when a test wants
// them, in a folder that goes with the object.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/tls_parts.h"

namespace memspan {

enum class KeyKind { kEc256, kRsa1024, kRsa2048, kRsa3072 };

// What a certificate is asked to be. A value; as it stands it is good for a member on loopback.
struct CertificateWish {
  std::string common_name = "a member";
  KeyKind key = KeyKind::kEc256;
  std::vector<std::string> names = {"DNS:localhost", "IP:127.0.0.1"};
  std::string usage = "serverAuth,clientAuth";
  long begins_s = -3600;  // from now
  long ends_s = 90L * 24 * 3600;
  const char* hash = "SHA256";
  bool is_authority = false;
  int path_length = -1;  // of an authority: none is named
};

// A certificate and its key; copies share them.
struct Issued {
  std::shared_ptr<X509> certificate;
  std::shared_ptr<EVP_PKEY> key;
};

// A key of that kind; the ones that take long to make are made once.
std::shared_ptr<EVP_PKEY> make_key(KeyKind kind);
// `issuer` null: signed by itself.
Issued issue(const CertificateWish& wish, const Issued* issuer = nullptr);

// What a revocation list is asked to be. A value.
struct RevocationWish {
  std::vector<Issued> revoked = {};
  long begins_s = -3600;
  long ends_s = 24L * 3600;
};
std::string revocation_list(const Issued& authority, const RevocationWish& wish = {});

std::string to_pem(const Issued& issued);
std::string key_to_pem(const Issued& issued);
std::string key_to_pem(const Issued& issued, std::string_view password);

// A folder of mode 0700 that is removed with what is in it. Not copyable.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::string& path() const { return path_; }
  // The path of a new file of mode 0600.
  std::string write(std::string_view bytes);
  // The same under a name and with a mode of the caller's choice.
  std::string write(std::string_view bytes, const std::string& name, unsigned mode);

 private:
  std::string path_;
  int next_ = 0;
};

}  // namespace memspan
