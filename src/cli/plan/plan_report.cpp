// Sizes for people, bytes for programs.
#include "cli/plan/plan_report.h"

#include <fmt/format.h>

#include "base/printable.h"
#include "base/quantities.h"
#include "json/value.h"

namespace cairn::cli {

namespace {

std::string group_text(const memory::GroupUsage& group) {
  const std::string window = group.window > 0 ? fmt::format(" of {}", group.window) : "";
  return fmt::format("{}{} {}", memory::name(group.kind), window, show_bytes(group.bytes));
}

std::string types_text(const gguf::Summary& summary) {
  std::string text;
  constexpr size_t kShown = 3;
  for (size_t at = 0; at < std::min(summary.types.size(), kShown); ++at) {
    text += fmt::format("{}{}", at > 0 ? ", " : "", gguf::type_name(summary.types[at].type_id));
  }
  return text;
}

std::string speed_text(double per_second) {
  return per_second > 0 ? fmt::format("{:.1f}", per_second) : "";
}

std::string head_lines(const PlanReport& report) {
  std::string text = fmt::format("{}: {}, {:.2f} G weights, {} ({})\n", printable(report.model),
                                 printable(report.summary.architecture),
                                 double(report.summary.weight_count) * 1e-9,
                                 show_bytes(report.file_bytes), types_text(report.summary));
  if (!report.note.empty()) text += fmt::format("note: {}\n", printable(report.note));
  text += fmt::format("this machine: {} threads, {}", report.thread_count, report.isa);
  if (report.is_measured) {
    text += fmt::format(", reads {:.1f} GB/s", report.limits.read_bytes_per_second * 1e-9);
  }
  if (report.room.bytes > 0) {
    text += fmt::format(", {} of memory free ({})", show_bytes(report.room.bytes),
                        report.room.limited_by);
  }
  return text + "\n\n";
}

std::string verdict(const PlanReport& report) {
  if (report.room.bytes == 0) return "";
  if (!report.fits(report.bytes())) {
    return fmt::format(", of {}: does not fit", show_bytes(report.room.bytes));
  }
  // Of what is left conversations get half, where nothing else is said.
  const size_t left = report.room.bytes - report.plan.fixed.total();
  const size_t wanted = report.plan.conversations_bytes(report.conversations);
  const std::string budget =
      wanted > left / 2 ? fmt::format(" with --memory-budget {}M", (wanted >> 20) + 1) : "";
  return fmt::format(", of {}: fits{}", show_bytes(report.room.bytes), budget);
}

std::string memory_lines(const PlanReport& report) {
  const measure::ModelPlan& plan = report.plan;
  const auto line = [](const std::string& what, size_t bytes, const std::string& more = "") {
    return fmt::format("{:<42}{:>12}{}\n", what, show_bytes(bytes), more);
  };
  std::string text = line("weights", plan.fixed.weights);
  text += line("steps", plan.fixed.plans + plan.fixed.workspace);
  if (plan.makes_text) {
    std::string parts;
    for (const memory::GroupUsage& group : plan.groups) {
      if (group.bytes > 0) parts += (parts.empty() ? "  " : ", ") + group_text(group);
    }
    text += line(fmt::format("a conversation of {} tokens", plan.context_tokens),
                 plan.conversation_bytes, parts);
    if (report.conversations > 1) {
      text += line(fmt::format("{} conversations", report.conversations),
                   plan.conversations_bytes(report.conversations));
    }
  }
  text += line("in all", report.bytes(), verdict(report));
  if (plan.place_bytes > 0) {
    text += line("each further place to go back to", plan.place_bytes);
  }
  return text;
}

std::string length_lines(const PlanReport& report) {
  if (report.lengths.empty()) return "";
  const bool has_many = report.conversations > 1;
  std::string text = fmt::format("\n{:>8}{:>18}", "tokens", "one conversation");
  if (has_many) text += fmt::format("{:>18}", fmt::format("{} of them", report.conversations));
  if (report.is_measured) text += fmt::format("{:>12}", "tokens/s");
  if (report.is_measured && has_many) text += fmt::format("{:>12}", "together");
  text += "\n";
  for (const PlannedLength& length : report.lengths) {
    text += fmt::format("{:>8}{:>18}", length.tokens, show_bytes(length.conversation_bytes));
    if (has_many) {
      text += fmt::format("{:>18}",
                          show_bytes(length.conversation_bytes * size_t(report.conversations)));
    }
    if (report.is_measured) text += fmt::format("{:>12}", speed_text(length.alone_per_second));
    if (report.is_measured && has_many) {
      text += fmt::format("{:>12}", speed_text(length.together_per_second));
    }
    text += "\n";
  }
  return text;
}

std::string type_lines(const PlanReport& report) {
  if (report.types.empty()) return "";
  std::string text = fmt::format("\n{:<10}{:>12}{:>12}  {:<14}{}\n", "type", "file", "in all", "",
                                 report.is_measured ? "tokens/s" : "");
  for (const PlannedType& type : report.types) {
    text += fmt::format("{:<10}{:>12}{:>12}  {:<14}{}\n", type.name, show_bytes(type.file_bytes),
                        show_bytes(type.bytes), report.fits(type.bytes) ? "fits" : "does not fit",
                        speed_text(type.alone_per_second));
  }
  return text;
}

json::Value speed_json(double per_second) {
  return per_second > 0 ? json::Value(per_second) : json::Value();
}

json::Value memory_json(const PlanReport& report) {
  const measure::ModelPlan& plan = report.plan;
  json::Value json = {{"weights", plan.fixed.weights},
                      {"steps", plan.fixed.plans + plan.fixed.workspace},
                      {"conversation", plan.conversation_bytes},
                      {"conversations", plan.conversations_bytes(report.conversations)},
                      {"total", report.bytes()},
                      {"place", plan.place_bytes}};
  if (report.room.bytes > 0) {
    json["free"] = report.room.bytes;
    json["limited_by"] = std::string(report.room.limited_by);
    json["fits"] = report.fits(report.bytes());
  }
  json["groups"] = json::Value::array();
  for (const memory::GroupUsage& group : plan.groups) {
    json["groups"].push_back({{"kind", std::string(memory::name(group.kind))},
                              {"window", group.window},
                              {"bytes", group.bytes}});
  }
  return json;
}

}  // namespace

std::string as_table(const PlanReport& report) {
  std::string text = head_lines(report) + memory_lines(report) + length_lines(report);
  if (report.is_measured) {
    text += fmt::format("\na prompt is read at about {:.0f} tokens/s\n", report.prompt_per_second);
  }
  return text + type_lines(report);
}

std::string as_json(const PlanReport& report) {
  json::Value json = {{"model", report.model},
                      {"architecture", report.summary.architecture},
                      {"parameters", report.summary.weight_count},
                      {"file_bytes", report.file_bytes},
                      {"note", report.note},
                      {"makes_text", report.plan.makes_text},
                      {"context_tokens", report.plan.context_tokens},
                      {"conversations", report.conversations},
                      {"threads", report.thread_count},
                      {"isa", report.isa}};
  if (report.is_measured) {
    json["machine"] = {{"read_bytes_per_second", report.limits.read_bytes_per_second},
                       {"integer_ops_per_second", report.limits.integer_ops_per_second},
                       {"float_ops_per_second", report.limits.float_ops_per_second}};
  }
  json["memory"] = memory_json(report);
  json["prompt_tokens_per_second"] = speed_json(report.prompt_per_second);
  json["lengths"] = json::Value::array();
  for (const PlannedLength& length : report.lengths) {
    json["lengths"].push_back(
        {{"tokens", length.tokens},
         {"conversation_bytes", length.conversation_bytes},
         {"tokens_per_second", speed_json(length.alone_per_second)},
         {"tokens_per_second_together", speed_json(length.together_per_second)}});
  }
  json["quantizations"] = json::Value::array();
  for (const PlannedType& type : report.types) {
    json["quantizations"].push_back({{"type", type.name},
                                     {"file_bytes", type.file_bytes},
                                     {"total", type.bytes},
                                     {"fits", report.fits(type.bytes)},
                                     {"tokens_per_second", speed_json(type.alone_per_second)}});
  }
  return json::to_text(json, {.indent = 2}) + "\n";
}

}  // namespace cairn::cli
