// SPDX-License-Identifier: Apache-2.0
// What a source in AscendC has that is no C++, told by C++ for the host device.
#pragma once

#include <string>
#include <string_view>

namespace memspan {

// The preprocessed text with
//   kernel<<<blocks, l2, stream>>>(arguments)  as a launch,
//   casts to __ubuf__ pointers                 as addresses in the block's buffer,
// and without the word __ubuf__ elsewhere. Lines stay lines. <kernel_operator.h> has what it calls.
// Text that is no such source comes back as it is; one that is wrong, too, for the compiler to say.
std::string to_cxx(std::string_view text);

}  // namespace memspan
