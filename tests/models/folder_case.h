// The cases of tools/make_folder.py and make_adapter.py: logits of always the same tokens.
#pragma once

#include "tests/models/golden_model.h"

namespace cairn::test {

// As tools/make_folder.py has them.
inline std::vector<Token> folder_tokens() {
  std::vector<Token> tokens;
  for (int32_t i = 0; i < 24; ++i) tokens.push_back(Token((7 * i * i + 3) % 300 + 3));
  return tokens;
}

inline std::string folder_path(const std::string& name) {
  return std::string(CAIRN_FIXTURES) + "/folders/" + name;
}

// In units of the standard deviation of the logits in the file, the worst single one.
inline double error_against(const std::vector<float>& logits, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::vector<float> expected(logits.size());
  const auto bytes = std::streamsize(expected.size() * sizeof(float));
  file.read(reinterpret_cast<char*>(expected.data()), bytes);
  EXPECT_TRUE(file.gcount() == bytes && file.peek() == std::ifstream::traits_type::eof()) << path;
  double worst = 0, sum = 0, squares = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double difference = std::abs(double(logits[i]) - double(expected[i]));
    worst = std::max(worst, std::isnan(difference) ? HUGE_VAL : difference);
    sum += double(expected[i]);
    squares += double(expected[i]) * double(expected[i]);
  }
  const auto count = double(logits.size());
  return worst / std::sqrt(squares / count - sum * sum / count / count);
}

inline double folder_error(const std::vector<float>& logits, const std::string& name) {
  return error_against(logits, folder_path(name));
}

}  // namespace cairn::test
