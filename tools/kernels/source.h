// SPDX-License-Identifier: Apache-2.0
// Translates what is not C++ in an AscendC source to C++, for the host device.
#pragma once

#include <string>
#include <string_view>

namespace memspan {

// The preprocessed text with
//   kernel<<<blocks, l2, stream>>>(arguments)  as a launch,
//   casts to __ubuf__ pointers                 as addresses in the block's buffer,
// and without the word __ubuf__ elsewhere. Lines keep their numbers. <kernel_operator.h> has its
// calls. Other text comes back unchanged, and so do errors, for the compiler to report.
std::string to_cxx(std::string_view text);

}  // namespace memspan
