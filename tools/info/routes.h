// SPDX-License-Identifier: Apache-2.0
// memspan-info --routes: for each pair of processes of a job, the transport between them.
#pragma once

#include "core/status.h"

namespace memspan {

enum class RoutesFormat { kText, kJson };

// Joins the job of this process, or makes a job of one. PE 0 prints.
Status show_routes(RoutesFormat format);

}  // namespace memspan
