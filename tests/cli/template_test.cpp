// `cairn template`: a template's source, messages rendered with it, and what is wrong with either.
#include "cli/commands/template.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/scratch_folder.h"

namespace cairn::cli::template_test {
namespace {

// A file that goes away with the test.
class ScratchFile {
 public:
  ScratchFile(const std::string& name, std::string_view text) : path_(folder_.file(name)) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  const std::string& path() const { return path_; }

 private:
  test::ScratchFolder folder_;
  std::string path_;
};

constexpr std::string_view kSource =
    "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}{{ extra }}";

TEST(Template, ShowsTheSource) {
  const ScratchFile source("show.jinja", kSource);
  auto report = template_report({.path = source.path()});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(*report, kSource);
}

TEST(Template, RendersAListOfMessages) {
  const ScratchFile source("list.jinja", kSource);
  const ScratchFile messages("list.json", R"([{"role":"user","content":"<|user|>"}])");
  TemplateOptions options{.path = source.path(), .messages_path = messages.path()};
  auto report = template_report(options);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(*report, "<|user|><|user|><|assistant|>");
  options.marks = true;
  report = template_report(options);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(*report, "<|user|>⟦<|user|>⟧<|assistant|>");
}

TEST(Template, RendersAnObjectWithMore) {
  const ScratchFile source("object.jinja", kSource);
  const ScratchFile messages(
      "object.json",
      R"({"messages":[],"add_generation_prompt":false,"bos_token":"<s>","extra":[1]})");
  auto report = template_report({.path = source.path(), .messages_path = messages.path()});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(*report, "<s>[1]");
}

TEST(Template, SaysWhatIsWrong) {
  EXPECT_FALSE(template_report({.path = "/nowhere/at.all"}));
  const ScratchFile source("wrong.jinja", kSource);
  for (const char* json :
       {"", "5", "{}", R"({"messages":5})", R"({"messages":[],"now":"noon"})",
        R"({"messages":[],"tokenize":true})", R"({"messages":[],"add_generation_prompt":1})"}) {
    const ScratchFile messages("wrong.json", json);
    auto report = template_report({.path = source.path(), .messages_path = messages.path()});
    ASSERT_FALSE(report) << json;
    EXPECT_FALSE(report.error().message.empty()) << json;
  }
}

// A FIFO that nobody writes to must not be waited for; a folder is no empty template.
TEST(Template, WaitsForNobody) {
  const test::ScratchFolder folder;
  ASSERT_EQ(::mkfifo(folder.file("fifo").c_str(), 0600), 0);
  const ScratchFile source("source.jinja", kSource);
  const auto error_of = [&](const std::string& path, const std::string& messages_path) {
    const auto report = template_report({.path = path, .messages_path = messages_path});
    return report ? "none" : report.error().message;
  };
  const std::string fifo = folder.file("fifo"), directory = folder.path().string();
  EXPECT_EQ(error_of(fifo, ""), fifo + ": expected a regular file, found something else");
  EXPECT_EQ(error_of(directory, ""), directory + ": expected a regular file, found a directory");
  EXPECT_EQ(error_of(source.path(), directory),
            directory + ": expected a regular file or a pipe, found a directory");
  EXPECT_NE(error_of(source.path(), fifo).find("expected a JSON value, found the end"),
            std::string::npos);
}

}  // namespace
}  // namespace cairn::cli::template_test
