// SPDX-License-Identifier: Apache-2.0
// Which members may copy to each other, by their tags: those with the same tag always, others when
// a rule "tagA:OP:tagB" allows it. The OP makes no difference here.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/environment.h"
#include "core/status.h"

namespace memspan::inline fabric {

// A value.
struct TagRules {
  std::string tag = {};  // of this process; empty: the common one
  std::vector<std::pair<std::string, std::string>> links = {};

  bool allows(std::string_view one, std::string_view other) const {
    return one == other || std::any_of(links.begin(), links.end(), [&](const auto& way) {
             return (way.first == one && way.second == other) ||
                    (way.first == other && way.second == one);
           });
  }
};

// `what` names the text in the message of a failure.
inline Status check_tag(std::string_view what, std::string_view text) {
  constexpr std::size_t kMostTagBytes = 30;
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  if (!text.empty() && text.size() <= kMostTagBytes &&
      text.find_first_not_of(kAllowed) == std::string_view::npos)
    return Status::ok();
  return {Code::kInvalidArgument,
          fmt::format("invalid param, {} \"{}\" is not a tag; allowed are 1 to {} of [a-zA-Z0-9_]",
                      what, text, kMostTagBytes)};
}

// An entry "tagA:OP:tagB" of the links: the two tags.
inline Result<std::pair<std::string, std::string>> parse_link_type(std::string_view entry) {
  constexpr std::array<std::string_view, 6> kOperations{"DEVICE_SDMA", "DEVICE_RDMA", "HOST_RDMA",
                                                        "HOST_TCP",    "HOST_URMA",   "DEVICE_MTE"};
  const std::size_t first = entry.find(':');
  const std::size_t second = first == std::string_view::npos ? first : entry.find(':', first + 1);
  if (second == std::string_view::npos)
    return Status(
        Code::kInvalidArgument,
        fmt::format("invalid param, tagOpInfo has \"{}\"; allowed is tagA:OP:tagB", entry));
  const std::string_view one = entry.substr(0, first);
  const std::string_view operation = entry.substr(first + 1, second - first - 1);
  const std::string_view other = entry.substr(second + 1);
  MEMSPAN_PASS(check_tag("tagOpInfo's", one));
  MEMSPAN_PASS(check_tag("tagOpInfo's", other));
  if (std::find(kOperations.begin(), kOperations.end(), operation) == kOperations.end())
    return Status(Code::kInvalidArgument,
                  fmt::format("invalid param, tagOpInfo has the operation \"{}\"; allowed are {}",
                              operation, fmt::join(kOperations, ", ")));
  return std::pair(std::string(one), std::string(other));
}

// `tag`: empty, or 1 to 30 of [a-zA-Z0-9_]; `links`: "tagA:OP:tagB,..." of DEVICE_SDMA,
// DEVICE_RDMA, HOST_RDMA, HOST_TCP, HOST_URMA and DEVICE_MTE. kInvalidArgument says what is wrong.
inline Result<TagRules> parse_tags(std::string_view tag, std::string_view links) {
  TagRules rules;
  if (!tag.empty()) MEMSPAN_PASS(check_tag("tag", tag));
  rules.tag = tag;
  if (links.empty()) return rules;
  for (const std::string_view link : split(links, ',')) {
    MEMSPAN_PASS_ASSIGN(auto way, parse_link_type(link));
    rules.links.push_back(std::move(way));
  }
  return rules;
}

}  // namespace memspan::inline fabric
