// SPDX-License-Identifier: Apache-2.0
// Whether what clients saw of one key can be explained by one order of their operations, in which
// each happens at one moment between its begin and its end (Wing and Gong's search, which never
// enters the same situation twice).
#pragma once

#include <vector>

#include "simulation/key_model.h"

namespace memspan::simulation {

// An operation without an answer may be left out. The key is not there in the beginning.
bool is_linearizable(std::vector<Operation> history);

}  // namespace memspan::simulation
