// SPDX-License-Identifier: Apache-2.0
// Launchers of other vendors, recognised by the variables that they set.
//
// Their processes know that they are some of many, but we do not speak with their servers (PMI,
// PMIx), so the processes could not find each other. Each alone would be a job of one.
#pragma once

#include "core/status.h"

namespace memspan {

// kNotSupported when the environment is that of one of several processes of another launcher, and
// where the launcher does not tell how many they are. The message says whose launcher it is, and
// how to start instead. Call it when nothing said how the processes meet.
Status check_no_foreign_launcher();

}  // namespace memspan
