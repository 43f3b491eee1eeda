// The table of sampling parameters: ranges, defaults, words, orders of stages, biases.
#include "sample/params.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>
#include <span>
#include <string>

namespace cairn::sample::params_test {
namespace {

// By the name of requests; null where there is none.
const SamplingField* field_named(std::string_view name) {
  const auto fields = sampling_fields();
  const auto found = std::ranges::find(fields, name, &SamplingField::name);
  return found == fields.end() ? nullptr : &*found;
}

// "top_k;temperature".
std::string joined(std::span<const std::string_view> names) {
  return fmt::format("{}", fmt::join(names, ";"));
}

TEST(SamplingParams, DefaultsAreInRangeAndNamedOnce) {
  const SamplingParams defaults;
  std::set<std::string_view> names, options, members;
  for (const SamplingField& field : sampling_fields()) {
    const int kinds = (field.real != nullptr ? 1 : 0) + (field.count != nullptr ? 1 : 0) +
                      (field.flag != nullptr ? 1 : 0);
    EXPECT_EQ(kinds, 1) << field.option;
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_TRUE(options.insert(field.option).second) << field.option;
    EXPECT_FALSE(field.doc.empty()) << field.option;
    EXPECT_GE(get(defaults, field), field.min) << field.name;
    EXPECT_LE(get(defaults, field), field.max) << field.name;
    SamplingParams params;
    EXPECT_TRUE(set(params, field, field.max));
    EXPECT_EQ(float(get(params, field)), float(field.max)) << field.name;
    EXPECT_TRUE(set(params, field, field.min));
    EXPECT_EQ(float(get(params, field)), float(field.min)) << field.name;
    // Each field is a member of its own: setting one leaves all others.
    for (const SamplingField& other : sampling_fields()) {
      if (&other == &field) continue;
      EXPECT_EQ(get(params, other), get(defaults, other)) << other.name;
    }
  }
}

// What llama.cpp's users are used to; a change here changes everybody's answers.
TEST(SamplingParams, DefaultsAreThoseOfTheContract) {
  const std::pair<std::string_view, double> wanted[] = {
      {"temperature", 0.8},
      {"top_k", 40},
      {"top_p", 0.95},
      {"min_p", 0.05},
      {"typical_p", 1},
      {"top_n_sigma", -1},
      {"xtc_probability", 0},
      {"xtc_threshold", 0.1},
      {"dynatemp_range", 0},
      {"dynatemp_exponent", 1},
      {"repeat_last_n", 64},
      {"repeat_penalty", 1},
      {"presence_penalty", 0},
      {"frequency_penalty", 0},
      {"dry_multiplier", 0},
      {"dry_base", 1.75},
      {"dry_allowed_length", 2},
      {"dry_penalty_last_n", 64},
      {"mirostat", 0},
      {"mirostat_tau", 5},
      {"mirostat_eta", 0.1},
      {"adaptive_target", -1},
      {"adaptive_decay", 0.9},
      {"min_keep", 0},
      {"n_probs", 0},
      {"post_sampling_probs", 0},
      {"ignore_eos", 0},
  };
  ASSERT_EQ(sampling_fields().size(), std::size(wanted));
  for (const auto& [name, value] : wanted) {
    ASSERT_NE(field_named(name), nullptr) << name;
    EXPECT_EQ(float(get({}, *field_named(name))), float(value)) << name;
  }
  EXPECT_EQ(joined(SamplingParams{}.samplers),
            "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature");
}

TEST(SamplingParams, SettingRefusesWhatIsOutOfRange) {
  for (const SamplingField& field : sampling_fields()) {
    for (const double bad : {field.min - 1, field.max + 1, std::nan("")}) {
      SamplingParams params;
      const double before = get(params, field);
      const Status status = set(params, field, bad);
      ASSERT_FALSE(status) << field.option << " " << bad;
      EXPECT_NE(status.error().message.find(field.option), std::string::npos);
      EXPECT_EQ(get(params, field), before);
    }
  }
}

TEST(SamplingParams, CountsAndSwitchesAreWhole) {
  for (const SamplingField& field : sampling_fields()) {
    SamplingParams params;
    EXPECT_EQ(bool(set(params, field, 0.5)), field.real != nullptr) << field.option;
  }
}

TEST(SamplingParams, ValuesAreShownAsTheyAreWritten) {
  EXPECT_EQ(show({}, *field_named("temperature")), "0.8");
  EXPECT_EQ(show({}, *field_named("top_k")), "40");
  EXPECT_EQ(show({}, *field_named("ignore_eos")), "off");
}

TEST(SamplerOrder, NamesLettersAndSpellings) {
  const auto text = [](std::string_view from) { return joined(sampler_order(from).value()); };
  EXPECT_EQ(text("top_k;temperature"), "top_k;temperature");
  EXPECT_EQ(text("Top-K,topp;nucleus;TEMP"), "top_k;top_p;top_p;temperature");
  EXPECT_EQ(text("temperature"), "temperature");
  EXPECT_EQ(text("kmpt"), "top_k;min_p;top_p;temperature");
  EXPECT_EQ(text(""), "");
  const std::vector<std::string> names{"min-p", "topk"};
  EXPECT_EQ(joined(sampler_order(names).value()), "min_p;top_k");
  EXPECT_TRUE(sampler_order(std::span<const std::string>()).value().empty());
  for (const std::string_view bad : {"top_k;heat", "kq", "top", "top__k", "top_k_", "mirostat"}) {
    const auto order = sampler_order(bad);
    ASSERT_FALSE(order) << bad;
    EXPECT_NE(order.error().message.find("top_k (k)"), std::string::npos);
  }
}

TEST(LogitBias, NumbersTextsAndBans) {
  const auto check = [](std::string_view from, int32_t token, std::string_view text, float value) {
    const LogitBias bias = parse_logit_bias(from).value();
    EXPECT_EQ(index_of(bias.token), token) << from;
    EXPECT_EQ(bias.text, text) << from;
    EXPECT_EQ(bias.bias, value) << from;
  };
  const float banned = -std::numeric_limits<float>::infinity();
  check("15043+1", 15043, "", 1);
  check("15043-1.5", 15043, "", -1.5f);
  check("7-inf", 7, "", banned);
  check("7=false", 7, "", banned);
  check("7=2", 7, "", 2);
  check("hello=-2", -1, "hello", -2);
  check("a=b=3", -1, "a=b", 3);
  check("7up=false", -1, "7up", banned);
  for (const std::string_view bad : {"", "7", "7+", "7+x", "=3", "hello", "hello=", "a=nan"}) {
    EXPECT_FALSE(parse_logit_bias(bad)) << bad;
  }
}

TEST(LogitBias, TokensThatTheModelLacksAreErrors) {
  SamplingParams params;
  params.logit_bias = {parse_logit_bias("99+1").value(), parse_logit_bias("word=1").value()};
  EXPECT_TRUE(check_logit_bias(params, 100));
  const Status status = check_logit_bias(params, 99);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "logit-bias: expected a token below 99, found 99");
}

TEST(SamplingLists, SetByWords) {
  SamplingParams params;
  for (const SamplingList& list : sampling_lists()) {
    if (list.name == "samplers") {
      const std::vector<std::string> one{"kt"}, two{"top_k", "min_p"}, bad{"q"};
      EXPECT_TRUE(list.set(params, one));
      EXPECT_EQ(joined(params.samplers), "top_k;temperature");
      EXPECT_TRUE(list.set(params, two));
      EXPECT_EQ(joined(params.samplers), "top_k;min_p");
      EXPECT_FALSE(list.set(params, bad));
      EXPECT_TRUE(list.set(params, {}));
      EXPECT_TRUE(params.samplers.empty());
    } else if (list.name == "logit_bias") {
      const std::vector<std::string> two{"5-inf", "no=1"}, bad{"5-inf", "no"};
      EXPECT_TRUE(list.set(params, two));
      EXPECT_FALSE(list.set(params, bad));
      ASSERT_EQ(params.logit_bias.size(), 2u);
      EXPECT_EQ(params.logit_bias[1].text, "no");
    } else {
      ASSERT_EQ(list.name, "dry_sequence_breakers");
      const std::vector<std::string> some{"\\n\\n", "a\\"}, none{"none"}, bad{""};
      EXPECT_TRUE(list.set(params, some));
      EXPECT_EQ(params.dry_breakers, (std::vector<std::string>{"\n\n", "a\\"}));
      EXPECT_TRUE(list.set(params, none));
      EXPECT_TRUE(params.dry_breakers.empty());
      EXPECT_FALSE(list.set(params, bad));
    }
    // What the help calls the default is the default.
    if (list.name == "samplers") {
      EXPECT_EQ(list.default_text, joined(SamplingParams{}.samplers));
    }
  }
}

std::string documented_table() {
  std::string text =
      "| name | option | default | range | in a model file | what it does |\n"
      "|---|---|---|---|---|---|\n";
  const auto key_of = [](std::string_view key) {
    return key.empty() ? std::string() : fmt::format("`{}`", key.substr(17));
  };
  for (const SamplingField& field : sampling_fields()) {
    const std::string range =
        field.flag != nullptr ? "on, off" : fmt::format("{} to {}", field.min, field.max);
    text += fmt::format("| `{}` | `--{}` | {} | {} | {} | {} |\n", field.name, field.option,
                        show({}, field), range, key_of(field.file_key), field.doc);
  }
  for (const SamplingList& list : sampling_lists()) {
    const std::string shown =
        list.default_text.empty() ? std::string() : fmt::format("`{}`", list.default_text);
    text += fmt::format("| `{}` | `--{}` | {} | | {} | {} |\n", list.name, list.option, shown,
                        key_of(list.file_key), list.doc);
  }
  return text;
}

TEST(SamplingParams, TheDocumentedTableIsThisOne) {
  std::ifstream file(CAIRN_SOURCE "/docs/sampling.md");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::string begin = "<!-- table -->\n", finish = "<!-- end -->";
  const size_t from = text.find(begin), to = text.find(finish);
  ASSERT_NE(from, text.npos);
  ASSERT_NE(to, text.npos);
  const std::string found = text.substr(from + begin.size(), to - from - begin.size());
  EXPECT_EQ(found, documented_table()) << "docs/sampling.md, the table:\n" << documented_table();
}

}  // namespace
}  // namespace cairn::sample::params_test
