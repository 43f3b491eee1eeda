// What a plan says in words: sizes, whether it fits, what to type so that it does.
#include "cli/plan/plan_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace cairn::cli::plan_report_test {
namespace {

constexpr size_t kGiB = size_t(1) << 30;

PlanReport report_of(size_t room) {
  PlanReport report{.model = "m.gguf", .file_bytes = 2 * kGiB, .conversations = 2};
  report.thread_count = 4;
  report.isa = "avx2";
  report.room = {.bytes = room, .limited_by = "MemAvailable"};
  report.plan.fixed = {.weights = 2 * kGiB, .plans = 0, .workspace = kGiB};
  report.plan.context_tokens = 4096;
  report.plan.conversation_bytes = kGiB / 2;
  report.lengths = {{.tokens = 4096, .conversation_bytes = kGiB / 2}};
  report.types = {{.name = "Q4_K_M", .file_bytes = kGiB, .bytes = 3 * kGiB}};
  return report;
}

std::string line_with(const std::string& text, const std::string& part) {
  const size_t at = text.find(part);
  if (at == text.npos) return "";
  const size_t begin = text.rfind('\n', at) + 1;
  return text.substr(begin, text.find('\n', at) - begin);
}

TEST(PlanReport, SaysWhetherItFits) {
  const std::string fits = line_with(as_table(report_of(10 * kGiB)), "in all");
  EXPECT_TRUE(fits.ends_with("4.0 GiB, of 10 GiB: fits")) << fits;
  // Conversations get half of what the weights leave, unless more is asked for.
  const std::string budget = line_with(as_table(report_of(4 * kGiB)), "in all");
  EXPECT_TRUE(budget.ends_with("of 4.0 GiB: fits with --memory-budget 1025M")) << budget;
  const PlanReport small = report_of(7 * kGiB / 2);
  const std::string table = as_table(small);
  EXPECT_TRUE(line_with(table, "in all").ends_with(": does not fit")) << table;
  EXPECT_TRUE(line_with(table, "Q4_K_M").find("fits") != std::string::npos) << table;
  EXPECT_EQ(nlohmann::json::parse(as_json(small))["memory"]["fits"], false);
  EXPECT_EQ(nlohmann::json::parse(as_json(small))["quantizations"][0]["fits"], true);
}

TEST(PlanReport, WhatNobodySaysLimitsNothing) {
  const PlanReport unknown = report_of(0);
  const std::string line = line_with(as_table(unknown), "in all");
  EXPECT_TRUE(line.ends_with("4.0 GiB")) << line;
  EXPECT_FALSE(nlohmann::json::parse(as_json(unknown))["memory"].contains("fits"));
}

TEST(PlanReport, ShowsSpeedsOnlyWhereTheyWereMeasured) {
  PlanReport report = report_of(10 * kGiB);
  EXPECT_EQ(as_table(report).find("tokens/s"), std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(as_json(report))["lengths"][0]["tokens_per_second"].is_null());
  report.is_measured = true;
  report.lengths[0].alone_per_second = 12.25;
  report.lengths[0].together_per_second = 20;
  report.prompt_per_second = 150;
  const std::string table = as_table(report);
  EXPECT_TRUE(line_with(table, "12.2").ends_with("20.0")) << table;
  EXPECT_NE(table.find("a prompt is read at about 150 tokens/s"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(as_json(report))["lengths"][0]["tokens_per_second"], 12.25);
}

TEST(PlanReport, NamesOfStrangersAreShownHarmlessly) {
  PlanReport report = report_of(0);
  report.model = "a\x1b[31mb";
  report.note = "c\nd";
  const std::string table = as_table(report);
  EXPECT_EQ(table.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace cairn::cli::plan_report_test
