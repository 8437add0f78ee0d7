// SPDX-License-Identifier: Apache-2.0
#include "perf/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>
#include <vector>

#include "command_line/arguments.h"
#include "command_line/environment.h"
#include "command_line/print.h"
#include "core/fd.h"
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
        .set("notes", json::written(notes_on(measured.here, measured.compared->run)))
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

// Whether it ended well. Its output is dropped. kNotFound: it is not installed.
Result<bool> run_converter(std::vector<std::string> words) {
  words.insert(words.begin(), "rsvg-convert");
  const std::vector<char*> arguments = command_line::pointers_to(words);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t process = -1;
  const int error =
      ::posix_spawnp(&process, arguments[0], &actions, nullptr, arguments.data(), environment());
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return Status(Code::kNotFound,
                  "--png: there is no rsvg-convert (Debian: librsvg2-bin); --svg needs none");
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

Status convert(const std::string& svg, const std::string& png) {
  MEMSPAN_PASS_ASSIGN(const auto is_written, run_converter({"--zoom=2", "--output", png, svg}));
  if (is_written) return Status::ok();
  return {Code::kUnavailable, fmt::format("rsvg-convert could not write \"{}\"", png)};
}

// A new file is made and removed again: only that shows that it can be made.
Status check_file(std::string_view option, const std::string& path) {
  if (path.empty()) return Status::ok();
  const Fd made(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (made.is_valid()) {
    ::unlink(path.c_str());
    return Status::ok();
  }
  if (errno == EEXIST) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored))
      errno = EISDIR;
    else if (::access(path.c_str(), W_OK) == 0)
      return Status::ok();
  }
  return {Code::kInvalidArgument, Status::from_errno(fmt::format("{} {}", option, path)).message()};
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

Status check_outputs(const Options& options) {
  MEMSPAN_PASS(check_file("--save", options.save));
  MEMSPAN_PASS(check_file("--report", options.report));
  for (const std::string& folder : {options.svg, options.png})
    if (!folder.empty() && ::access(folder.c_str(), W_OK | X_OK) != 0)
      return {Code::kInvalidArgument, Status::from_errno("the folder " + folder).message()};
  return options.png.empty() ? Status::ok() : run_converter({"--version"}).status();
}

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
