// SPDX-License-Identifier: Apache-2.0
#include "store/host_secret.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/private_file.h"
#include "core/random.h"
#include "net/security.h"

namespace memspan::inline store {
namespace {

constexpr std::size_t kSecretBytes = 32;  // as twice as many digits

// The same address in another network namespace is another place.
std::string network_namespace() {
  struct stat about = {};
  if (::stat("/proc/self/ns/net", &about) != 0) return "0";
  return std::to_string(about.st_ino);
}

constexpr int kAttempts = 5;
constexpr std::string_view kPrefix = "store-";

std::string path_in(const std::string& folder, const Endpoint& endpoint) {
  return fmt::format("{}/{}{}-{}-{}.secret", folder, kPrefix, network_namespace(), endpoint.host,
                     endpoint.port);
}

// The store may run in another environment, so try all of the user's folders.
Result<std::string> read_at(const Endpoint& endpoint) {
  constexpr std::string_view kWhat = "the host's secret";
  std::vector<std::string> folders = private_runtime_directories();
  if (folders.empty()) {
    MEMSPAN_TRY_ASSIGN(folders.emplace_back(), private_runtime_directory(),
                       "reading the host's secret");
  }
  for (const std::string& folder : folders) {
    auto secret = read_private_file(kWhat, path_in(folder, endpoint), kMostSecretBytes);
    if (secret.code() != Code::kNotFound) return secret;
  }
  return read_private_file(kWhat, path_in(folders.front(), endpoint), kMostSecretBytes);
}

}  // namespace

Result<HostSecret> HostSecret::publish(const Endpoint& endpoint) {
  MEMSPAN_TRY_ASSIGN(const std::string folder, private_runtime_directory(),
                     "publishing the host's secret");
  remove_abandoned_files(folder, kPrefix);
  std::string path = path_in(folder, endpoint);
  std::string secret = random_hex(kSecretBytes);
  // Another store may consider a file that is not locked yet abandoned, and remove it.
  auto file = write_private_file(path, secret);
  for (int again = 0; !file.is_ok() && again < kAttempts; ++again)
    file = write_private_file(path, secret);
  if (!file.is_ok()) return file.status().annotate("publishing the host's secret");
  return HostSecret(std::move(path), std::move(secret), std::move(file).value());
}

HostSecret::~HostSecret() {
  if (file_.is_valid()) ::unlink(path_.c_str());
}

// A store that listens at all addresses publishes its secret under the wildcard address.
Result<std::string> read_host_secret(const Endpoint& endpoint) {
  auto secret = read_at(endpoint);
  for (const char* all : {"0.0.0.0", "::"}) {
    if (secret.code() != Code::kNotFound) return secret;
    if (auto other = read_at({all, endpoint.port}); other.code() != Code::kNotFound) return other;
  }
  return secret;
}

}  // namespace memspan::inline store
