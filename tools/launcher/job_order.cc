// SPDX-License-Identifier: Apache-2.0
#include "launcher/job_order.h"

#include "core/bytes.h"

namespace memspan::launcher {
namespace {

void write(ByteWriter& out, const std::vector<std::string>& texts) {
  out.u32(static_cast<std::uint32_t>(texts.size()));
  for (const std::string& text : texts) out.text(text);
}

std::vector<std::string> read_texts(ByteReader& in) {
  std::vector<std::string> texts;
  for (std::uint32_t left = in.u32(); left > 0 && in.is_ok(); --left) texts.emplace_back(in.text());
  return texts;
}

void write(ByteWriter& out, const Program& program) {
  out.u32(static_cast<std::uint32_t>(program.processes));
  write(out, program.environment);
  out.text(program.folder);
  write(out, program.command);
}

Program read_program(ByteReader& in) {
  Program program;
  program.processes = static_cast<int>(in.u32());
  program.environment = read_texts(in);
  program.folder = in.text();
  program.command = read_texts(in);
  return program;
}

}  // namespace

std::string JobOrder::encode() const {
  ByteWriter out;
  out.u32(static_cast<std::uint32_t>(options.programs.size()));
  for (const Program& program : options.programs) write(out, program);
  out.u8(static_cast<std::uint8_t>(options.buffering));
  out.u8(static_cast<std::uint8_t>(options.label));
  out.u8(static_cast<std::uint8_t>(options.binding));
  out.u32(static_cast<std::uint32_t>(options.hosts.size()));
  for (const int processes : options.hosts) out.u32(static_cast<std::uint32_t>(processes));
  write(out, options.host_names);
  out.u32(static_cast<std::uint32_t>(part.host));
  out.text(part.store_url);
  out.text(part.secret);
  out.text(part.master);
  out.u32(static_cast<std::uint32_t>(part.master_port));
  out.i64(silence.count());
  out.text(folder);
  write(out, environment);
  return out.take();
}

Result<JobOrder> JobOrder::decode(std::string_view text) {
  ByteReader in(text);
  JobOrder order;
  for (std::uint32_t left = in.u32(); left > 0 && in.is_ok(); --left)
    order.options.programs.push_back(read_program(in));
  order.options.buffering = static_cast<Buffering>(in.u8());
  order.options.label = static_cast<Label>(in.u8());
  order.options.binding = static_cast<Binding>(in.u8());
  for (std::uint32_t left = in.u32(); left > 0 && in.is_ok(); --left)
    order.options.hosts.push_back(static_cast<int>(in.u32()));
  order.options.host_names = read_texts(in);
  order.part.host = static_cast<int>(in.u32());
  order.part.store_url = in.text();
  order.part.secret = in.text();
  order.part.master = in.text();
  order.part.master_port = static_cast<int>(in.u32());
  order.silence = Duration(in.i64());
  order.folder = in.text();
  order.environment = read_texts(in);
  const std::size_t hosts = order.options.hosts.size();
  if (!in.is_finished() || order.options.host_names.size() != hosts || order.part.host < 0 ||
      static_cast<std::size_t>(order.part.host) >= hosts)
    return Status(Code::kInvalidArgument, "the job that was sent cannot be read");
  return order;
}

}  // namespace memspan::launcher
