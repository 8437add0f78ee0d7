// SPDX-License-Identifier: Apache-2.0
// The events that PE 0 of a job reports, a JSON object a line:
//
//   {"event": "start", "library": PATH, "pes": 2, "one_host": true, "baselines": {...}}
//   {"event": "row", "test": "put", "bytes": 8, "batch": 100, "ns": [...]}
//   {"event": "end"}
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "json/fields.h"
#include "perf/baselines.h"

namespace memspan::perf {

// A value.
struct Start {
  std::string library;  // the file of libmemspan.so
  int pes = 0;
  bool one_host = true;
  Baselines baselines = {};
};

// A value: one test at one size.
struct Row {
  std::string test;
  std::size_t bytes = 0;   // 0: of no size
  std::size_t batch = 1;   // operations of a sample
  std::vector<double> ns;  // of one operation, a number a sample
};

template <typename Field, json::Of<Start> Thing>
void fields(Field& field, Thing& start) {
  field("library", start.library);
  field("pes", start.pes);
  field("one_host", start.one_host);
  field("baselines", start.baselines);
}

template <typename Field, json::Of<Row> Thing>
void fields(Field& field, Thing& row) {
  field("test", row.test);
  field("bytes", row.bytes);
  field("batch", row.batch);
  field("ns", row.ns);
}

template <typename Event>
json::Value to_event(const char* kind, const Event& event) {
  json::Value value = json::Value().set("event", kind);
  const json::Value members = json::written(event);
  for (const auto& [name, member] : members.object()) value.set(name, member);
  return value;
}

}  // namespace memspan::perf
