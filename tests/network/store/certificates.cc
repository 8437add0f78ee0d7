// SPDX-License-Identifier: Apache-2.0
#include "certificates.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>

#include "core/fd.h"

namespace memspan {
namespace {

std::shared_ptr<EVP_PKEY> generate(KeyKind kind) {
  EVP_PKEY* key = nullptr;
  switch (kind) {
    case KeyKind::kEc256:
      key = EVP_EC_gen("P-256");
      break;
    case KeyKind::kRsa1024:
      key = EVP_RSA_gen(1024);
      break;
    case KeyKind::kRsa2048:
      key = EVP_RSA_gen(2048);
      break;
    case KeyKind::kRsa3072:
      key = EVP_RSA_gen(3072);
      break;
  }
  MEMSPAN_CHECK(key != nullptr);
  return {key, EVP_PKEY_free};
}

std::string join(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) all += (all.empty() ? "" : ",") + part;
  return all;
}

void add_extension(X509* certificate, X509V3_CTX& context, int nid, const std::string& value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  MEMSPAN_CHECK(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

void set_name(X509* certificate, const std::string& name) {
  MEMSPAN_CHECK(X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                                           reinterpret_cast<const unsigned char*>(name.c_str()), -1,
                                           -1, 0) == 1);
}

void add_extensions(X509* certificate, X509* issuer, const CertificateWish& wish) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  std::string constraints = wish.is_authority ? "critical,CA:TRUE" : "critical,CA:FALSE";
  if (wish.path_length >= 0) constraints += ",pathlen:" + std::to_string(wish.path_length);
  add_extension(certificate, context, NID_basic_constraints, constraints);
  add_extension(certificate, context, NID_key_usage,
                wish.is_authority ? "critical,keyCertSign,cRLSign,digitalSignature"
                                  : "critical,digitalSignature");
  add_extension(certificate, context, NID_subject_key_identifier, "hash");
  if (issuer != certificate)
    add_extension(certificate, context, NID_authority_key_identifier, "keyid:always");
  if (!wish.usage.empty()) add_extension(certificate, context, NID_ext_key_usage, wish.usage);
  if (!wish.names.empty())
    add_extension(certificate, context, NID_subject_alt_name, join(wish.names));
}

template <typename Write>
std::string as_pem(Write write) {
  TlsHandle<BIO> bio(BIO_new(BIO_s_mem()));
  MEMSPAN_CHECK(bio != nullptr && write(bio.get()) == 1);
  char* bytes = nullptr;
  const long length = BIO_get_mem_data(bio.get(), &bytes);
  return {bytes, static_cast<std::size_t>(length)};
}

std::shared_ptr<ASN1_TIME> in_seconds(long seconds) {
  return {X509_gmtime_adj(nullptr, seconds), ASN1_TIME_free};
}

}  // namespace

std::shared_ptr<EVP_PKEY> make_key(KeyKind kind) {
  if (kind == KeyKind::kEc256) return generate(kind);
  static std::array<std::shared_ptr<EVP_PKEY>, 4> made;
  auto& key = made[static_cast<std::size_t>(kind)];
  if (key == nullptr) key = generate(kind);
  return key;
}

Issued issue(const CertificateWish& wish, const Issued* issuer) {
  static std::atomic<long> next_serial{1000};
  Issued made{.certificate = {X509_new(), X509_free}, .key = make_key(wish.key)};
  X509* raw = made.certificate.get();
  X509* parent = issuer == nullptr ? raw : issuer->certificate.get();
  MEMSPAN_CHECK(X509_set_version(raw, X509_VERSION_3) == 1);
  MEMSPAN_CHECK(ASN1_INTEGER_set(X509_get_serialNumber(raw), next_serial.fetch_add(1)) == 1);
  MEMSPAN_CHECK(X509_gmtime_adj(X509_getm_notBefore(raw), wish.begins_s) != nullptr);
  MEMSPAN_CHECK(X509_gmtime_adj(X509_getm_notAfter(raw), wish.ends_s) != nullptr);
  set_name(raw, wish.common_name);
  MEMSPAN_CHECK(X509_set_issuer_name(raw, X509_get_subject_name(parent)) == 1);
  MEMSPAN_CHECK(X509_set_pubkey(raw, made.key.get()) == 1);
  add_extensions(raw, parent, wish);
  EVP_PKEY* signs = issuer == nullptr ? made.key.get() : issuer->key.get();
  MEMSPAN_CHECK(X509_sign(raw, signs, EVP_get_digestbyname(wish.hash)) > 0);
  return made;
}

