// SPDX-License-Identifier: Apache-2.0
// Whether the checker tells right histories from wrong ones: without that, a run without a
// complaint would mean nothing.
#pragma once

#include <string>

namespace memspan::simulation {

// Empty, or what the checker got wrong.
std::string test_the_checker();

}  // namespace memspan::simulation
