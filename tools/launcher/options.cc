// SPDX-License-Identifier: Apache-2.0
#include "launcher/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <map>
#include <memory>

#include "core/environment.h"
#include "world/board.h"

namespace memspan::launcher {
namespace {

constexpr double kLongestTimeoutSeconds = 1e9;

class HelpText : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    return "Usage: oshrun -n N [options] program [arguments...]\n";
  }
};

struct Words {
  std::vector<std::string> options;  // in front of the program
  std::vector<std::string> command;
};

// CLI11 knows no long option with one dash, so `-np` becomes `--np` here. Which words are values
// of an option is asked of `app`, so that no option is listed twice.
Words split(const CLI::App& app, int argc, const char* const* argv) {
  Words words;
  int i = 1;
  for (; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--") {
      ++i;
      break;
    }
    if (word.size() < 2 || word[0] != '-') break;
    if (word == "-np") word = "--np";
    const CLI::Option* option = app.get_option_no_throw(word);
    words.options.push_back(word);
    if (option != nullptr && option->get_items_expected_max() > 0 && i + 1 < argc)
      words.options.emplace_back(argv[++i]);
  }
  words.command.assign(argv + i, argv + argc);
  return words;
}

Status invalid(std::string message) {
  return {Code::kInvalidArgument, std::move(message)};
}

Result<Duration> parse_timeout(const std::string& text) {
  double seconds = 0;
  const char* end = text.data() + text.size();
  auto [stopped, error] = std::from_chars(text.data(), end, seconds);
  if (error != std::errc() || stopped != end || !(seconds > 0 && seconds <= kLongestTimeoutSeconds))
    return invalid(
        fmt::format("--timeout is \"{}\"; allowed is a positive number of seconds", text));
  return from_seconds(seconds);
}

Result<Binding> parse_binding(const std::string& text) {
  static const std::map<std::string, Binding> kBindings = {
      {"auto", Binding::kWhenItFits}, {"core", Binding::kCore}, {"none", Binding::kNone}};
  auto found = kBindings.find(text);
  if (found == kBindings.end())
    return invalid(fmt::format("--bind is \"{}\"; allowed is core or none", text));
  return found->second;
}

Status check_environment(const std::vector<std::string>& settings) {
  for (const std::string& setting : settings)
    if (setting.find('=') == std::string::npos || setting[0] == '=')
      return invalid(fmt::format("--env is \"{}\"; allowed is NAME=VALUE", setting));
  return Status::ok();
}

}  // namespace

Result<std::optional<Options>> parse_options(int argc, const char* const* argv) {
  Options options;
  std::string processes;
  std::string timeout;
  std::string binding = "auto";
  bool label = false;
  bool keep_going = false;

  CLI::App app("Starts an OpenSHMEM job on this host and ends it as a whole.", "oshrun");
  app.formatter(std::make_shared<HelpText>());
  app.footer(
      "Options end at the program's name. The result is the program's: 0, or the code of the\n"
      "first process that failed (128 + the signal's number when it was killed), 124 after\n"
      "--timeout, 127 when the program cannot be started, 2 for a wrong option.");
  app.set_version_flag("--version", "oshrun (memspan) " MEMSPAN_VERSION);
  app.add_option("-n,--np", processes, "number of processes (also -np)")->type_name("N");
  app.add_flag("--label", label, "put the number of its process in front of each line of output");
  app.add_option("--timeout", timeout, "end the job after this many seconds")->type_name("S");
  app.add_option("--env", options.environment, "set a variable in every process")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  app.add_option(
         "--bind", binding,
         "core: each process keeps to a core of its own (the default where there are enough)")
      ->type_name("core|none");
  app.add_flag("--keep-going", keep_going,
               "do not end the job when a process fails: for programs that survive it "
               "(shmemx_set_error_handler)");

  Words words = split(app, argc, argv);
  try {
    // CLI11 takes the words from the back.
    app.parse(std::vector<std::string>(words.options.rbegin(), words.options.rend()));
  } catch (const CLI::Success& asked) {  // --help, --version
    app.exit(asked);
    return std::optional<Options>();
  } catch (const CLI::ParseError& error) {
    return invalid(error.what());
  }

  if (app.count("--np") == 0) return invalid("-n N is missing: how many processes?");
  auto count = parse_integer("-n", processes, 1, kMostPeersPerHost);
  if (!count.is_ok()) return count.status();
  options.processes = static_cast<int>(*count);
  if (app.count("--timeout") > 0) {
    auto duration = parse_timeout(timeout);
    if (!duration.is_ok()) return duration.status();
    options.timeout = *duration;
  }
  MEMSPAN_PASS(check_environment(options.environment));
  auto bound = parse_binding(binding);
  if (!bound.is_ok()) return bound.status();
  options.binding = *bound;
  options.on_failure = keep_going ? OnFailure::kKeepGoing : OnFailure::kEndJob;
  options.output = label ? Output::kLabelled : Output::kInherited;
  if (words.command.empty()) return invalid("the program to start is missing");
  options.command = std::move(words.command);
  return std::optional<Options>(std::move(options));
}

}  // namespace memspan::launcher
