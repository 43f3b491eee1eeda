// Quantizing: which tensor gets which type, the bytes of its rows, importances, and that neither
// threads nor hostile files change anything. Covers importance.cpp and quantize_types.cpp too.
#include "quantize/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>

#include "base/text/byte_text.h"
#include "gguf/gguf.h"
#include "gguf/writer.h"
#include "quantize/importance.h"
#include "quantize/quantize_types.h"
#include "synth/synth.h"
#include "tests/sanitized.h"
#include "tests/scratch_folder.h"

namespace cairn::quantize::quantize_test {
namespace {

using test::contents_of;
using test::ScratchFolder;
using test::write_to;

std::string synthetic(const ScratchFolder& folder, std::string_view like, int32_t layer_count) {
  synth::SynthOptions options{.shape = synth::default_shape(like),
                              .type = "F16",
                              .seed = 5,
                              .out_path = folder.file(std::string(like) + ".gguf")};
  for (const synth::SynthField& field : synth::synth_fields()) {
    if (field.name == "layers") options.shape.*field.member = layer_count;
    if (field.name == "vocab") options.shape.*field.member = 512;
    // Their rows out are no multiple of large blocks, and there is less to search for IQ types.
    if (field.name == "expert-width" && options.shape.expert_width > 0) {
      options.shape.*field.member = 32;
    }
  }
  EXPECT_TRUE(synth::write_synthetic(options));
  return options.out_path;
}

std::map<std::string, std::string> types_of(const std::string& path) {
  std::map<std::string, std::string> types;
  const gguf::File file = gguf::File::open(path).value();
  for (const gguf::Tensor& tensor : file.tensors()) {
    types[std::string(tensor.name)] = gguf::type_name(tensor.type_id);
  }
  return types;
}

QuantizeReport run(const QuantizeOptions& options) {
  auto report = quantize(options);
  EXPECT_TRUE(report) << report.error().message;
  return report ? std::move(report).value() : QuantizeReport();
}

std::vector<TypeOverride> overrides_of(const std::vector<std::string>& texts) {
  std::vector<TypeOverride> overrides;
  for (const std::string& text : texts) {
    overrides.push_back(parse_override("overrides", text).value());
  }
  return overrides;
}

TEST(Quantize, MixesAreFoundByAllTheirNames) {
  EXPECT_EQ(find_mix("q4_k_m").value()->name, "Q4_K_M");
  EXPECT_EQ(find_mix("Q4_K").value()->name, "Q4_K_M");
  for (const QuantMix& mix : quant_mixes()) {
    EXPECT_EQ(find_mix(mix.name).value(), &mix);
    ASSERT_NE(quant::find(mix.base_type), nullptr) << mix.name;
    EXPECT_NE(quant::find(mix.base_type)->encode, nullptr) << mix.name;
  }
  const auto unknown = find_mix("Q4_K_XL");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("Q4_K_M, Q4_K_S"), std::string::npos);
}

// Of 16 layers the first two, the last two and every third in between have more bits in Q4_K_M.
TEST(Quantize, AMixGivesMoreBitsWhereItsNamePromises) {
  const ScratchFolder folder;
  const gguf::File file = gguf::File::open(synthetic(folder, "llama", 16)).value();
  const auto chosen = [&](std::string_view mix) {
    const TypeChoice choice = choose_types(file, *find_mix(mix).value(), {}, false).value();
    std::map<std::string, std::string> types;
    for (size_t i = 0; i < choice.types.size(); ++i) {
      types[std::string(file.tensors()[i].name)] =
          choice.types[i] == nullptr ? "-" : std::string(choice.types[i]->name);
    }
    return types;
  };
  const bool is_wide = file.find("blk.0.attn_v.weight")->dims[0] % 256 == 0;
  const auto kept = [&](std::string type) {
    if (is_wide) return type;
    return type == "Q4_K" ? std::string("Q5_0") : type == "Q6_K" ? std::string("Q8_0") : type;
  };
  auto types = chosen("Q4_K_M");
  for (int32_t layer = 0; layer < 16; ++layer) {
    const bool has_more = layer < 2 || layer >= 14 || (layer - 2) % 3 == 2;
    const std::string block = fmt::format("blk.{}.", layer);
    EXPECT_EQ(types[block + "attn_v.weight"], kept(has_more ? "Q6_K" : "Q4_K")) << layer;
    EXPECT_EQ(types[block + "attn_q.weight"], kept("Q4_K")) << layer;
    EXPECT_EQ(types[block + "attn_norm.weight"], "-");
  }
  types = chosen("Q8_0");
  EXPECT_EQ(types["blk.3.ffn_down.weight"], "Q8_0");
  EXPECT_EQ(types["token_embd.weight"], "Q8_0");
  types = chosen("F16");
  EXPECT_EQ(types["blk.3.ffn_down.weight"], "F16");
}

TEST(Quantize, ThreadsChangeNoByteAndRowsAreThoseOfTheEncoders) {
  const ScratchFolder folder;
  QuantizeOptions options{.in_path = synthetic(folder, "llama", 2),
                          .out_path = folder.file("one.gguf"),
                          .mix = "Q4_0",
                          .thread_count = 1};
  const QuantizeReport report = run(options);
  options.out_path = folder.file("three.gguf");
  options.thread_count = 3;
  run(options);
  const std::string bytes = contents_of(folder.file("one.gguf"));
  EXPECT_EQ(bytes.size(), report.out_bytes);
  EXPECT_TRUE(bytes == contents_of(folder.file("three.gguf")));
  const gguf::File in = gguf::File::open(options.in_path).value();
  const gguf::File out = gguf::File::open(options.out_path).value();
  ASSERT_EQ(in.tensors().size(), out.tensors().size());
  int64_t encoded = 0;
  for (const gguf::Tensor& tensor : out.tensors()) {
    const gguf::Tensor& before = *in.find(tensor.name);
    ASSERT_EQ(before.dims, tensor.dims);
    if (tensor.type == before.type) {
      EXPECT_TRUE(std::equal(tensor.bytes.begin(), tensor.bytes.end(), before.bytes.begin()));
      continue;
    }
    ++encoded;
    std::vector<float> weights(size_t(before.weight_count));
    quant::decode_row(*before.type, before.bytes, weights);
    std::vector<std::byte> expected(tensor.bytes.size());
    quant::encode_row(*tensor.type, weights, expected);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), tensor.bytes.begin())) << tensor.name;
  }
  EXPECT_GT(encoded, 10);
  EXPECT_EQ(out.fields().get<uint32_t>("general.file_type").value(), 2u);
  EXPECT_EQ(out.fields().get<std::string_view>("general.architecture").value(), "llama");
}

