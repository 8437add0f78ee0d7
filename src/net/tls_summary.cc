// SPDX-License-Identifier: Apache-2.0
#include "net/tls_summary.h"

#include <fmt/format.h>
#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <ctime>

#include "core/private_file.h"
#include "net/tls.h"
#include "net/tls_files.h"

namespace memspan {
namespace {

constexpr std::size_t kMostCertificateBytes = std::size_t{1} << 20;

std::string text_of(BIO* bio) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio, &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

std::string name_of(const X509_NAME* name) {
  const TlsHandle<BIO> bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_RFC2253);
  return text_of(bio.get());
}

std::string time_of(const ASN1_TIME* time) {
  std::tm parts = {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return "?";
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

std::int64_t seconds_to(const ASN1_TIME* time) {
  int days = 0;
  int seconds = 0;
  if (ASN1_TIME_diff(&days, &seconds, nullptr, time) != 1) return 0;
  return days * std::int64_t{86400} + seconds;
}

// One text per name, such as "DNS:localhost".
std::vector<std::string> names_of(const X509* certificate) {
  struct Free {
    void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
  };
  const std::unique_ptr<GENERAL_NAMES, Free> all(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> names;
  for (int i = 0; all != nullptr && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const TlsHandle<BIO> bio(BIO_new(BIO_s_mem()));
    GENERAL_NAME_print(bio.get(), sk_GENERAL_NAME_value(all.get(), i));
    names.push_back(text_of(bio.get()));
  }
  return names;
}

std::string key_of(X509* certificate) {
  const EVP_PKEY* key = X509_get0_pubkey(certificate);
  if (key == nullptr) return "unknown";
  return fmt::format("{} of {} bits", OBJ_nid2sn(EVP_PKEY_get_base_id(key)),
                     EVP_PKEY_get_bits(key));
}

Result<CertificateSummary> summarize(const std::string& path) {
  auto text = read_public_file("the certificate", path, kMostCertificateBytes);
  if (!text.is_ok()) return Status(Code::kInvalidArgument, text.status().message());
  const TlsHandle<BIO> bio(BIO_new_mem_buf(text->data(), static_cast<int>(text->size())));
  const TlsHandle<X509> found(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (found == nullptr)
    return Status(Code::kInvalidArgument,
                  fmt::format("the certificate \"{}\": has no certificate in PEM form", path));
  X509* certificate = found.get();
  CertificateSummary summary{.subject = name_of(X509_get_subject_name(certificate)),
                             .issuer = name_of(X509_get_issuer_name(certificate)),
                             .names = names_of(certificate),
                             .begins = time_of(X509_get0_notBefore(certificate)),
                             .ends = time_of(X509_get0_notAfter(certificate)),
                             .seconds_to_begin = seconds_to(X509_get0_notBefore(certificate)),
                             .seconds_to_end = seconds_to(X509_get0_notAfter(certificate)),
                             .key = key_of(certificate)};
  ERR_clear_error();
  return summary;
}

}  // namespace

CertificateSummarizer openssl_summarizer() {
  return summarize;
}

}  // namespace memspan
