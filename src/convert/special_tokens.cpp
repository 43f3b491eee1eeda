// The order and the precedence are the usual converter's: the post-processor's template decides
// what is put around a text, tokenizer_config.json names the tokens, config.json fills what is
// left.
#include "convert/special_tokens.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/file.h"

namespace cairn::convert {
namespace {

constexpr size_t kTemplateBytesMax = size_t(1) << 20;
constexpr size_t kTemplatesMax = 64;

struct IdKey {
  std::string_view role, key;
};

// Roles in the order in which they are looked up; one without a key has none in GGUF.
constexpr IdKey kIdKeys[] = {
    {"bos", "tokenizer.ggml.bos_token_id"},     {"eos", "tokenizer.ggml.eos_token_id"},
    {"unk", "tokenizer.ggml.unknown_token_id"}, {"sep", "tokenizer.ggml.seperator_token_id"},
    {"pad", "tokenizer.ggml.padding_token_id"}, {"cls", ""},
    {"mask", "tokenizer.ggml.mask_token_id"},   {"eot", "tokenizer.ggml.eot_token_id"},
    {"eom", "tokenizer.ggml.eom_token_id"}};

constexpr IdKey kFlagKeys[] = {{"bos", "tokenizer.ggml.add_bos_token"},
                               {"eos", "tokenizer.ggml.add_eos_token"},
                               {"sep", "tokenizer.ggml.add_sep_token"}};

// A token is written as its text, or as an object with the text in it.
std::string token_text(const Json* value) {
  if (value == nullptr) return "";
  if (value->is_object()) return std::string(value->text_at("content").value_or(""));
  return std::string(value->as_text().value_or(""));
}

std::string special_in(const Json& step) {
  const Json* special = step.find("SpecialToken");
  return special == nullptr ? "" : std::string(special->text_at("id").value_or(""));
}

std::string sequence_in(const Json& step) {
  const Json* sequence = step.find("Sequence");
  return sequence == nullptr ? "" : std::string(sequence->text_at("id").value_or(""));
}

class Gatherer {
 public:
  Gatherer(const TokenizerFiles& files, int64_t token_count)
      : files_(files), token_count_(token_count), has_config_(files.tokenizer_config.is_object()) {
    for (const IdKey& row : kIdKeys) {
      const std::string text =
          token_text(files.tokenizer_config.find(std::string(row.role) + "_token"));
      if (!text.empty()) texts_[row.role] = text;
    }
  }

  Status gather() {
    if (files_.tokenizer.is_object()) {
      if (const Json* normalizer = files_.tokenizer.find_set("normalizer")) {
        read_normalizer(*normalizer);
      }
      if (texts_["bos"].empty()) texts_["bos"] = texts_["cls"];
      if (texts_["eos"].empty()) texts_["eos"] = texts_["sep"];
      read_post_processor();
    }
    if (has_config_) CAIRN_TRY(read_tokenizer_config());
    return read_config();
  }

  void assign(std::span<const TokenRole> roles) {
    const Json* added = files_.tokenizer.find("added_tokens");
    if (added == nullptr) return;
    for (const TokenRole& row : roles) {
      for (const Json& token : added->items()) {
        const Json* id = token.find("id");
        if (token.text_at("content") != row.text || id == nullptr || !id->as_integer()) continue;
        set_id(row.role, *id->as_integer());
      }
    }
  }

  Status add_to(KeyValues& out) const {
    for (const auto& [role, id] : ids_) {
      for (const IdKey& row : kIdKeys) {
        if (row.role == role && !row.key.empty()) out.set(row.key, uint32_t(id));
      }
    }
    for (const auto& [role, adds] : flags_) {
      for (const IdKey& row : kFlagKeys) {
        if (row.role == role) out.set(row.key, adds);
      }
    }
    CAIRN_TRY(add_template(out));
    if (lowercase_) out.set("tokenizer.ggml.normalizer.lowercase", *lowercase_);
    if (strip_accents_) out.set("tokenizer.ggml.normalizer.strip_accents", *strip_accents_);
    return Ok{};
  }

 private:
  using Flags = std::vector<std::pair<std::string_view, bool>>;

  void set_flag(std::string_view role, bool adds, bool replaces = true) {
    for (auto& [known, value] : flags_) {
      if (known != role) continue;
      if (replaces) value = adds;
      return;
    }
    flags_.emplace_back(role, adds);
  }

