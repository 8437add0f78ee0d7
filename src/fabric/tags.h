// SPDX-License-Identifier: Apache-2.0
// Which members may copy to each other, by their tags: those with the same tag always, others when
// a rule "tagA:OP:tagB" allows it. The OP makes no difference here.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"

namespace memspan {

// A value.
struct TagRules {
  std::string tag = {};  // of this process; empty: the common one
  std::vector<std::pair<std::string, std::string>> links = {};

  bool allows(std::string_view one, std::string_view other) const;
};

// `tag`: empty, or 1 to 30 of [a-zA-Z0-9_]; `links`: "tagA:OP:tagB,..." of DEVICE_SDMA,
// DEVICE_RDMA, HOST_RDMA, HOST_TCP, HOST_URMA and DEVICE_MTE. kInvalidArgument says what is wrong.
Result<TagRules> parse_tags(std::string_view tag, std::string_view links);

}  // namespace memspan
