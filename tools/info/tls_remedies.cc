// SPDX-License-Identifier: Apache-2.0
#include "info/tls_remedies.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>
#include <vector>

#include "core/private_file.h"

namespace memspan::info {
namespace {

constexpr std::size_t kMostFileBytes = std::size_t{1} << 20;

enum class Privacy { kPublic, kPrivate };
enum class Fault {
  kMissing,
  kMode,      // it is open to others
  kPlace,     // its owner, its folder, its kind
  kContents,  // none of these
};

Fault fault_of(const std::string& path, Privacy privacy) {
  const bool is_private = privacy == Privacy::kPrivate;
  const auto bytes = is_private ? read_private_file("", path, kMostFileBytes)
                                : read_public_file("", path, kMostFileBytes);
  if (bytes.is_ok()) return Fault::kContents;
  if (bytes.code() == Code::kNotFound) return Fault::kMissing;
  struct stat about = {};
  if (::lstat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return Fault::kPlace;
  const bool is_ours = about.st_uid == ::geteuid() || about.st_uid == 0;
  if (is_private && is_ours && (about.st_mode & (S_IRWXG | S_IRWXO)) != 0) return Fault::kMode;
  return about.st_size == 0 ? Fault::kContents : Fault::kPlace;
}

std::string mode_remedy(const std::string& path) {
  return "chmod 600 " + path;
}

std::string place_remedy(const std::string& path, Privacy privacy) {
  if (privacy == Privacy::kPublic)
    return fmt::format("ls -ld {}: it has to be a file that this user may read", path);
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  return fmt::format(
      "ls -ld {} {}: it has to be a file of this user or root, in a folder to which only its owner "
      "may write",
      folder, path);
}

// With `set -C` the shell overwrites nothing.
std::string fresh_secret(const std::string& path) {
  return fmt::format("(umask 077; set -C; head -c 32 /dev/urandom | base64 > {})", path);
}

// A file by the entry of tls_info that names it.
struct NamedFile {
  std::string_view entry;
  std::string path;
  Privacy privacy = Privacy::kPublic;
};

// In the order in which a start reads them.
std::vector<NamedFile> files_of(const StoreCertificates& certificates) {
  std::vector<NamedFile> files{{"tlsCert", certificates.certificate}};
  for (const auto& [entry, source] :
       {std::pair("tlsPk", &certificates.key), std::pair("tlsPkPwd", &certificates.password)})
    if (!source->path.empty()) files.push_back({entry, source->path, Privacy::kPrivate});
  for (const std::string& path : certificates.authorities) files.push_back({"tlsCaFile", path});
  for (const std::string& path : certificates.revocations) files.push_back({"tlsCrlFile", path});
  return files;
}

std::string verify_command(const StoreCertificates& certificates, TlsContext::Side side) {
  std::string command = "openssl verify";
  for (const std::string& path : certificates.authorities) command += " -trusted " + path;
  const bool is_server = side == TlsContext::Side::kServer;
  return fmt::format("{0} -untrusted {1} -purpose {2} {1}", command, certificates.certificate,
                     is_server ? "sslserver" : "sslclient");
}

}  // namespace

std::string secret_remedy(const std::string& file) {
  switch (fault_of(file, Privacy::kPrivate)) {
    case Fault::kMissing:
      return fresh_secret(file);
    case Fault::kMode:
      return mode_remedy(file);
    case Fault::kPlace:
      return place_remedy(file, Privacy::kPrivate);
    case Fault::kContents:
      break;
  }
  return fmt::format("{}, and name that file", fresh_secret(file + ".new"));
}

std::string certificate_remedy(const Status& failure, const StoreCertificates& certificates,
                               TlsContext::Side side) {
  const bool has_no_tls = failure.code() == Code::kNotSupported;
  if (has_no_tls)
    return "install libmemspan_tls.so of this version, or build memspan with -DMEMSPAN_TLS=ON";
  if (!certificates.key.is_given()) return "add tlsPk: FILE, the private key of the certificate";
  for (const NamedFile& file : files_of(certificates)) {
    switch (fault_of(file.path, file.privacy)) {
      case Fault::kMissing:
        return fmt::format("{} is missing: put it there, or name another file in {}", file.path,
                           file.entry);
      case Fault::kMode:
        return mode_remedy(file.path);
      case Fault::kPlace:
        return place_remedy(file.path, file.privacy);
      case Fault::kContents:
        break;
    }
  }
  // A failure names the file that it is about.
  const std::string& key = certificates.key.path;
  if (failure.message().find(fmt::format("\"{}\"", key)) != std::string::npos)
    return fmt::format(
        "openssl pkey -in {} -pubout, which has to print what openssl x509 -in {} -noout -pubkey "
        "prints",
        key, certificates.certificate);
  return verify_command(certificates, side);
}

}  // namespace memspan::info
