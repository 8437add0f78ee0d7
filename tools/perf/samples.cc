// SPDX-License-Identifier: Apache-2.0
#include "perf/samples.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace memspan::perf {

double percentile(const std::vector<double>& sorted, double share) {
  const auto size = static_cast<double>(sorted.size());
  const double rank = std::ceil(share * size - 1e-9);
  const auto at = static_cast<std::size_t>(std::clamp(rank, 1.0, size)) - 1;
  return sorted[at];
}

bool Summary::has(double share) const {
  return static_cast<double>(samples) * (1 - share) >= 1 - 1e-9;
}

Summary summarize(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  return {.samples = samples.size(),
          .least = samples.front(),
          .p50 = percentile(samples, 0.5),
          .p90 = percentile(samples, 0.9),
          .p99 = percentile(samples, 0.99),
          .p999 = percentile(samples, 0.999),
          .most = samples.back(),
          .mean = std::accumulate(samples.begin(), samples.end(), 0.0) /
                  static_cast<double>(samples.size())};
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace memspan::perf
