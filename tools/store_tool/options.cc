// SPDX-License-Identifier: Apache-2.0
#include "store_tool/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "core/private_file.h"

namespace memspan::store_tool {
namespace {

struct Words {
  std::string listen = "tcp://127.0.0.1:0";
  std::string job;
  std::string secret_file;
  std::string tls_info;
  bool is_plain = false;
  std::string address_file;
};

void describe(CLI::App& app, Words& words) {
  app.add_option(
         "--listen", words.listen,
         "where: tcp://127.0.0.1:8666, tcp://[::1]:8666, tcp://HOST:PORT, tcp://INTERFACE:PORT; "
         "port 0 picks one; tcp://0.0.0.0:PORT is every interface")
      ->capture_default_str();
  app.add_option("--job", words.job, "serve only members of this job");
  auto* secret = app.add_option("--secret-file", words.secret_file,
                                "a secret that all members have (MEMSPAN_JOB_SECRET_FILE there)");
  auto* tls = app.add_option("--tls-info", words.tls_info,
                             "certificates: \"tlsCert: FILE; tlsPk: FILE; tlsCaPath: FOLDER; "
                             "tlsCaFile: NAME; ...\"; read again at SIGHUP");
  auto* plain = app.add_flag("--plain", words.is_plain, "without TLS");
  secret->excludes(tls)->excludes(plain);
  tls->excludes(plain);
  app.add_option("--address-file", words.address_file, "write the address into this file");
  app.set_version_flag("--version", "memspan-store " MEMSPAN_VERSION);
}

Result<StoreSecurity> security_of(const Words& words) {
  StoreSecurity security;
  if (words.is_plain) {
    security.kind = StoreSecurity::Kind::kPlain;
  } else if (!words.tls_info.empty()) {
    security.kind = StoreSecurity::Kind::kCertificates;
    MEMSPAN_TRY_ASSIGN(security.certificates, parse_tls_info(words.tls_info), "--tls-info");
  } else if (!words.secret_file.empty()) {
    security.kind = StoreSecurity::Kind::kSecret;
    MEMSPAN_TRY_ASSIGN(security.secret,
                       read_private_file("the secret", words.secret_file, kMostSecretBytes),
                       "--secret-file");
  } else {
    return security_from_environment();
  }
  return security;
}

// nullopt: help or the version was asked for.
Result<std::optional<Words>> parse_words(int argc, const char* const* argv) {
  CLI::App app("Hosts the store at which the members of a job find each other, until SIGTERM.");
  Words words;
  describe(app, words);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    app.exit(asked);
    return std::optional<Words>();
  } catch (const CLI::ParseError& error) {
    return Status(Code::kInvalidArgument, error.what());
  }
  return std::optional<Words>(std::move(words));
}

}  // namespace

Result<std::optional<Options>> parse_options(int argc, const char* const* argv) {
  auto words = parse_words(argc, argv);
  if (!words.is_ok()) return words.status();
  if (!words->has_value()) return std::optional<Options>();
  Options options;
  options.address_file = (*words)->address_file;
  options.server.job = (*words)->job;
  auto endpoint = Endpoint::parse((*words)->listen);
  if (!endpoint.is_ok()) return endpoint.status().annotate("--listen");
  options.listen = std::move(endpoint).value();
  auto security = security_of(**words);
  if (!security.is_ok()) return security.status();
  options.server.security = std::move(security).value();
  return std::optional<Options>(std::move(options));
}

Result<StoreSecurity> read_security(int argc, const char* const* argv) {
  auto words = parse_words(argc, argv);
  if (!words.is_ok()) return words.status();
  return security_of(words->value_or(Words{}));
}

}  // namespace memspan::store_tool
