// SPDX-License-Identifier: Apache-2.0
#include "info/finding.h"

#include <algorithm>

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

}  // namespace memspan::info