// Encoders that search code books: one of each width of entries.
TEST(Quantize, ThreadsChangeNoByteOfCodeBooks) {
  const ScratchFolder folder;
  const std::string path = synthetic(folder, "llama", 1);
  for (const std::string type : {"IQ1_S", "IQ2_XS", "IQ3_S"}) {
    std::string first;
    for (const int thread_count : {1, 3}) {
      const QuantizeOptions options{.in_path = path,
                                    .out_path = folder.file("out.gguf"),
                                    .mix = "Q8_0",
                                    .overrides = overrides_of({"*attn_q*=" + type}),
                                    .thread_count = thread_count};
      run(options);
      EXPECT_EQ(types_of(options.out_path)["blk.0.attn_q.weight"], type);
      const std::string bytes = contents_of(options.out_path);
      if (first.empty()) first = bytes;
      EXPECT_TRUE(bytes == first) << type << ", " << thread_count << " threads";
    }
  }
}

TEST(Quantize, EveryMixWritesAModelThatOpens) {
  const ScratchFolder folder;
  const std::string path = synthetic(folder, "qwen3moe", 1);
  constexpr size_t kEvery = test::kIsSanitized ? 3 : 1;
  for (size_t index = 0; index < quant_mixes().size(); index += kEvery) {
    const QuantMix& mix = quant_mixes()[index];
    const QuantizeOptions options{.in_path = path,
                                  .out_path = folder.file("out.gguf"),
                                  .mix = std::string(mix.name),
                                  .thread_count = 2};
    run(options);
    const gguf::File file = gguf::File::open(options.out_path).value();
    const auto* router = file.find("blk.0.ffn_gate_inp.weight");
    ASSERT_NE(router, nullptr);
    EXPECT_EQ(router->type->name, "F32") << mix.name;
    EXPECT_EQ(file.fields().get<uint32_t>("general.file_type").value(), uint32_t(mix.file_type));
  }
}