std::string revocation_list(const Issued& authority, const RevocationWish& wish) {
  TlsHandle<X509_CRL> list(X509_CRL_new());
  X509_CRL* raw = list.get();
  MEMSPAN_CHECK(X509_CRL_set_version(raw, X509_CRL_VERSION_2) == 1);
  MEMSPAN_CHECK(X509_CRL_set_issuer_name(raw, X509_get_subject_name(authority.certificate.get())) ==
                1);
  MEMSPAN_CHECK(X509_CRL_set1_lastUpdate(raw, in_seconds(wish.begins_s).get()) == 1);
  MEMSPAN_CHECK(X509_CRL_set1_nextUpdate(raw, in_seconds(wish.ends_s).get()) == 1);
  for (const Issued& issued : wish.revoked) {
    X509_REVOKED* revoked = X509_REVOKED_new();
    MEMSPAN_CHECK(X509_REVOKED_set_serialNumber(
                      revoked, X509_get_serialNumber(issued.certificate.get())) == 1 &&
                  X509_REVOKED_set_revocationDate(revoked, in_seconds(wish.begins_s).get()) == 1 &&
                  X509_CRL_add0_revoked(raw, revoked) == 1);
  }
  X509V3_CTX context;
  X509V3_set_ctx(&context, authority.certificate.get(), nullptr, nullptr, raw, 0);
  X509_EXTENSION* by =
      X509V3_EXT_conf_nid(nullptr, &context, NID_authority_key_identifier, "keyid:always");
  MEMSPAN_CHECK(by != nullptr && X509_CRL_add_ext(raw, by, -1) == 1);
  X509_EXTENSION_free(by);
  const std::shared_ptr<ASN1_INTEGER> number(ASN1_INTEGER_new(), ASN1_INTEGER_free);
  MEMSPAN_CHECK(ASN1_INTEGER_set(number.get(), 1) == 1 &&
                X509_CRL_add1_ext_i2d(raw, NID_crl_number, number.get(), 0, 0) == 1);
  MEMSPAN_CHECK(X509_CRL_sort(raw) == 1 &&
                X509_CRL_sign(raw, authority.key.get(), EVP_sha256()) > 0);
  return as_pem([&](BIO* bio) { return PEM_write_bio_X509_CRL(bio, raw); });
}

std::string to_pem(const Issued& issued) {
  return as_pem([&](BIO* bio) { return PEM_write_bio_X509(bio, issued.certificate.get()); });
}

std::string key_to_pem(const Issued& issued) {
  return as_pem([&](BIO* bio) {
    return PEM_write_bio_PrivateKey(bio, issued.key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
}

std::string key_to_pem(const Issued& issued, std::string_view password) {
  return as_pem([&](BIO* bio) {
    return PEM_write_bio_PKCS8PrivateKey(bio, issued.key.get(), EVP_aes_256_cbc(), password.data(),
                                         static_cast<int>(password.size()), nullptr, nullptr);
  });
}

TestFolder::TestFolder() {
  std::string path = (std::filesystem::temp_directory_path() / "memspan-test-XXXXXX").string();
  MEMSPAN_CHECK(::mkdtemp(path.data()) != nullptr);
  path_ = std::move(path);
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TestFolder::write(std::string_view bytes) {
  return write(bytes, "file-" + std::to_string(next_++), S_IRUSR | S_IWUSR);
}

std::string TestFolder::write(std::string_view bytes, const std::string& name, unsigned mode) {
  std::string path = path_ + "/" + name;
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR));
  MEMSPAN_CHECK(::write(file.get(), bytes.data(), bytes.size()) ==
                static_cast<ssize_t>(bytes.size()));
  MEMSPAN_CHECK(::fchmod(file.get(), mode) == 0);
  return path;
}

}  // namespace memspan
