// SPDX-License-Identifier: Apache-2.0
// memspan-top: what the running jobs, pools and transfer endpoints of this user do.
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <cstdio>
#include <thread>
#include <vector>

#include "node/counters_metrics.h"
#include "top/options.h"
#include "top/print.h"
#include "top/screen.h"
#include "top/view.h"

namespace memspan::top {
namespace {

void print(const View& view, const Options& options) {
  std::string text;
  if (options.is_json)
    text = json_of(view) + "\n";
  else
    for (const std::string& line : table_of(view, options.order)) text += line + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
}

// Rates need two looks.
int run_once(Viewer& viewer, const Options& options) {
  View view = viewer.look(options.order);
  if (options.interval > Duration::zero()) {
    std::this_thread::sleep_for(options.interval);
    view = viewer.look(options.order);
  }
  print(view, options);
  return std::fflush(stdout) == 0 ? 0 : 1;
}

// For as long as somebody reads.
int run_as_stream(Viewer& viewer, const Options& options) {
  viewer.look(options.order);
  while (true) {
    std::this_thread::sleep_for(options.interval);
    print(viewer.look(options.order), options);
    if (std::fflush(stdout) != 0) return 1;
  }
}

bool take_key(char key, Order& order) {
  switch (key) {
    case 'q':
      return false;
    case 's':
      order = static_cast<Order>((static_cast<int>(order) + 1) % 4);
      break;
    case 'r':
      order = Order::kRank;
      break;
    case 'c':
      order = Order::kCalls;
      break;
    case 'b':
      order = Order::kBytes;
      break;
    case 'w':
      order = Order::kWaits;
      break;
    default:
      break;
  }
  return true;
}

int run_on_terminal(Viewer& viewer, Options options) {
  if (const Status status = Screen::check(); !status.is_ok()) {
    fmt::print(stderr, "memspan-top: {}\n", status.message());
    return 2;
  }
  Screen screen;
  while (true) {
    screen.show(table_of(viewer.look(options.order), options.order));
    if (!take_key(screen.key(Deadline::after(options.interval)), options.order)) return 0;
  }
}

// Of all processes of this user on this host.
int serve(const std::string& place) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  CountersReader reader;  // of the server's thread
  const auto server = serve_metrics("--metrics", place, [&reader] {
    std::vector<CountersSeen> processes;
    for (const ProcessSeen& seen : reader.look()) processes.push_back(seen.counters);
    return metrics_of(processes);
  });
  if (!server.is_ok()) {
    const bool is_refusal = server.code() == Code::kInvalidArgument;
    fmt::print(stderr, "memspan-top: {}{}\n", server.status().message(),
               is_refusal ? "; see memspan-top --help" : "");
    return is_refusal ? 2 : 1;
  }
  fmt::print("memspan-top: metrics at port {}\n", (*server)->port());
  std::fflush(stdout);
  int number = 0;
  sigwait(&signals, &number);
  return 0;
}

int run(int argc, const char* const* argv) {
  auto options = parse_options(argc, argv);
  if (!options.is_ok()) {
    fmt::print(stderr, "memspan-top: {}; see memspan-top --help\n", options.status().message());
    return 2;
  }
  if (!*options) return 0;
  if (!(*options)->metrics.empty()) return serve((*options)->metrics);
  Viewer viewer((*options)->only);
  if ((*options)->is_once) return run_once(viewer, **options);
  if ((*options)->is_json) return run_as_stream(viewer, **options);
  return run_on_terminal(viewer, **options);
}

}  // namespace
}  // namespace memspan::top

int main(int argc, char** argv) {
  return memspan::top::run(argc, argv);
}