TEST(Quantize, PatternsChooseTensors) {
  EXPECT_TRUE(fits("blk.0.attn_q.weight", "blk.*.attn_q.weight"));
  EXPECT_TRUE(fits("blk.0.attn_q.weight", "*"));
  EXPECT_TRUE(fits("blk.0.attn_q.weight", "*q*weight*"));
  EXPECT_FALSE(fits("blk.0.attn_q.weight", "attn_q"));
  EXPECT_FALSE(fits("blk.0.attn_q.weight", "blk.1.*"));
  EXPECT_FALSE(fits("", "a"));
  EXPECT_TRUE(fits("", "**"));
  const ScratchFolder folder;
  QuantizeOptions options{.in_path = synthetic(folder, "llama", 2),
                          .out_path = folder.file("out.gguf"),
                          .mix = "Q8_0",
                          .overrides = overrides_of({"blk.1.*=F16", "blk.*.attn_q.weight=q4_0"})};
  run(options);
  auto types = types_of(options.out_path);
  EXPECT_EQ(types["blk.0.attn_q.weight"], "Q4_0");
  EXPECT_EQ(types["blk.1.attn_q.weight"], "F16") << "the first that fits counts";
  EXPECT_EQ(types["blk.1.ffn_up.weight"], "F16");
  EXPECT_EQ(types["blk.1.attn_norm.weight"], "F32");
  for (const std::string bad : {"blk.*", "=Q8_0", "blk.*=Q9"}) {
    const auto parsed = parse_override("--tensor", bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().code, ErrorCode::invalid_argument);
    EXPECT_TRUE(parsed.error().message.starts_with("--tensor: expected PATTERN=TYPE")) << bad;
  }
  options.overrides = overrides_of({"nothing=Q8_0"});
  const auto report = quantize(options);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(report.error().message,
            "overrides: expected a pattern that fits a matrix, found \"nothing\"");
}

TEST(Quantize, FewBitsWithoutImportancesAreCounted) {
  const ScratchFolder folder;
  QuantizeOptions options{.in_path = synthetic(folder, "llama", 1),
                          .out_path = folder.file("out.gguf"),
                          .mix = "Q8_0",
                          .thread_count = 2};
  EXPECT_EQ(run(options).blind_count, 0);
  options.overrides = overrides_of({"*attn_q*=IQ1_S"});
  EXPECT_EQ(run(options).blind_count, 1);
}

TEST(Quantize, TheInputIsNotWrittenOver) {
  const ScratchFolder folder;
  const std::string path = synthetic(folder, "llama", 2);
  const std::string before = contents_of(path);
  EXPECT_FALSE(quantize({.in_path = path, .out_path = path, .mix = "Q4_0"}));
  EXPECT_TRUE(contents_of(path) == before);
  EXPECT_FALSE(quantize({.in_path = path, .out_path = "/no/such/folder/x", .mix = "Q4_0"}));
}

// The same importances in both forms: inputs of a matrix get weights 1, 2, 3 … times a sum.
std::vector<float> sums_for(int64_t inputs, float scale) {
  std::vector<float> sums(static_cast<size_t>(inputs));
  for (size_t i = 0; i < sums.size(); ++i) sums[i] = scale * float(i % 7 == 0 ? 100 : i % 3);
  return sums;
}

