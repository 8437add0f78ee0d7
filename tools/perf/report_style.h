// SPDX-License-Identifier: Apache-2.0
// What every report has: its style sheet, and how the figures were made.
#pragma once

#include <string_view>

namespace memspan::perf {

inline constexpr std::string_view kReportStyle = R"(
:root{--ink:#1f2430;--soft:#5b6472;--rule:#e2e5ea;--paper:#f6f7f9;--sheet:#ffffff;--here:#2563eb;--good:#15803d;--bad:#b91c1c}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ef;--soft:#9aa3b2;--rule:#2b313c;--paper:#0f1216;--sheet:#171b22;--here:#6ea8fe;--good:#4ade80;--bad:#f87171}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1360px;margin:0 auto;padding:28px 24px 64px}
h1{font-size:26px;margin:0}h2{font-size:20px;margin:36px 0 12px;padding-top:8px;border-top:1px solid var(--rule)}
h3{font-size:15px;margin:18px 0 8px;color:var(--soft);font-weight:600}h3::first-letter{text-transform:uppercase}
header p{margin:2px 0 14px}.soft{color:var(--soft);font-weight:400}
nav{display:flex;flex-wrap:wrap;gap:18px;margin-bottom:18px}a{color:var(--here);text-decoration:none}a:hover{text-decoration:underline}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(190px,1fr));gap:12px}
.card{background:var(--sheet);border:1px solid var(--rule);border-radius:10px;padding:12px 14px}
.card .what,.card .beside{color:var(--soft);font-size:13px}.card .value{font-size:24px;font-weight:650;font-variant-numeric:tabular-nums}
.plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(560px,100%),1fr));gap:16px}
figure{margin:0;background:var(--sheet);border:1px solid var(--rule);border-radius:10px;padding:8px}figure svg{display:block;width:100%;height:auto}
details{background:var(--sheet);border:1px solid var(--rule);border-radius:10px;margin:0 0 12px;padding:0 14px}
summary{cursor:pointer;padding:10px 0;font-weight:600}summary .soft{margin-left:8px;font-size:13px}
.scroll{overflow-x:auto;max-height:460px;overflow-y:auto;margin-bottom:12px}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:14px}
.figures{width:100%}.figures th,.figures td{padding:4px 14px 4px 0;text-align:right;white-space:nowrap;border-bottom:1px solid var(--rule)}
.figures th{position:sticky;top:0;background:var(--sheet);color:var(--soft);font-weight:600}
.figures th:first-child,.figures td:first-child{text-align:left}
.facts{width:100%;background:var(--sheet);border:1px solid var(--rule);border-radius:10px;border-collapse:separate;border-spacing:0}
.facts th,.facts td{padding:6px 14px;text-align:left;vertical-align:top;border-bottom:1px solid var(--rule);overflow-wrap:anywhere}
.facts tr:last-child th,.facts tr:last-child td{border-bottom:0}.facts th{color:var(--soft);font-weight:500;width:46%}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(460px,100%),1fr));gap:16px}
.better{color:var(--good);font-weight:600}.worse{color:var(--bad);font-weight:600}
code{font-size:13px;overflow-wrap:anywhere}
@media print{body{background:#fff}.scroll{max-height:none}details,figure{break-inside:avoid}}
)";

inline constexpr std::string_view kReportMethod = R"(<h2 id="method">Method</h2>
<p>Each figure is the time of one operation. A sample is a batch of them, as short as the clock allows: reading
the clock costs at most a fiftieth of a sample. Where a batch has more than one operation, percentiles are those of
batches, which hide what happens to one operation in many. Operations go from PE 0 to the last PE; of
collectives a sample is the slowest PE's, after a barrier. Memory is warm: the same bytes are moved again and again.
Samples of all rounds count together; each round is a job of its own.</p>
<p>What the machine does without memspan is measured by PE 0 of each job before the tests, while the others wait: a
memcpy of the C library from ordinary memory into symmetric memory of one process, and a cache line that two processes hand over
between the cores of PE 0 and the last PE; beside operations whose bytes another PE waits for, the longer of the two. Neither is a limit: memspan copies large blocks past the caches, where the C library
may not, and a transfer may find in a cache what the other way has to fetch.</p>
)";

}  // namespace memspan::perf
