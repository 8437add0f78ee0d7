// SPDX-License-Identifier: Apache-2.0
#include "info/print.h"

#include <fmt/format.h>

#include <algorithm>

namespace memspan::info {
namespace {

constexpr std::size_t kGroupColumn = 12;
constexpr std::size_t kNameColumn = 10;

std::string readable(std::string key) {
  std::replace(key.begin(), key.end(), '_', ' ');
  return key;
}

std::string mark(Judgement judgement) {
  return judgement == Judgement::kGood ? "" : fmt::format("[{}] ", judgement_name(judgement));
}

std::size_t count(const Findings& findings, Judgement judgement) {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(),
                    [&](const Finding& one) { return one.judgement == judgement; }));
}

std::string counted(std::size_t number, std::string_view what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

std::string verdict_line(const Findings& findings) {
  const std::size_t problems = count(findings, Judgement::kProblem);
  const std::size_t notes = count(findings, Judgement::kNote);
  if (problems != 0)
    return fmt::format("verdict: {}, {}; fix those marked \"problem\"",
                       counted(problems, "problem"), counted(notes, "note"));
  if (notes != 0)
    return fmt::format("verdict: good, with {}; everything works, what they name would be better",
                       counted(notes, "note"));
  return "verdict: good";
}

json::Value to_value(const Finding& finding) {
  json::Value value;
  value.set("text", finding.text).set("value", finding.value);
  value.set("judgement", judgement_name(finding.judgement));
  if (finding.judgement != Judgement::kGood)
    value.set("wanted", finding.wanted).set("remedy", finding.remedy);
  return value;
}

}  // namespace

std::string to_text(const Findings& findings) {
  std::string text;
  std::string_view group;
  for (const Finding& finding : findings) {
    text += fmt::format("{:<{}} {}{}: {}\n", group == finding.group ? "" : finding.group,
                        kGroupColumn, mark(finding.judgement), readable(finding.key), finding.text);
    group = finding.group;
  }
  return text;
}

std::string to_diagnosis(const Findings& findings) {
  std::string text;
  for (const Judgement judgement : {Judgement::kProblem, Judgement::kNote})
    for (const Finding& finding : findings)
      if (finding.judgement == judgement)
        text += fmt::format("{:<{}}{} {}: {}\n{:{}}wanted: {}\n{:{}}do: {}\n",
                            judgement_name(judgement), kNameColumn, finding.group,
                            readable(finding.key), finding.text, "", kNameColumn, finding.wanted,
                            "", kNameColumn, finding.remedy);
  return text + verdict_line(findings) + "\n";
}

std::string to_json(const Findings& findings) {
  json::Value all;
  all.set("version", MEMSPAN_VERSION).set("verdict", judgement_name(verdict_of(findings)));
  for (std::size_t at = 0; at < findings.size();) {
    const std::string& group = findings[at].group;
    json::Value members;
    for (; at < findings.size() && findings[at].group == group; ++at)
      members.set(findings[at].key, to_value(findings[at]));
    all.set(group, std::move(members));
  }
  return all.pretty() + "\n";
}

}  // namespace memspan::info
