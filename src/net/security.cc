// SPDX-License-Identifier: Apache-2.0
#include "net/security.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/environment.h"
#include "core/private_file.h"

namespace memspan::inline net {
namespace {

constexpr std::size_t kMostInfoBytes = 10 << 10;
constexpr const char* kSecretVariable = "MEMSPAN_JOB_SECRET_FILE";
constexpr std::string_view kEntries[] = {"tlsCert",    "tlsCaPath", "tlsCaFile", "tlsCrlPath",
                                         "tlsCrlFile", "tlsPk",     "tlsPkPwd",  "packagePath"};

using Entries = std::map<std::string, std::string, std::less<>>;

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

Status invalid_entry(std::string_view entry, std::string_view why) {
  return {Code::kInvalidArgument, fmt::format("tls_info: \"{}\" {}", entry.substr(0, 64), why)};
}

Status take_entry(std::string_view item, Entries& entries) {
  const std::size_t colon = item.find(':');
  if (colon == std::string_view::npos) return invalid_entry(item, "has no colon");
  const std::string_view name = trim(item.substr(0, colon));
  const std::string_view value = trim(item.substr(colon + 1));
  if (std::find(std::begin(kEntries), std::end(kEntries), name) == std::end(kEntries))
    return invalid_entry(name,
                         fmt::format("is not an entry; allowed are {}", fmt::join(kEntries, ", ")));
  if (value.empty()) return invalid_entry(name, "is empty");
  if (value.find(':') != std::string_view::npos)
    return invalid_entry(name, "has a colon in its value, which a path may not have");
  if (!entries.emplace(name, value).second) return invalid_entry(name, "is given twice");
  return Status::ok();
}

std::string value_of(const Entries& entries, std::string_view name) {
  auto found = entries.find(name);
  return found == entries.end() ? std::string() : found->second;
}

// The files of a list of names in a folder.
Result<std::vector<std::string>> files_in(const Entries& entries, std::string_view folder_entry,
                                          std::string_view list_entry) {
  const std::string folder = value_of(entries, folder_entry);
  const std::string list = value_of(entries, list_entry);
  std::vector<std::string> files;
  for (const std::string_view part : split(list, ',')) {
    const std::string_view name = trim(part);
    if (name.empty()) continue;
    files.push_back(folder.empty() ? std::string(name) : fmt::format("{}/{}", folder, name));
  }
  if (!folder.empty() && files.empty())
    return invalid_entry(list_entry,
                         fmt::format("is missing; {} needs it to name a file", folder_entry));
  return files;
}

}  // namespace

Result<StoreCertificates> parse_tls_info(std::string_view text) {
  if (text.size() > kMostInfoBytes)
    return Status(
        Code::kInvalidArgument,
        fmt::format("tls_info has {} bytes, at most {} are allowed", text.size(), kMostInfoBytes));
  if (text.find('\0') != std::string_view::npos)
    return Status(Code::kInvalidArgument, "tls_info has a zero byte in it");
  Entries entries;
  for (const std::string_view part : split(text, ';'))
    if (const std::string_view item = trim(part); !item.empty())
      MEMSPAN_PASS(take_entry(item, entries));
  StoreCertificates files;
  MEMSPAN_TRY_ASSIGN(files.authorities, files_in(entries, "tlsCaPath", "tlsCaFile"),
                     "reading the TLS settings");
  MEMSPAN_TRY_ASSIGN(files.revocations, files_in(entries, "tlsCrlPath", "tlsCrlFile"),
                     "reading the TLS settings");
  files.certificate = value_of(entries, "tlsCert");
  files.key.path = value_of(entries, "tlsPk");
  files.password.path = value_of(entries, "tlsPkPwd");
  if (files.certificate.empty()) return invalid_entry("tlsCert", "is missing");
  if (files.authorities.empty()) return invalid_entry("tlsCaFile", "is missing");
  return files;
}

Result<StoreSecurity> security_from_secret_file(std::string_view what, const std::string& path) {
  StoreSecurity security{.kind = StoreSecurity::Kind::kSecret};
  MEMSPAN_TRY_ASSIGN(security.secret, read_private_file(what, path, kMostSecretBytes),
                     "reading the job's secret");
  if (security.secret.size() < kLeastSecretBytes)
    return Status(Code::kInvalidArgument,
                  fmt::format("{} \"{}\" has {} bytes, a secret has at least {}", what, path,
                              security.secret.size(), kLeastSecretBytes));
  return security;
}

Result<StoreSecurity> security_from_environment() {
  const auto path = environment(kSecretVariable);
  return path ? security_from_secret_file(kSecretVariable, *path) : StoreSecurity{};
}

}  // namespace memspan::inline net
