// SPDX-License-Identifier: Apache-2.0
#include "transport/message/faults.h"

#include <fmt/format.h>

#include <random>

#include "core/environment.h"
#include "core/random.h"

namespace memspan::inline transport {
namespace {

constexpr const char* kVariable = "MEMSPAN_FAULTS";
constexpr const char* kAllowed =
    "delay=TIME, reorder=TIME, cut-after=FRAMES and silent-after=FRAMES with commas between them; "
    "a time is a whole number with us, ms or s";

Status wrong(std::string_view text) {
  return {Code::kInvalidArgument,
          fmt::format("{} has \"{}\"; allowed are {}", kVariable, text, kAllowed)};
}

Status set(Faults& faults, std::string_view one) {
  const std::size_t equals = std::min(one.find('='), one.size());
  const std::string_view name = one.substr(0, equals);
  const std::string_view value = one.substr(std::min(equals + 1, one.size()));
  if (name == "delay" || name == "reorder") {
    const auto time = parse_time(kVariable, value);
    if (!time.is_ok()) return wrong(one);
    (name == "delay" ? faults.delay : faults.reorder) = *time;
    return Status::ok();
  }
  if (name != "cut-after" && name != "silent-after") return wrong(one);
  const auto frames = parse_integer(kVariable, value, 1, INT64_MAX);
  if (!frames.is_ok()) return wrong(one);
  (name == "cut-after" ? faults.cut_after : faults.silent_after) =
      static_cast<std::uint64_t>(*frames);
  return Status::ok();
}

}  // namespace

Duration Faults::hold() const {
  if (reorder == Duration{}) return delay;
  thread_local std::minstd_rand dice(static_cast<std::minstd_rand::result_type>(random_number()));
  return delay + Duration(std::uniform_int_distribution<Duration::rep>(0, reorder.count())(dice));
}

Result<std::shared_ptr<Faults>> Faults::parse(std::string_view text) {
  auto faults = std::make_shared<Faults>();
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    MEMSPAN_PASS(set(*faults, text.substr(0, comma)));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return faults;
}

Result<std::shared_ptr<Faults>> Faults::from_environment() {
  const std::string text = environment_or(kVariable, "");
  if (text.empty()) return std::shared_ptr<Faults>();
  return parse(text);
}

}  // namespace memspan::inline transport