void append_number(std::string& text, int32_t number) {
  text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

std::string dat_file(std::string_view name, int64_t inputs) {
  std::string text;
  append_number(text, 1);
  append_number(text, int32_t(name.size()));
  text += name;
  append_number(text, 4);  // Calls.
  append_number(text, int32_t(inputs));
  const auto sums = sums_for(inputs, 4);
  text.append(reinterpret_cast<const char*>(sums.data()), sums.size() * sizeof(float));
  append_number(text, 4);
  append_number(text, 5);
  return text + "x.txt";
}

void write_gguf(const std::string& path, std::string_view name, int64_t inputs, float count) {
  gguf::Writer writer;
  writer.add("general.type", "imatrix");
  const std::vector<std::string> sets{"x.txt"};
  writer.add_array("imatrix.datasets", std::span<const std::string>(sets));
  const int64_t dims[] = {inputs, 1}, count_dims[] = {1, 1};
  writer.declare(std::string(name) + ".in_sum2", dims, quant::find("F32")->gguf_id);
  writer.declare(std::string(name) + ".counts", count_dims, quant::find("F32")->gguf_id);
  gguf::TensorStream stream = writer.open_file(path).value();
  const auto sums = sums_for(inputs, count);
  ASSERT_TRUE(stream.append(std::as_bytes(std::span(sums))));
  ASSERT_TRUE(stream.append(std::as_bytes(std::span(&count, 1))));
  ASSERT_TRUE(stream.finish());
}

TEST(Quantize, BothFormsOfImportancesGiveTheSameAndReachTheEncoder) {
  const ScratchFolder folder;
  const std::string path = synthetic(folder, "llama", 2);
  const std::string name = "blk.0.attn_q.weight";
  const gguf::File in = gguf::File::open(path).value();
  const int64_t inputs = in.find(name)->dims[0];
  write_to(folder.file("i.dat"), dat_file(name, inputs));
  write_gguf(folder.file("i.gguf"), name, inputs, 8);
  std::string first;
  for (const std::string file : {"i.dat", "i.gguf"}) {
    const Importance importance = Importance::load(folder.file(file)).value();
    EXPECT_EQ(importance.size(), 1u);
    EXPECT_EQ(importance.datasets()[0], "x.txt");
    const auto factors = importance.of(name, inputs, 1).value();
    const auto expected = sums_for(inputs, 1);
    EXPECT_TRUE(std::equal(factors.begin(), factors.end(), expected.begin(), expected.end()));
    EXPECT_TRUE(importance.of("other", inputs, 1).value().empty());
    const auto wrong = importance.of(name, inputs, 2);
    ASSERT_FALSE(wrong);
    EXPECT_NE(wrong.error().message.find(name), std::string::npos);

    QuantizeOptions options{.in_path = path,
                            .out_path = folder.file("out.gguf"),
                            .mix = "Q4_0",
                            .importance_path = folder.file(file),
                            .thread_count = 2};
    const QuantizeReport report = run(options);
    EXPECT_NE(report.notes.back().find("no importances"), std::string::npos);
    const gguf::File out = gguf::File::open(options.out_path).value();
    const gguf::Tensor& tensor = *out.find(name);
    const gguf::Tensor& before = *in.find(name);
    std::vector<float> weights(size_t(before.weight_count)), all;
    quant::decode_row(*before.type, before.bytes, weights);
    for (int64_t row = 0; row < before.row_count(); ++row) {
      all.insert(all.end(), expected.begin(), expected.end());
    }
    std::vector<std::byte> wanted(tensor.bytes.size()), plain(tensor.bytes.size());
    quant::encode_row(*tensor.type, weights, wanted, all);
    quant::encode_row(*tensor.type, weights, plain);
    EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), tensor.bytes.begin()));
    EXPECT_FALSE(wanted == plain);
    const std::string bytes = contents_of(options.out_path);
    if (first.empty()) first = bytes;
    EXPECT_TRUE(bytes == first);
  }
}

