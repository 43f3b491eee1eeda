// The small parts of the command line: where sampling parameters come from, sequences of ids.
#include <gtest/gtest.h>

#include "cli/commands/logits.h"
#include "gguf/gguf.h"
#include "gguf/writer.h"
#include "session/sampling_choice.h"
#include "tests/cli/run_program.h"

namespace cairn::cli::parts_test {
namespace {

TEST(SamplingChoice, FileOverDefaultsAndUserOverFile) {
  gguf::Writer writer;
  writer.add("general.architecture", "llama");
  writer.add("general.sampling.temp", 0.5f);
  writer.add("general.sampling.top_k", int32_t(7));
  std::vector<std::byte> bytes;
  gguf::TensorStream stream = writer.open_memory(bytes).value();
  ASSERT_TRUE(stream.finish());
  const gguf::File file = gguf::File::from_bytes(bytes, "test").value();
  auto from_file = session::effective_sampling(file.fields(), false, {.said = {}, .seed = 3});
  ASSERT_TRUE(from_file);
  EXPECT_EQ(from_file->temperature, 0.5f);
  EXPECT_EQ(from_file->top_k, 7);
  EXPECT_EQ(from_file->top_p, 0.95f);
  EXPECT_EQ(from_file->seed, 3u);
  const sample::SamplingField* temperature = &sample::sampling_fields()[0];
  auto from_user =
      session::effective_sampling(file.fields(), false, {.said = {{temperature, 1.5}}});
  ASSERT_TRUE(from_user);
  EXPECT_EQ(from_user->temperature, 1.5f);
  EXPECT_EQ(from_user->top_k, 7);
  auto builtin = session::effective_sampling(gguf::Fields(), true, {});
  ASSERT_TRUE(builtin);
  EXPECT_EQ(builtin->temperature, 0.0f);
}

TEST(SamplingChoice, BadValuesOfAFileAreNamed) {
  gguf::Writer writer;
  writer.add("general.architecture", "llama");
  writer.add("general.sampling.top_p", "often");
  std::vector<std::byte> bytes;
  gguf::TensorStream stream = writer.open_memory(bytes).value();
  ASSERT_TRUE(stream.finish());
  const gguf::File file = gguf::File::from_bytes(bytes, "test").value();
  const auto params = session::effective_sampling(file.fields(), false, {});
  ASSERT_FALSE(params);
  EXPECT_EQ(params.error().message,
            "general.sampling.top_p: expected a number, found string \"often\"");
}

TEST(Sequences, OneALineWithBlanksOrCommas) {
  auto sequences = parse_sequences("1 2,3\r\n\n  4\n, 5 ,6,\n", 7);
  ASSERT_TRUE(sequences) << sequences.error().message;
  ASSERT_EQ(sequences->size(), 3u);
  EXPECT_EQ((*sequences)[0], (std::vector<Token>{Token(1), Token(2), Token(3)}));
  EXPECT_EQ((*sequences)[1], std::vector<Token>{Token(4)});
  EXPECT_EQ((*sequences)[2], (std::vector<Token>{Token(5), Token(6)}));
  for (const char* bad : {"", "\n\n", "1\n7", "1\n-1", "x", "1.5", "99999999999"}) {
    EXPECT_FALSE(parse_sequences(bad, 7)) << bad;
  }
}

}  // namespace
}  // namespace cairn::cli::parts_test
