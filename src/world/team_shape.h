// SPDX-License-Identifier: Apache-2.0
// Which peers a team has: an arithmetic progression, or, after some have died, a list.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

namespace memspan {

// A value. Member i of size has peer number start + i * stride (stride may be negative; 0 for
// one), or list[i] where there is a list.
struct TeamShape {
  int start = 0;
  int stride = 1;
  int size = 1;
  std::shared_ptr<const std::vector<int>> list = nullptr;

  static TeamShape of(std::vector<int> peers) {
    const auto size = static_cast<int>(peers.size());
    return {peers[0], 0, size, std::make_shared<const std::vector<int>>(std::move(peers))};
  }

  int peer_of(int member) const {
    return list == nullptr ? start + member * stride : (*list)[static_cast<std::size_t>(member)];
  }
  // -1 when `peer` is not a member.
  int member_of(int peer) const {
    if (list != nullptr) {
      const auto found = std::find(list->begin(), list->end(), peer);
      return found == list->end() ? -1 : static_cast<int>(found - list->begin());
    }
    if (stride == 0) return peer == start ? 0 : -1;
    int distance = peer - start;
    int member = distance / stride;
    return distance % stride == 0 && member >= 0 && member < size ? member : -1;
  }
  // The part of it that `part`, which counts its members, names.
  TeamShape part(const TeamShape& part) const {
    if (list == nullptr) return {peer_of(part.start), part.stride * stride, part.size};
    std::vector<int> peers;
    peers.reserve(static_cast<std::size_t>(part.size));
    for (int member = 0; member < part.size; ++member)
      peers.push_back(peer_of(part.peer_of(member)));
    return of(std::move(peers));
  }
  bool operator==(const TeamShape& other) const {
    if (size != other.size) return false;
    for (int member = 0; member < size; ++member)
      if (peer_of(member) != other.peer_of(member)) return false;
    return true;
  }
};

}  // namespace memspan
