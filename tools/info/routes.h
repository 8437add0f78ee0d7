// SPDX-License-Identifier: Apache-2.0
// memspan-info --routes: for each pair of processes of a job, the transport between them.
#pragma once

#include "core/status.h"

namespace memspan {

enum class RoutesFormat { kText, kJson };

// Joins the job of this process, of one where there is none. PE 0 prints.
Status show_routes(RoutesFormat format);

}  // namespace memspan
