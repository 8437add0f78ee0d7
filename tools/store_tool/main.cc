// SPDX-License-Identifier: Apache-2.0
// memspan-store: the store as a process of its own, for jobs that no launcher of ours starts.
//
// Prints one line, "memspan-store: listening at tcp://127.0.0.1:8666", when members can come.
// SIGHUP reads certificates again and closes the connections that they do not allow any more;
// SIGTERM and SIGINT end it.
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "command_line/print.h"
#include "core/log.h"
#include "net/metrics_server.h"
#include "observe/metrics.h"
#include "store/server.h"
#include "store_tool/metrics.h"
#include "store_tool/options.h"

namespace memspan {
namespace {

Status write_address(const std::string& path, const std::string& address) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return Status::from_errno("--address-file " + path);
  const bool is_written = std::fprintf(file, "%s\n", address.c_str()) > 0;
  if (std::fclose(file) != 0 || !is_written) return Status::from_errno("--address-file " + path);
  return Status::ok();
}

Status reload(StoreServer& server, const store_tool::Options& options) {
  MEMSPAN_PASS_ASSIGN(auto security, options.security());
  return server.reload(security);
}

Status serve(const store_tool::Options& options) {
  // Waited for below; blocked first, so that the store's thread inherits it.
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGHUP, SIGINT, SIGTERM}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  MEMSPAN_TRY_ASSIGN(StoreSecurity security, options.security(), "protecting the store");
  MEMSPAN_TRY_ASSIGN(
      std::unique_ptr<StoreServer> server,
      StoreServer::listen(options.listen, {.security = std::move(security), .job = options.job}),
      "hosting the store");
  std::unique_ptr<TextServer> metrics;
  if (!options.metrics.empty()) {
    MEMSPAN_PASS_ASSIGN(auto served, serve_metrics("--metrics", options.metrics, [&server] {
                          return store_tool::metrics_of(*server);
                        }));
    metrics = std::move(served);
  }
  const std::string address = server->endpoint().to_string();
  if (!options.address_file.empty())
    MEMSPAN_TRY(write_address(options.address_file, address), "publishing the address");
  std::string lines;
  if (metrics) lines = fmt::format("memspan-store: metrics at port {}\n", metrics->port());
  const Status printed =
      command_line::print_all(fmt::format("{}memspan-store: listening at {}\n", lines, address));
  // A service may have closed its stdout; the members read the file.
  if (options.address_file.empty()) MEMSPAN_PASS(printed);
  for (;;) {
    int signal = 0;
    sigwait(&signals, &signal);
    if (signal != SIGHUP) return Status::ok();
    if (Status status = reload(*server, options); !status.is_ok())
      log_line(LogLevel::kError, "memspan-store: nothing is changed: " + status.message());
  }
}

}  // namespace
}  // namespace memspan

int main(int argc, char** argv) {
  auto options = memspan::store_tool::parse_options(argc, argv);
  memspan::Status status = options.status();
  if (options.is_ok() && options->has_value()) status = memspan::serve(**options);
  return status.is_ok() ? 0 : memspan::command_line::end_with("memspan-store", status);
}
