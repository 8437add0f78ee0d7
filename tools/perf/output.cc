// SPDX-License-Identifier: Apache-2.0
#include "perf/output.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "command_line/print.h"
#include "perf/plots.h"
#include "perf/table.h"

namespace memspan::perf {
namespace {

json::Value to_json(const Measured& measured) {
  json::Value all =
      json::Value().set("version", MEMSPAN_VERSION).set("run", to_json(measured.here));
  if (measured.compared)
    all.set("other", to_json(measured.compared->run))
        .set("pairing",
             measured.compared->pairing == Pairing::kAlternating ? "alternating" : "saved")
        .set("ratios", to_json(measured.compared->ratios));
  return all;
}

std::string to_text(const Measured& measured) {
  std::string text = to_text(measured.here);
  if (measured.compared)
    text += to_text(measured.compared->ratios, measured.here, measured.compared->run,
                    measured.compared->pairing);
  return text;
}

Status convert(const std::string& svg, const std::string& png) {
  std::string words[] = {"rsvg-convert", "--zoom=2", "--output", png, svg};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(),
                       words[3].data(), words[4].data(), nullptr};
  pid_t process = -1;
  if (const int error =
          ::posix_spawnp(&process, arguments[0], nullptr, nullptr, arguments, environ);
      error != 0)
    return {Code::kNotFound,
            "--png: there is no rsvg-convert (Debian: librsvg2-bin); --svg needs none"};
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Status::ok();
  return {Code::kUnavailable, fmt::format("rsvg-convert could not write \"{}\"", png)};
}

Status write_plots(const Options& options, const Measured& measured) {
  const Run* const there = measured.compared ? &measured.compared->run : nullptr;
  const std::string& folder = options.svg.empty() ? options.png : options.svg;
  for (const NamedPlot& plot : plots_of(measured.here, there, Place::kFile)) {
    const std::string svg = fmt::format("{}/{}.svg", folder, plot.name);
    MEMSPAN_PASS(save_text(svg, plot.svg));
    if (!options.png.empty())
      MEMSPAN_PASS(convert(svg, fmt::format("{}/{}.png", options.png, plot.name)));
  }
  return Status::ok();
}

}  // namespace

Status write_all(const Options& options, const Measured& measured) {
  const std::string text = options.is_json ? to_json(measured).pretty() + "\n" : to_text(measured);
  MEMSPAN_PASS(command_line::print_all(text));
  if (!options.save.empty())
    MEMSPAN_PASS(save_text(options.save, to_json(measured).pretty() + "\n"));
  if (!options.report.empty())
    MEMSPAN_PASS(save_text(options.report, to_html(measured.here, measured.compared)));
  return options.svg.empty() && options.png.empty() ? Status::ok() : write_plots(options, measured);
}

}  // namespace memspan::perf
