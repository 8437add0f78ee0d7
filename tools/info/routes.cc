// SPDX-License-Identifier: Apache-2.0
#include "info/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "command_line/print.h"
#include "json/json.h"
#include "world/membership.h"
#include "world/world.h"

namespace memspan {
namespace {

constexpr auto kJoinLimit = std::chrono::seconds(60);
constexpr std::size_t kHeapBytes = std::size_t{1} << 20;
constexpr std::size_t kColumn = 9;

// "own mapped message", and why, each on a line of its own.
std::string own_row(const World& world) {
  std::string row;
  std::set<std::string> reasons;
  for (int peer = 0; peer < world.size(); ++peer) {
    const TransportChoice& transport = world.transport_to(peer);
    row += fmt::format("{:<{}}", transport.name, kColumn);
    if (peer != world.rank()) reasons.insert(transport.why);
  }
  row.erase(row.find_last_not_of(' ') + 1);
  for (const std::string& reason : reasons) row += "\n" + reason;
  return row;
}

// Without the blanks at its end.
std::string line_of(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string to_text(const World& world, const std::vector<std::string>& rows) {
  const NodeMap& nodes = world.nodes();
  std::size_t width = sizeof "host";
  for (int node = 0; node < nodes.count(); ++node)
    width = std::max(width, nodes.host_of_node(node).size() + 1);
  std::string text =
      fmt::format("{} PE{} on {} node{}\n", world.size(), world.size() == 1 ? "" : "s",
                  nodes.count(), nodes.is_one() ? "" : "s");
  std::string head = fmt::format("{:<4}{:<{}} ", "PE", "host", width);
  for (int peer = 0; peer < world.size(); ++peer) head += fmt::format("{:<{}}", peer, kColumn);
  text += line_of(head);
  std::set<std::string> reasons;
  for (std::size_t peer = 0; peer < rows.size(); ++peer) {
    const std::string& row = rows[peer];
    const std::string& host = nodes.host_of(static_cast<int>(peer));
    text += line_of(fmt::format("{:>2}  {:<{}} {}", peer, host.empty() ? "-" : host, width,
                                row.substr(0, row.find('\n'))));
    for (std::size_t at = row.find('\n'); at != std::string::npos; at = row.find('\n', at + 1))
      reasons.insert(row.substr(at + 1, row.find('\n', at + 1) - at - 1));
  }
  for (const std::string& reason : reasons) text += line_of(reason);
  return text;
}

// {"pes": [{"pe": 0, "host": "a", "routes": ["own", "mapped"]}], "nodes": 1, "reasons": [...]}
std::string to_json(const World& world, const std::vector<std::string>& rows) {
  json::Value pes{json::Value::Array()};
  std::set<std::string> reasons;
  for (std::size_t peer = 0; peer < rows.size(); ++peer) {
    std::istringstream lines(rows[peer]);
    std::string line;
    std::getline(lines, line);
    json::Value routes{json::Value::Array()};
    std::istringstream words(line);
    for (std::string word; words >> word;) routes.add(word);
    while (std::getline(lines, line)) reasons.insert(line);
    pes.add(json::Value()
                .set("pe", peer)
                .set("host", world.nodes().host_of(static_cast<int>(peer)))
                .set("routes", std::move(routes)));
  }
  json::Value texts{json::Value::Array()};
  for (const std::string& reason : reasons) texts.add(reason);
  return json::Value()
             .set("pes", std::move(pes))
             .set("nodes", world.nodes().count())
             .set("reasons", std::move(texts))
             .pretty() +
         "\n";
}

}  // namespace

Status show_routes(RoutesFormat format) {
  MEMSPAN_TRY_ASSIGN(Membership membership, join_from_environment(kJoinLimit, {}),
                     "joining the job");
  const Exchange exchange = membership.exchange;
  MEMSPAN_TRY_ASSIGN(std::unique_ptr<World> world,
                     World::create(std::move(membership), {kHeapBytes}, StaticVariables::kOwn),
                     "connecting");
  std::vector<std::string> rows{own_row(*world)};
  if (world->size() > 1) {
    MEMSPAN_TRY_ASSIGN(rows, agree(exchange, rows[0], "PE"), "collecting the routes");
  }
  Status printed;
  if (world->rank() == 0)
    printed = command_line::print_all(format == RoutesFormat::kJson ? to_json(*world, rows)
                                                                    : to_text(*world, rows));
  MEMSPAN_TRY(world->end("memspan-info", EndKind::kFinalize), "leaving");
  world->leave();
  MEMSPAN_PASS(leave_rendezvous(world->membership(), kJoinLimit));
  return printed;
}

}  // namespace memspan
