// What passes is read in whatever pieces it comes.
#include "route/reply_figures.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn::route::reply_figures_test {
namespace {

constexpr char kEnd[] = R"("timings":{"cache_n":5,"prompt_n":7,"prompt_ms":12.5,"predicted_ms":3},)"
                        R"("memory":{"reused":90,"recomputed":10,"replayed":1,"source":"cache"}})";

TEST(ReplyReader, ReadsWhatStandsAtTheEnd) {
  const std::string reply = R"({"id":"one","text":")" + std::string(100'000, 'x') + R"(",)" + kEnd;
  for (const size_t piece : {size_t(1), size_t(7), size_t(5000), reply.size()}) {
    ReplyReader reader;
    for (size_t at = 0; at < reply.size(); at += piece) {
      reader.add(std::string_view(reply).substr(at, piece));
    }
    const auto figures = reader.figures();
    ASSERT_TRUE(figures) << piece;
    EXPECT_EQ(figures->reused_tokens, 90);
    EXPECT_EQ(figures->computed_tokens, 10);
    EXPECT_EQ(figures->prompt_ms, 12.5);
    EXPECT_EQ(figures->answer_ms, 3);
    EXPECT_EQ(reader.begin(), reply.substr(0, 4096));
  }
}

TEST(ReplyReader, AModelsTextIsNoMember) {
  ReplyReader reader;
  reader.add(R"({"content":"\"memory\":{\"reused\":1,\"recomputed\":1}"})");
  EXPECT_FALSE(reader.figures());
  for (const char* wrong : {R"("memory":{"reused":-1,"recomputed":1})", R"("memory":{"reused":1})",
                            R"("memory":{)", R"("memory":{"reused":})"}) {
    ReplyReader other;
    other.add(wrong);
    EXPECT_FALSE(other.figures()) << wrong;
  }
  ReplyReader without_times;
  without_times.add(R"("memory":{"reused":3,"recomputed":4})");
  ASSERT_TRUE(without_times.figures());
  EXPECT_FALSE(without_times.figures()->prompt_ms);
}

}  // namespace
}  // namespace cairn::route::reply_figures_test
