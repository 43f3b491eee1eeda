// docs/architectures.md has a row for each architecture of the table, and says of it what is so:
// which kinds of state its golden cases have, and how far their logits are from the reference.
#include <fmt/format.h>

#include <map>
#include <set>

#include "tests/models/embedding_case.h"

namespace cairn::test::architectures_test {
namespace {

std::string_view word_for(State::Kind kind) {
  switch (kind) {
    case State::Kind::full:
      return "full";
    case State::Kind::window:
      return "window";
    case State::Kind::chunked:
      return "chunked";
    case State::Kind::shared:
      return "shared";
    case State::Kind::recurrent:
      return "recurrent";
  }
  return "";
}

struct Row {
  std::set<std::string_view> states;
  std::string cases;
};

// The states of the model in a file. Models that see whole texts at once keep nothing.
void add_states(Row& row, const std::string& path) {
  Result<gguf::File> file = gguf::File::open(path);
  ASSERT_TRUE(file) << file.error().message;
  Result<gguf::Metadata> meta = file->metadata();
  ASSERT_TRUE(meta) << meta.error().message;
  auto created = models::find_architecture(meta->architecture()).value()->create(*meta);
  ASSERT_TRUE(created) << created.error().message;
  const std::unique_ptr<models::Model> model = std::move(created).value();
  if (!model->makes_text()) {
    row.states.insert("none");
    return;
  }
  for (int32_t layer = 0; layer < model->size().layer_count; ++layer) {
    for (const State& state : model->layer_states(layer)) {
      row.states.insert(state.values_in_keys ? "latent" : word_for(state.kind));
    }
  }
}

void add_error(Row& row, const std::string& name, double error) {
  row.cases += fmt::format("{}{} {:.0e}", row.cases.empty() ? "" : ", ", name, error);
}

void add_case(Row& row, const std::string& name) {
  add_states(row, golden_path(name, ".gguf"));
  const auto engine = load_engine(golden_path(name, ".gguf"), golden_options(KvType::f32));
  ASSERT_NE(engine, nullptr);
  add_error(row, name, error_of(read_golden(name), *engine).logit);
}

void add_embedding_case(Row& row, const std::string& name) {
  add_states(row, embedding_path(name, ".gguf"));
  const auto engine = load_engine(embedding_path(name, ".gguf"), embedding_options(Pooling::none));
  ASSERT_NE(engine, nullptr);
  add_error(row, name, error_of(read_embedding_case(name), *engine));
}

std::string table() {
  std::map<std::string, Row> rows;
  for (const models::Architecture* architecture : models::all_architectures()) {
    rows[std::string(architecture->name)] = {};
  }
  for (const std::string& name : supported_cases()) {
    Result<gguf::File> file = gguf::File::open(golden_path(name, ".gguf"));
    add_case(rows[file->metadata()->architecture()], name);
  }
  for (const std::string& name : embedding_cases()) {
    Result<gguf::File> file = gguf::File::open(embedding_path(name, ".gguf"));
    add_embedding_case(rows[file->metadata()->architecture()], name);
  }
  std::string text;
  for (const auto& [name, row] : rows) {
    text += fmt::format("| {} | {} | {} |\n", name, fmt::join(row.states, ", "), row.cases);
  }
  return text;
}

TEST(Architectures, TheDocumentHasTheTable) {
  std::ifstream file(std::string(CAIRN_SOURCE) + "/docs/architectures.md");
  const std::string document{std::istreambuf_iterator<char>(file), {}};
  const std::string expected = table();
  EXPECT_NE(document.find("|---|---|---|\n" + expected + "\n"), std::string::npos)
      << "docs/architectures.md: expected these rows, found others:\n"
      << expected;
}

}  // namespace
}  // namespace cairn::test::architectures_test
