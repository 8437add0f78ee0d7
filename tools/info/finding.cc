// SPDX-License-Identifier: Apache-2.0
#include "info/finding.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace memspan::info {

std::string_view judgement_name(Judgement judgement) {
  switch (judgement) {
    case Judgement::kGood:
      return "good";
    case Judgement::kNote:
      return "note";
    case Judgement::kProblem:
      break;
  }
  return "problem";
}

Judgement verdict_of(const Findings& findings) {
  Judgement worst = Judgement::kGood;
  for (const Finding& finding : findings) worst = std::max(worst, finding.judgement);
  return worst;
}

Findings not_good(const Findings& findings) {
  Findings some;
  for (const Finding& finding : findings)
    if (finding.judgement != Judgement::kGood) some.push_back(finding);
  return some;
}

void append(Findings& all, Findings more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}

}  // namespace memspan::info
