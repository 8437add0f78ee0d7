// SPDX-License-Identifier: Apache-2.0
#include "store_tool/options.h"

#include <fmt/format.h>

#include <string_view>

#include "command_line/parse.h"

namespace memspan::store_tool {
namespace {

void describe(CLI::App& app, std::string& listen, Options& options) {
  app.add_option(
         "--listen", listen,
         "where: tcp://127.0.0.1:8666, tcp://[::1]:8666, tcp://HOST:PORT, tcp://INTERFACE:PORT; "
         "port 0 picks one; tcp://0.0.0.0:PORT is every interface")
      ->capture_default_str();
  app.add_option("--job", options.job, "serve only members of this job");
  auto* secret = app.add_option("--secret-file", options.secret_file,
                                "a secret that all members have (MEMSPAN_JOB_SECRET_FILE there)");
  auto* tls = app.add_option("--tls-info", options.tls_info,
                             "certificates: \"tlsCert: FILE; tlsPk: FILE; tlsCaPath: FOLDER; "
                             "tlsCaFile: NAME; ...\"; read again at SIGHUP");
  auto* plain = app.add_flag("--plain", options.is_plain, "without TLS");
  secret->excludes(tls)->excludes(plain);
  tls->excludes(plain);
  app.add_option("--address-file", options.address_file, "write the address into this file");
  app.add_option("--metrics", options.metrics,
                 "serve its metrics to Prometheus at this HOST:PORT, as 127.0.0.1:9464");
  app.set_version_flag("--version", "memspan-store " MEMSPAN_VERSION, "print the version");
}

}  // namespace

Result<StoreSecurity> Options::security() const {
  if (!secret_file.empty()) return security_from_secret_file("--secret-file", secret_file);
  if (is_plain) return StoreSecurity{.kind = StoreSecurity::Kind::kPlain};
  if (tls_info.empty()) return security_from_environment();
  StoreSecurity security{.kind = StoreSecurity::Kind::kCertificates};
  MEMSPAN_TRY_ASSIGN(security.certificates, parse_tls_info(tls_info), "--tls-info");
  return security;
}

Result<std::optional<Options>> parse_options(int argc, const char* const* argv) {
  CLI::App app("Hosts the store at which the members of a job find each other, until SIGTERM.");
  std::string listen = "tcp://127.0.0.1:0";
  Options options;
  describe(app, listen, options);
  MEMSPAN_PASS_ASSIGN(const auto goes_on, command_line::parse(app, argc, argv));
  if (!goes_on) return std::optional<Options>();
  MEMSPAN_TRY_ASSIGN(auto endpoint, Endpoint::parse(listen), "--listen");
  options.listen = std::move(endpoint);
  return std::optional<Options>(std::move(options));
}

}  // namespace memspan::store_tool
