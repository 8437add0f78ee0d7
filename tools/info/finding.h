// SPDX-License-Identifier: Apache-2.0
// What memspan-info finds out, as data: what gathers makes findings, what prints reads them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/json.h"

namespace memspan::info {

enum class Judgement {
  kGood,
  kNote,     // works; something would be better, or a part of memspan is not to be had
  kProblem,  // something that memspan promises does not work here
};

// "good", "note", "problem".
std::string_view judgement_name(Judgement judgement);

// A value. `group` and `key` are what --json calls it, and never change their meaning.
struct Finding {
  std::string group = {};  // "limits"
  std::string key = {};    // "descriptors"
  std::string text = {};   // for people: "1024 open files"
  json::Value value = {};  // for programs: 1024; null: there is nothing but the text
  Judgement judgement = Judgement::kGood;
  std::string wanted = {};  // "256 open files at least"; only of what is not good
  std::string remedy = {};  // the command that fixes it: "ulimit -n 1048576"
};

using Findings = std::vector<Finding>;

// The worst that is in them.
Judgement verdict_of(const Findings& findings);

// Those that are a note or a problem.
Findings not_good(const Findings& findings);
void append(Findings& all, Findings more);

// This one with a judgement that is not good.
inline Finding judged(Finding finding, Judgement judgement, std::string wanted,
                      std::string remedy) {
  finding.judgement = judgement;
  finding.wanted = std::move(wanted);
  finding.remedy = std::move(remedy);
  return finding;
}

}  // namespace memspan::info