// Of another model, or of nothing: without this the file would only be a little worse.
TEST(Quantize, ImportancesOfAnotherModelAreErrors) {
  const ScratchFolder folder;
  const std::string path = synthetic(folder, "llama", 1);
  write_to(folder.file("i.dat"), dat_file("blk.7.attn_q.weight", 64));
  const QuantizeOptions options{.in_path = path,
                                .out_path = folder.file("out.gguf"),
                                .mix = "Q4_0",
                                .importance_path = folder.file("i.dat"),
                                .thread_count = 1};
  const auto report = quantize(options);
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("found 1 of others (one is blk.7.attn_q.weight)"),
            std::string::npos)
      << report.error().message;
  EXPECT_FALSE(std::filesystem::exists(options.out_path));
}

TEST(Quantize, WeightsThatAreNoNumbersAreErrors) {
  const ScratchFolder folder;
  const std::string path = synthetic(folder, "llama", 1);
  const std::string good = contents_of(path);
  const gguf::File in = gguf::File::open(path).value();
  // A matrix that gets another type, and a norm that stays as it is; F16 and F32.
  const std::pair<const char*, uint32_t> cases[] = {{"blk.0.ffn_up.weight", 0x7e00},
                                                    {"blk.0.ffn_up.weight", 0xfc00},
                                                    {"blk.0.attn_norm.weight", 0x7f800000}};
  for (const auto& [name, bits] : cases) {
    const gguf::Tensor& tensor = *in.find(name);
    const size_t weight_bytes = size_t(tensor.type->block_bytes);
    const size_t row = tensor.row_count() > 2 ? 2 : 0;
    std::string bad = good;
    const size_t tensor_at = good.find(std::string(as_text(tensor.bytes)));
    ASSERT_NE(tensor_at, std::string::npos);
    const size_t at = tensor_at + (row * size_t(tensor.dims[0]) + 5) * weight_bytes;
    std::memcpy(bad.data() + at, &bits, weight_bytes);
    write_to(folder.file("bad.gguf"), bad);
    const QuantizeOptions options{.in_path = folder.file("bad.gguf"),
                                  .out_path = folder.file("out.gguf"),
                                  .mix = "Q4_0",
                                  .thread_count = 2};
    const auto report = quantize(options);
    ASSERT_FALSE(report) << name;
    const std::string expected =
        fmt::format("tensor {}: row {}, weight 5: expected a finite one, found ", name, row);
    EXPECT_TRUE(report.error().message.starts_with(expected)) << report.error().message;
    EXPECT_FALSE(std::filesystem::exists(options.out_path)) << name;
  }
}

// Infinities in F16, and scales that are cut in blocks, would be written without a word.
TEST(Quantize, WeightsBeyondATypeAreRefused) {
  const ScratchFolder folder;
  synth::SynthOptions made{.shape = synth::default_shape("llama"),
                           .type = "BF16",
                           .seed = 5,
                           .out_path = folder.file("bf16.gguf")};
  made.shape.layers = 1;
  ASSERT_TRUE(synth::write_synthetic(made));
  std::string bytes = contents_of(made.out_path);
  {
    const gguf::File in = gguf::File::open(made.out_path).value();
    const gguf::Tensor& tensor = *in.find("blk.0.ffn_up.weight");
    const size_t tensor_at = bytes.find(std::string(as_text(tensor.bytes)));
    ASSERT_NE(tensor_at, std::string::npos);
    const uint16_t minus_million = 0xc974;  // -999424
    std::memcpy(bytes.data() + tensor_at + (2 * size_t(tensor.dims[0]) + 5) * 2, &minus_million, 2);
  }
  write_to(folder.file("large.gguf"), bytes);
  for (const std::string mix : {"F16", "Q4_0", "Q8_0"}) {
    const auto report = quantize({.in_path = folder.file("large.gguf"),
                                  .out_path = folder.file("out.gguf"),
                                  .mix = mix,
                                  .thread_count = 2});
    ASSERT_FALSE(report) << mix;
    EXPECT_EQ(report.error().message,
              fmt::format("tensor blk.0.ffn_up.weight: row 2, weight 5: expected at most 65504 for "
                          "{}, found -999424; use BF16",
                          mix));
    EXPECT_FALSE(std::filesystem::exists(folder.file("out.gguf"))) << mix;
  }
  run({.in_path = folder.file("large.gguf"), .out_path = folder.file("out.gguf"), .mix = "BF16"});
}

