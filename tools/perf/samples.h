// SPDX-License-Identifier: Apache-2.0
// Percentiles of the samples of a row.
#pragma once

#include <cstddef>
#include <vector>

#include "json/fields.h"

namespace memspan::perf {

// A value: nanoseconds of one operation.
struct Summary {
  std::size_t samples = 0;
  double least = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double p999 = 0;
  double most = 0;
  double mean = 0;

  // Whether there are samples enough for the percentile of this share to be another one than the
  // longest: 100 for 0.99.
  bool has(double share) const;
};

// The value below or at which this share of the samples lies: the sample at rank ceil(share * n).
// `sorted` is not empty.
double percentile(const std::vector<double>& sorted, double share);
// Zeros of no samples.
Summary summarize(std::vector<double> samples);
double median(std::vector<double> values);

template <typename Field, json::Of<Summary> Thing>
void fields(Field& field, Thing& summary) {
  field("samples", summary.samples);
  field("min", summary.least);
  field("p50", summary.p50);
  field("p90", summary.p90);
  field("p99", summary.p99);
  field("p99.9", summary.p999);
  field("max", summary.most);
  field("mean", summary.mean);
}

}  // namespace memspan::perf
