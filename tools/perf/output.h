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

// Whether write_all() will be able to write all files, for before anything is measured.
// kInvalidArgument names the option and its file; kNotFound without rsvg-convert, where PNGs are
// wanted.
Status check_outputs(const Options& options);
// Fails as check_outputs() does, if its result has changed since.
Status write_all(const Options& options, const Measured& measured);

}  // namespace memspan::perf