  Status set_id(std::string_view role, const Json* value) {
    // An id below 2^53, whatever its form; lists (several ends) are not one id.
    if (value == nullptr || value->kind() != Json::Kind::integer) return Ok{};
    const int64_t id = *value->as_integer();
    if (id < 0) {
      return fail(ErrorCode::invalid_data, "{}_token_id: expected an id, found {}", role, id);
    }
    set_id(role, id);
    return Ok{};
  }

  void set_id(std::string_view role, int64_t id) {
    const bool is_known =
        std::any_of(ids_.begin(), ids_.end(), [&](const auto& row) { return row.first == role; });
    if (!is_known && id >= 0 && id < token_count_) ids_.emplace_back(role, id);
  }

  void read_normalizer(const Json& normalizer) {
    const std::string_view type = normalizer.text_at("type").value_or("");
    if (type == "Lowercase") lowercase_ = true;
    if (type == "StripAccents") strip_accents_ = true;
    if (type == "BertNormalizer") {
      if (const Json* flag = normalizer.find("lowercase")) lowercase_ = flag->as_boolean();
      if (const Json* flag = normalizer.find("strip_accents")) strip_accents_ = flag->as_boolean();
    }
    if (const Json* list = normalizer.find("normalizers"); type == "Sequence" && list != nullptr) {
      for (const Json& item : list->items()) read_normalizer(item);
    }
  }

  void read_post_processor() {
    const Json* post = files_.tokenizer.find_set("post_processor");
    if (post == nullptr) return;
    const Json* list = post->find("processors");
    if (list == nullptr) {
      read_processor(*post);
      return;
    }
    for (const Json& processor : list->items()) read_processor(processor);
  }

  void read_processor(const Json& processor) {
    const std::string_view type = processor.text_at("type").value_or("");
    if (type == "ByteLevel") {
      set_flag("bos", false, false);
      set_flag("eos", false, false);
    } else if (type == "RobertaProcessing") {
      for (const std::string_view role : {"bos", "eos", "sep"}) set_flag(role, true);
    } else if (type == "TemplateProcessing") {
      read_single(processor);
      read_pair(processor);
    }
  }

  // The template of one text: "<s> A", "A </s>" …
  void read_single(const Json& processor) {
    first_.clear();
    last_.clear();
    const Json* single = processor.find("single");
    if (single == nullptr || single->items().size() < 2) return;
    first_ = special_in(single->items().front());
    last_ = special_in(single->items().back());
    if (!first_.empty()) {
      if (first_ != texts_["bos"] && first_ != texts_["cls"]) {
        if (texts_["bos"].empty()) texts_["bos"] = first_;
        if (texts_["cls"].empty() && has_config_) texts_["cls"] = first_;
      }
      set_flag("bos", first_ == texts_["bos"] || first_ == texts_["cls"]);
    }
    if (last_.empty()) return;
    if (last_ != texts_["eos"]) {
      // What ended a text so far ends a turn.
      if (has_config_ && !uses_eot_) {
        uses_eot_ = true;
        texts_["eot"] = texts_["eos"];
      } else if (has_config_ && !uses_eom_) {
        uses_eom_ = true;
        texts_["eom"] = texts_["eos"];
      }
      texts_["eos"] = last_;
    }
    set_flag("eos", true);
  }

  // The template of two texts says whether something stands between them.
  void read_pair(const Json& processor) {
    const Json* pair = processor.find("pair");
    if (pair == nullptr || pair->items().empty()) return;
    auto begin = pair->items().begin(), end = pair->items().end();
    if (!first_.empty() && special_in(*begin) == first_) ++begin;
    if (begin != end && !last_.empty() && special_in(*(end - 1)) == last_) --end;
    if (end - begin < 3 || sequence_in(*begin) != "A" || sequence_in(*(end - 1)) != "B") return;
    const auto separates = [&](const Json& step) {
      const std::string text = special_in(step);
      return !text.empty() && (text == texts_["sep"] || text == texts_["eos"]);
    };
    bool adds = separates(begin[1]) && last_.empty();
    if (end - begin == 4) adds = adds || separates(begin[2]);
    set_flag("sep", adds);
    if (adds && texts_["sep"].empty()) texts_["sep"] = texts_["eos"];
  }

