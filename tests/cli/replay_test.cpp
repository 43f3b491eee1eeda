// `cairn run --receipt` and `cairn replay`, from outside: equal on other instruction sets, exit
// code 5 with the place where not, receipts of conversations, files that must not be written over.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/cpu_levels.h"
#include "base/sha256.h"
#include "tests/cli/run_program.h"

namespace cairn::cli::replay_test {
namespace {

using nlohmann::json;

class Replay : public testing::Test {
 protected:
  std::string receipt() const { return folder_.file("receipt.json"); }
  json parsed() const { return json::parse(contents_of(receipt())); }
  void write(const json& changed) const { write_to(receipt(), changed.dump()); }
  void answer(std::vector<std::string> options) const {
    options.insert(options.begin(), {"run", "--receipt", receipt(), "--seed", "3", "--temp", "2",
                                     "-n", "8", "-p", "Please count from 1 to 5."});
    const Finished done = run_program(options);
    ASSERT_EQ(done.exit_code, 0) << done.err;
  }

  ScratchFolder folder_;
};

TEST_F(Replay, IsEqualOnEveryInstructionSet) {
  answer({});
  for (const IsaLevel level : levels_of(detect_cpu_features())) {
    const Finished same =
        run_program({"replay", receipt(), "--isa", std::string(name(level)), "-t", "1"});
    EXPECT_EQ(same.exit_code, 0) << same.err << same.out;
    EXPECT_TRUE(same.out.starts_with("equal: 8 tokens, all bits of their logits, fingerprint "))
        << same.out;
  }
  const Finished told = run_program({"replay", receipt(), "--json"});
  EXPECT_EQ(json::parse(told.out)["equal"], true);
  EXPECT_EQ(json::parse(told.out)["fingerprint"], parsed()["fingerprint"]["digest"]);
}

// Nothing of the digests is the program's secret: they are SHA-256 over what `cairn logits` writes.
TEST_F(Replay, TheDigestsAreThoseOfTheLogits) {
  answer({});
  const json written = parsed();
  std::string ids;
  for (const char* part : {"prompt", "answer"}) {
    for (const json& token : written[part]["tokens"]) ids += token.dump() + " ";
  }
  write_to(folder_.file("ids"), ids + "\n");
  const Finished logits =
      run_program({"logits", CAIRN_SOURCE "/assets/nano.gguf", "--tokens", folder_.file("ids"),
                   "--kv", "f16", "-o", folder_.file("rows")});
  ASSERT_EQ(logits.exit_code, 0) << logits.err;
  const std::string rows = contents_of(folder_.file("rows"));
  const size_t prompt_count = written["prompt"]["tokens"].size();
  const size_t count = written["answer"]["tokens"].size();
  const size_t row_bytes = rows.size() / (prompt_count + count);
  for (size_t i = 0; i < count; ++i) {
    Sha256 sha;
    sha.add(std::string_view(rows).substr((prompt_count - 1) * row_bytes, (i + 1) * row_bytes));
    const std::string digest = hex_of(sha.finish());
    EXPECT_EQ(written["answer"]["logits"][i], digest.substr(0, 16)) << i;
    if (i + 1 == count) {
      EXPECT_EQ(written["answer"]["digest"], digest);
    }
  }
}

TEST_F(Replay, SaysWhereItIsNotEqual) {
  answer({});
  json changed = parsed();
  std::string rows = changed["answer"]["logits"][5];
  rows[15] = rows[15] == '0' ? '1' : '0';
  changed["answer"]["logits"][5] = rows;
  write(changed);
  const Finished logits = run_program({"replay", receipt()});
  EXPECT_EQ(logits.exit_code, 5) << logits.err;
  EXPECT_TRUE(logits.out.starts_with("different: token 5 of the answer: answer.logits: expected " +
                                     rows + ", found "))
      << logits.out;
  const Finished as_json = run_program({"replay", receipt(), "--json"});
  EXPECT_EQ(as_json.exit_code, 5);
  EXPECT_EQ(json::parse(as_json.out)["token"], 5);
  EXPECT_EQ(json::parse(as_json.out)["field"], "answer.logits");

  ASSERT_EQ(run_program({"synth", "--like", "llama", "--layers", "1", "--vocab", "300", "-o",
                         folder_.file("other.gguf")})
                .exit_code,
            0);
  const Finished other = run_program({"replay", receipt(), "-m", folder_.file("other.gguf")});
  EXPECT_EQ(other.exit_code, 5) << other.err;
  EXPECT_TRUE(other.out.starts_with("different: fingerprint.model: expected ")) << other.out;
  EXPECT_TRUE(other.out.ends_with("; -m names another file\n")) << other.out;
}

TEST_F(Replay, TakesTheNumbersOfTheAnswerFromTheReceipt) {
  answer({"--kv", "q8_0", "-c", "256", "--regex", "[a-f ]{10,20}"});
  const Finished same = run_program({"replay", receipt()});
  EXPECT_EQ(same.exit_code, 0) << same.err << same.out;
  const json written = parsed();
  EXPECT_EQ(written["fingerprint"]["keys"], "q8_0");
  EXPECT_EQ(written["context"]["tokens"], 256);
  EXPECT_EQ(written["form"]["regex"], "[a-f ]{10,20}");
  EXPECT_EQ(written["sampling"]["seed"], "3");
  EXPECT_EQ(written["answer"]["tokens"].size(), written["answer"]["logits"].size());
}

TEST_F(Replay, AConversationHasTheReceiptOfItsLastAnswer) {
  const Finished chat =
      run_program({"run", "--chat", "--receipt", receipt()}, "My name is Ada.\nWhat is my name?\n");
  ASSERT_EQ(chat.exit_code, 0) << chat.err;
  EXPECT_TRUE(chat.out.ends_with("Your name is Ada.\n")) << chat.out;
  const Finished same = run_program({"replay", receipt()});
  EXPECT_EQ(same.exit_code, 0) << same.err << same.out;
}

TEST_F(Replay, SparesWhatTheRunReads) {
  const std::string model = folder_.file("model.gguf");
  std::filesystem::copy(CAIRN_SOURCE "/assets/nano.gguf", model);
  for (const std::string& path : {model, std::string("-"), std::string(folder_.path())}) {
    const Finished refused = run_program({"run", model, "-p", "Hello", "--receipt", path});
    EXPECT_EQ(refused.exit_code, 2) << path << refused.err;
    EXPECT_EQ(refused.out, "") << path;
  }
  EXPECT_TRUE(contents_of(model) == contents_of(CAIRN_SOURCE "/assets/nano.gguf"));
}

// Under the fast numerics an earlier answer has other bits when it is read again.
TEST_F(Replay, IsForExactNumericsAlone) {
  const Finished fast =
      run_program({"run", "-p", "x", "--numerics", "fast", "--receipt", receipt()});
  EXPECT_EQ(fast.exit_code, 2);
  EXPECT_EQ(fast.err,
            "cairn: --receipt: expected --numerics exact, by which answers that are read again "
            "have the same bits, found fast\n");
  EXPECT_FALSE(std::filesystem::exists(receipt()));
}

TEST_F(Replay, NamesWhatIsNoReceipt) {
  const Finished none = run_program({"replay"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("RECEIPT: expected a value, found none"), std::string::npos) << none.err;
  const Finished missing = run_program({"replay", folder_.file("none")});
  EXPECT_EQ(missing.exit_code, 1);
  write_to(receipt(), "{\"receipt\": 1}");
  const Finished part = run_program({"replay", receipt()});
  EXPECT_EQ(part.exit_code, 1);
  EXPECT_EQ(part.err, "cairn: " + receipt() + ": program: expected a text, found none\n");
}

}  // namespace
}  // namespace cairn::cli::replay_test
