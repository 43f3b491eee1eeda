// Any bytes as what hubs answer: lists of files, manifests, headers; as records of what was
// fetched; as references. The first byte chooses which. What is read of a list is safe to be chosen
// from.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "hub/answers.h"
#include "hub/file_choice.h"
#include "hub/model_folder.h"
#include "hub/model_reference.h"
#include "hub/web_url.h"

namespace hub = cairn::hub;

namespace {

void choose(std::string_view text) {
  std::vector<hub::ListedFile> files;
  if (!hub::parse_tree_page(text, files)) return;
  for (const char* pick : {"", "Q4_K_M", "a.gguf"}) {
    auto choice = hub::choose_gguf("a/b", files, pick);
    if (!choice) continue;
    CHECK(!choice->files.empty());
    for (const size_t place : choice->files) CHECK(hub::is_safe_path(files.at(place).path));
  }
  for (const size_t place : hub::choose_folder(files)) {
    CHECK(hub::is_safe_path(files.at(place).path));
  }
}

void refer(std::string_view text) {
  auto reference = hub::parse_pull_reference(text);
  if (!reference) return;
  auto again = hub::parse_reference(hub::to_text(*reference));
  CHECK(again);
  CHECK(hub::to_text(*again) == hub::to_text(*reference));
  auto folder = hub::ModelFolder("/m").folder_of(*reference);
  if (folder) CHECK((*folder).find("/../") == std::string::npos);
}

void record(std::string_view text) {
  auto read = hub::parse_record("record", text);
  if (!read) return;
  auto again = hub::parse_record("record", hub::to_text(*read));
  CHECK(again);
  CHECK(hub::to_text(*again) == hub::to_text(*read));
}

void follow(std::string_view text) {
  auto base = hub::parse_url("https://hub.example/a/b");
  CHECK(base);
  auto url = hub::follow_url(*base, text);
  if (!url) return;
  CHECK(url->is_secure);
  auto again = hub::parse_url(url->text);
  if (again) CHECK(again->origin == url->origin);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 8) {
    case 0:
      choose(text);
      break;
    case 1:
      refer(text);
      break;
    case 2:
      record(text);
      break;
    case 3:
      follow(text);
      break;
    case 4:
      (void)hub::parse_manifest(text);
      break;
    case 5:
      (void)hub::next_link(text);
      break;
    case 6:
      (void)hub::parse_content_range(text);
      break;
    case 7:
      (void)hub::parse_model_info(text);
      break;
  }
  return 0;
}
