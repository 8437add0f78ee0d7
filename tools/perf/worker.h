// SPDX-License-Identifier: Apache-2.0
// A process of a job that measures. PE 0 reports its results (events.h).
#pragma once

#include <functional>

#include "json/json.h"
#include "perf/plan.h"

namespace memspan::perf {

using Tell = std::function<Status(const json::Value&)>;

// Joins the job, measures what the plan says, and leaves. `tell` is called on PE 0; when it fails
// at the start or the end, the job does. A failure names the test; the job has then been ended,
// unless this is its last step.
Status work(const Plan& plan, const Tell& tell);

}  // namespace memspan::perf
