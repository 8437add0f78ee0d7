// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <getopt.h>

#include <charconv>
#include <cstring>
#include <limits>
#include <string_view>

namespace matmul {

const char kUsage[] =
    "usage: oshrun -n RANKS matmul_allreduce -M rows -K inner -N columns\n"
    "         [-type fp16|bf16|float|int32] [-seed S] [-repeat COUNT] [-blas openblas|onednn]\n"
    "         [-send store|put] [-blocks COUNT]\n"
    "Every rank multiplies its own random A (MxK) by its own B (KxN); the products are summed "
    "over\n"
    "the ranks, and every rank gets the sum. Every element is compared with a float64 reference. "
    "With -blocks the\n"
    "fused form is a kernel of so many blocks.\n";

namespace {

constexpr int kMostRepeats = 1000;

// Empty when `text` is a whole number in [least, most].
std::string read_number(const char* name, std::string_view text, std::uint64_t least,
                        std::uint64_t most, std::uint64_t& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool ok = error == std::errc() && end == text.data() + text.size() && !text.empty();
  if (ok && value >= least && value <= most) return {};
  return std::string("option -") + name + ": \"" + std::string(text) +
         "\" is not a whole number from " + std::to_string(least) + " to " + std::to_string(most);
}

std::string read_type(std::string_view text, ElementType& type) {
  auto named = element_type_named(text);
  if (named) type = *named;
  return named ? ""
               : "option -type: \"" + std::string(text) + "\" is not fp16, bf16, float or int32";
}

std::string read_blas(std::string_view text, Blas& blas) {
  if (text == "openblas")
    blas = Blas::kOpenBlas;
  else if (text == "onednn")
    blas = Blas::kOneDnn;
  else
    return "option -blas: \"" + std::string(text) + "\" is not openblas or onednn";
  return {};
}

std::string read_send(std::string_view text, Send& send) {
  if (text == "store")
    send = Send::kStore;
  else if (text == "put")
    send = Send::kPut;
  else
    return "option -send: \"" + std::string(text) + "\" is not store or put";
  return {};
}

std::string read_option(const char* name, const char* text, Options& options) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (std::strcmp(name, "M") == 0) return read_number(name, text, 1, kMost, options.m);
  if (std::strcmp(name, "K") == 0) return read_number(name, text, 1, kMost, options.k);
  if (std::strcmp(name, "N") == 0) return read_number(name, text, 1, kMost, options.n);
  if (std::strcmp(name, "seed") == 0)
    return read_number(name, text, 0, std::numeric_limits<std::uint64_t>::max(), options.seed);
  if (std::strcmp(name, "type") == 0) return read_type(text, options.type);
  if (std::strcmp(name, "blas") == 0) return read_blas(text, options.blas);
  if (std::strcmp(name, "send") == 0) return read_send(text, options.send);
  if (std::strcmp(name, "blocks") == 0)
    return read_number(name, text, 1, kMostBlocks, options.blocks);
  if (std::strcmp(name, "help") == 0) return options.help = true, "";
  std::uint64_t repeat = 0;
  std::string wrong = read_number(name, text, 1, kMostRepeats, repeat);
  options.repeat = static_cast<int>(repeat);
  return wrong;
}

std::string missing(const Options& options) {
  if (options.m == 0) return "option -M (rows of A) is missing";
  if (options.k == 0) return "option -K (columns of A, rows of B) is missing";
  if (options.n == 0) return "option -N (columns of B) is missing";
  return {};
}

}  // namespace

std::string parse_options(int argc, char* const* argv, Options& options) {
  const option known[] = {{"M", required_argument, nullptr, 1},
                          {"K", required_argument, nullptr, 1},
                          {"N", required_argument, nullptr, 1},
                          {"type", required_argument, nullptr, 1},
                          {"seed", required_argument, nullptr, 1},
                          {"repeat", required_argument, nullptr, 1},
                          {"blas", required_argument, nullptr, 1},
                          {"send", required_argument, nullptr, 1},
                          {"blocks", required_argument, nullptr, 1},
                          {"help", no_argument, nullptr, 1},
                          {nullptr, 0, nullptr, 0}};
  optind = 0;  // glibc: start over, also after an earlier call
  opterr = 0;
  for (;;) {
    int index = -1;
    int found = getopt_long_only(argc, argv, "+:", known, &index);
    if (found == -1) break;
    if (found == ':') return std::string("option ") + argv[optind - 1] + " needs a value";
    if (found != 1 || index < 0) return std::string("unknown option ") + argv[optind - 1];
    std::string wrong = read_option(known[index].name, optarg, options);
    if (!wrong.empty()) return wrong;
  }
  if (options.help) return {};
  if (optind < argc) return std::string("unexpected argument \"") + argv[optind] + "\"";
  return missing(options);
}

}  // namespace matmul
