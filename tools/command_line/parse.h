// SPDX-License-Identifier: Apache-2.0
// How memspan's tools read their command lines.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <sstream>
#include <string>
#include <string_view>

#include "command_line/print.h"
#include "core/status.h"

namespace memspan::command_line {

// Whether the program continues: not after --help and --version, which have been printed to stdout.
// kInvalidArgument names a word that `app` does not know; kSystem when help cannot be printed.
inline Result<bool> parse(CLI::App& app, int argc, const char* const* argv) {
  // The parser would read "-hosts" as "-h" and more: help, and nothing is done. "-n2" is meant.
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--") break;  // no options follow
    if (word.size() <= 2 || word[0] != '-' || word[1] == '-') continue;
    const CLI::Option* const letter = app.get_option_no_throw(std::string(word.substr(0, 2)));
    const bool is_number = word[2] >= '0' && word[2] <= '9';
    if (letter == nullptr || letter->get_items_expected_max() == 0 || !is_number)
      return Status(Code::kInvalidArgument, fmt::format("there is no option \"{}\"", word));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    std::ostringstream text;
    app.exit(asked, text, text);
    MEMSPAN_PASS(print_all(text.str()));
    return false;
  } catch (const CLI::ParseError& error) {
    return Status(Code::kInvalidArgument, error.what());
  }
  return true;
}

}  // namespace memspan::command_line
