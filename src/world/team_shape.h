// SPDX-License-Identifier: Apache-2.0
// Which peers a team has: an arithmetic progression.
#pragma once

namespace memspan {

// A value. Member i of size have peer number start + i * stride (stride may be negative; 0 for
// one).
struct TeamShape {
  int start = 0;
  int stride = 1;
  int size = 1;

  int peer_of(int member) const { return start + member * stride; }
  // -1 when `peer` is not a member.
  int member_of(int peer) const {
    if (stride == 0) return peer == start ? 0 : -1;
    int distance = peer - start;
    int member = distance / stride;
    return distance % stride == 0 && member >= 0 && member < size ? member : -1;
  }
  bool operator==(const TeamShape&) const = default;
};

}  // namespace memspan