TEST(Quantize, BrokenImportancesAreErrors) {
  const ScratchFolder folder;
  const std::string whole = dat_file("blk.0.attn_q.weight", 64);
  const std::string path = folder.file("i.dat");
  // Everything shorter up to the end of the values.
  for (size_t size = 1; size + 13 < whole.size(); size += 3) {
    write_to(path, whole.substr(0, size));
    EXPECT_FALSE(Importance::load(path)) << size;
  }
  std::mt19937 random(1);
  for (int round = 0; round < 150; ++round) {
    std::string broken = whole;
    for (int i = 0; i < 3; ++i) broken[random() % 44] = char(random());
    write_to(path, broken);
    (void)Importance::load(path);  // An error or not, but no crash.
  }
  write_gguf(folder.file("none.gguf"), "x", 64, 0);
  const Importance none = Importance::load(folder.file("none.gguf")).value();
  EXPECT_EQ(none.of("x", 64, 1).value()[5], 1.0f) << "what saw no token says nothing";
  EXPECT_FALSE(Importance::load(folder.file("missing")));
}

// A model in two files becomes one.
TEST(Quantize, SplitModelsAreRead) {
  const ScratchFolder folder;
  const std::string whole = synthetic(folder, "llama", 2);
  const gguf::File in = gguf::File::open(whole).value();
  const auto tensors = in.tensors();
  const size_t half = tensors.size() / 2;
  for (uint16_t part = 0; part < 2; ++part) {
    gguf::Writer writer;
    if (part == 0) {
      for (const gguf::Field& field : in.fields().all()) writer.add(field.key, field.value);
    }
    writer.add("split.no", part);
    writer.add("split.count", uint16_t(2));
    writer.add("split.tensors.count", int32_t(tensors.size()));
    const auto own = part == 0 ? tensors.first(half) : tensors.subspan(half);
    for (const gguf::Tensor& tensor : own) {
      writer.declare(tensor.name, std::span(tensor.dims).first(size_t(tensor.dim_count)),
                     tensor.type_id);
    }
    auto stream =
        writer.open_file(folder.file(fmt::format("s-0000{}-of-00002.gguf", part + 1))).value();
    for (const gguf::Tensor& tensor : own) ASSERT_TRUE(stream.append(tensor.bytes));
    ASSERT_TRUE(stream.finish());
  }
  run({.in_path = whole, .out_path = folder.file("a.gguf"), .mix = "Q5_0"});
  run({.in_path = folder.file("s-00001-of-00002.gguf"),
       .out_path = folder.file("b.gguf"),
       .mix = "Q5_0"});
  EXPECT_TRUE(contents_of(folder.file("a.gguf")) == contents_of(folder.file("b.gguf")));
  // None of the parts is written over.
  for (const char* part : {"s-00001-of-00002.gguf", "s-00002-of-00002.gguf"}) {
    const std::string before = contents_of(folder.file(part));
    const auto refused = quantize({.in_path = folder.file("s-00001-of-00002.gguf"),
                                   .out_path = folder.file(part),
                                   .mix = "Q5_0"});
    ASSERT_FALSE(refused) << part;
    EXPECT_NE(refused.error().message.find("expected another file than the input"),
              std::string::npos)
        << refused.error().message;
    EXPECT_TRUE(contents_of(folder.file(part)) == before);
  }
}

}  // namespace
}  // namespace cairn::quantize::quantize_test