  bool is_used(std::string_view role) const {
    if (role == "eot") return uses_eot_;
    if (role == "eom") return uses_eom_;
    return true;
  }

  Status read_tokenizer_config() {
    const Json* added = files_.tokenizer.find("added_tokens");
    for (const IdKey& row : kIdKeys) {
      if (!is_used(row.role)) continue;
      const Json* flag = files_.tokenizer_config.find("add_" + std::string(row.role) + "_token");
      if (flag != nullptr && flag->as_boolean()) set_flag(row.role, *flag->as_boolean(), false);
      const std::string& text = texts_[row.role];
      if (text.empty() || added == nullptr) continue;
      for (const Json& token : added->items()) {
        if (token.text_at("content") != text) continue;
        CAIRN_TRY(set_id(row.role, token.find("id")));
        break;
      }
    }
    return Ok{};
  }

  Status read_config() {
    const Json* text_config = files_.config.find_set("text_config");
    for (const IdKey& row : kIdKeys) {
      if (!is_used(row.role)) continue;
      const std::string key = std::string(row.role) + "_token_id";
      const Json* id = files_.config.find_set(key);
      if (id == nullptr && text_config != nullptr) id = text_config->find(key);
      CAIRN_TRY(set_id(row.role, id));
    }
    return Ok{};
  }

  // In tokenizer_config.json, or in a file of its own; one, or several with names.
  Status add_template(KeyValues& out) const {
    if (!has_config_) return Ok{};
    const Json* stated = files_.tokenizer_config.find("chat_template");
    if (stated != nullptr) return add_templates(*stated, out);
    const std::filesystem::path folder = files_.folder;
    Result<std::string> text =
        read_file((folder / "chat_template.jinja").string(), kTemplateBytesMax);
    if (text) {
      out.set("tokenizer.chat_template", without_returns(*text));
      return Ok{};
    }
    if (text.error().code != ErrorCode::not_found) return std::move(text).error();
    Result<Json> json = read_json_file((folder / "chat_template.json").string());
    if (!json) {
      if (json.error().code == ErrorCode::not_found) return Ok{};
      return std::move(json).error();
    }
    const Json* inside = json->find("chat_template");
    return inside == nullptr ? Status(Ok{}) : add_templates(*inside, out);
  }

  // Line ends as Python reads them.
  static std::string without_returns(const std::string& text) {
    std::string plain;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\r') {
        plain += text[i];
      } else if (i + 1 == text.size() || text[i + 1] != '\n') {
        plain += '\n';
      }
    }
    return plain;
  }

  static Status add_templates(const Json& value, KeyValues& out) {
    if (const auto text = value.as_text()) {
      out.set("tokenizer.chat_template", std::string(*text));
      return Ok{};
    }
    if (value.items().size() > kTemplatesMax) {
      return fail(ErrorCode::no_room, "chat_template: expected at most {} templates, found {}",
                  kTemplatesMax, value.items().size());
    }
    std::vector<std::string> names;
    std::optional<std::string> usual;
    for (const Json& item : value.items()) {
      std::string name(item.text_at("name").value_or(""));
      const auto text = item.text_at("template");
      if (name.empty() || !text) continue;
      for (char& c : name) {
        const bool is_plain =
            (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_plain) c = '_';
      }
      if (name == "default") {
        usual = *text;
        continue;
      }
      out.set("tokenizer.chat_template." + name, std::string(*text));
      names.push_back(name);
    }
    if (!names.empty()) out.set("tokenizer.chat_templates", names);
    if (usual) out.set("tokenizer.chat_template", *usual);
    return Ok{};
  }

  const TokenizerFiles& files_;
  int64_t token_count_;
  bool has_config_;
  std::map<std::string_view, std::string> texts_;  // By role.
  std::string first_, last_;                       // What the template of one text puts around it.
  bool uses_eot_ = false, uses_eom_ = false;
  std::vector<std::pair<std::string_view, int64_t>> ids_;
  Flags flags_;
  std::optional<bool> lowercase_, strip_accents_;
};

}  // namespace

Status add_special_tokens(const TokenizerFiles& files, int64_t token_count,
                          std::span<const TokenRole> roles, KeyValues& out) {
  Gatherer gatherer(files, token_count);
  CAIRN_TRY(gatherer.gather());
  gatherer.assign(roles);
  return gatherer.add_to(out);
}

}  // namespace cairn::convert
