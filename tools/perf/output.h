// SPDX-License-Identifier: Apache-2.0
// What comes of a measurement: tables or JSON on stdout, and files.
#pragma once

#include <optional>

#include "perf/options.h"
#include "perf/report.h"

namespace memspan::perf {

// A value.
struct Measured {
  Run here;
  std::optional<Compared> compared;
};

// kNotFound without rsvg-convert, where PNGs are wanted.
Status write_all(const Options& options, const Measured& measured);

}  // namespace memspan::perf
