// Manifests read back; whatever else their bytes say is refused, or checked by who uses it.
#include "store/manifest.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/store/store_bench.h"

namespace cairn::store::manifest_test {
namespace {

Manifest some_manifest(toy::StoreBench& bench) {
  const auto snapshot = bench.snapshot_of(memory::toy::conversation(bench.here));
  Manifest manifest = snapshot->manifest();
  for (size_t piece = 0; piece < snapshot->pieces().size(); ++piece) {
    manifest.pieces.push_back({.name = Sha256().add(uint64_t(piece)).finish(),
                               .digest = Sha256().add("digest").finish(),
                               .file_bytes = 8192 + piece});
  }
  return manifest;
}

TEST(Manifest, ReadsBack) {
  for (const toy::ToyModel& model : toy::store_models()) {
    toy::StoreBench bench(model);
    Manifest manifest = some_manifest(bench);
    EXPECT_FALSE(manifest.hidden_rows.empty());
    for (const uint64_t tenant : {uint64_t(0), uint64_t(1) << 63 | 5}) {
      manifest.tenant = tenant;
      const std::vector<std::byte> bytes = encode(manifest);
      EXPECT_EQ(decode_manifest(bytes, manifest.outline.tokens).value(), manifest);
    }
  }
}

TEST(Manifest, AnyBytesAreRefusedOrAManifest) {
  toy::StoreBench bench(toy::mixed_model());
  const Manifest manifest = some_manifest(bench);
  const std::vector<std::byte> bytes = encode(manifest);
  const std::vector<Token>& tokens = manifest.outline.tokens;
  for (size_t count = 0; count < bytes.size(); ++count) {
    ASSERT_FALSE(bool(decode_manifest(std::span(bytes).first(count), tokens))) << count;
  }
  std::mt19937 random(1);
  int32_t read = 0;
  for (int32_t round = 0; round < 20'000; ++round) {
    std::vector<std::byte> changed = bytes;
    for (uint32_t flips = 1 + uint32_t(random() % 3); flips > 0; --flips) {
      changed[random() % changed.size()] ^= std::byte(1 << random() % 8);
    }
    const Result<Manifest> found = decode_manifest(changed, tokens);
    if (!found) continue;
    ++read;
    // What is read says what it said; whether a sequence could be so is asked of its outline.
    ASSERT_EQ(encode(Result<Manifest>(found).value()), changed);
    (void)check(Result<Manifest>(found).value().outline, bench.here.memory->layout());
  }
  EXPECT_GT(read, 1000);
}

// Counts that no file could hold make no room for them.
TEST(Manifest, CountsAreBelievedOnlyAsFarAsThereAreBytes) {
  for (size_t place : {size_t(2 + 9), size_t(2 + 13), size_t(2 + 17)}) {
    std::vector<std::byte> bytes(64, std::byte{0});
    for (size_t i = 0; i < 4; ++i) bytes[place + i] = std::byte{0xFF};
    EXPECT_EQ(decode_manifest(bytes, {Token(1)}).error().code, ErrorCode::invalid_data);
  }
}

}  // namespace
}  // namespace cairn::store::manifest_test
