// What config.json leaves out, and numbers in it that nothing may be computed from.
#include "convert/config.h"

#include <gtest/gtest.h>

#include <string>

#include "convert/key_values.h"
#include "convert/parameters.h"
#include "convert/rope_factors.h"

namespace cairn::convert::config_test {
namespace {

// A small model of the class with these members besides.
Config config_of(const std::string& class_name, const std::string& model_type,
                 const std::string& more) {
  const std::string text = fmt::format(
      R"({{"architectures": ["{}"], "model_type": "{}", "hidden_size": 64, "num_hidden_layers": 2,
          "max_position_embeddings": 256, "intermediate_size": 96, "vocab_size": 300{}}})",
      class_name, model_type, more);
  Result<Json> json = parse_json(text);
  EXPECT_TRUE(json) << text;
  Result<Config> config = Config::from_json(std::move(json).value());
  EXPECT_TRUE(config);
  return std::move(config).value();
}

Config llama(const std::string& more) {
  return config_of("LlamaForCausalLM", "llama", more);
}

TEST(Config, FillsInWhatFollowsFromTheHeads) {
  // Whatever room the object has left.
  std::string more = R"(, "num_attention_heads": 4)";
  for (int i = 0; i < 16; ++i) {
    const Config config = llama(more);
    EXPECT_EQ(config.count("num_key_value_heads").value(), 4);
    EXPECT_EQ(config.count("head_dim").value(), 16);
    more += fmt::format(", \"other{}\": 0", i);
  }
  EXPECT_FALSE(llama("").count("head_dim"));
  EXPECT_FALSE(llama(R"(, "num_attention_heads": 0)").positive("num_attention_heads"));
}

// What the parameters' errors say; "" where there is none.
std::string complaint_about(const Config& config) {
  KeyValues values;
  const Status status = add_parameters(config, *find_family(config.class_name()), 1, 0, values);
  return status ? "" : status.error().message;
}

TEST(Config, RefusesNumbersThatNothingCanBeComputedFrom) {
  const std::string heads = R"(, "num_attention_heads": 4)";
  EXPECT_EQ(complaint_about(llama(heads)), "");
  EXPECT_EQ(complaint_about(llama(R"(, "num_attention_heads": 0)")),
            "num_attention_heads: expected at least 1, found 0");
  const auto phi = [&](const std::string& more) {
    return complaint_about(config_of("PhiForCausalLM", "phi", heads + more));
  };
  EXPECT_EQ(phi(""), "");
  for (const char* part : {"-0.5", "2", "1e308"}) {
    EXPECT_NE(phi(fmt::format(R"(, "partial_rotary_factor": {})", part)).find("expected 0 to 1"),
              std::string::npos);
  }
  const auto yarn = [&](const std::string& original) {
    return complaint_about(
        llama(heads + fmt::format(R"(, "rope_scaling": {{"rope_type": "yarn", "factor": 4,
                                 "original_max_position_embeddings": {}}})",
                                  original)));
  };
  EXPECT_EQ(yarn("64"), "");
  for (const char* original : {"-64", "1e300", "0.5", "4294967296"}) {
    EXPECT_NE(yarn(original).find("expected a count"), std::string::npos) << original;
  }
}

TEST(RopeFactors, AreAsManyAsHalfAHead) {
  const std::string scaling =
      R"(, "num_attention_heads": 4, "rope_scaling": {"rope_type": "llama3", "factor": 8})";
  EXPECT_EQ(llama3_factors(llama(scaling)).value().size(), 8u);
  // Not gigabytes of them.
  EXPECT_FALSE(llama3_factors(llama(scaling + R"(, "head_dim": 2000000000)")));
}

}  // namespace
}  // namespace cairn::convert::config_test
