// Files that are not whole yet: what is kept of them, and when they are.
#include "hub/partial_file.h"

#include <gtest/gtest.h>

#include "tests/hub/hub_server.h"

namespace cairn::hub::partial_file_test {
namespace {

using test::contents_of;
using test::ScratchFolder;
using test::write_to;

Status write_text(PartialFile& file, uint64_t at, const std::string& text) {
  return file.write(at, std::as_bytes(std::span(text)));
}

const PartialFile::Terms kTerms{.bytes = 10, .chunk_bytes = 4, .identity = "x"};

TEST(PartialFile, GoesOnWithTheChunksThatWereFinished) {
  const ScratchFolder folder;
  const std::string path = folder.file("deep/below/a.gguf");
  {
    Result<PartialFile> file = PartialFile::open(path, kTerms);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->chunk_count(), 3u);
    EXPECT_EQ(file->chunk_end(2), 10u);
    ASSERT_TRUE(write_text(*file, 8, "ij"));
    ASSERT_TRUE(file->finish_chunk(2));
    ASSERT_TRUE(write_text(*file, 0, "ab"));  // Not finished.
  }
  Result<PartialFile> file = PartialFile::open(path, kTerms);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_FALSE(file->is_done(0));
  EXPECT_FALSE(file->is_done(1));
  EXPECT_TRUE(file->is_done(2));
  EXPECT_EQ(file->done_bytes(), 2u);
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE(write_text(*file, 0, "abcdefgh"));
  EXPECT_EQ(file->sha256(10, {}).value(), hex_digest("abcdefghij"));
  ASSERT_TRUE(file->commit(10));
  EXPECT_EQ(contents_of(path), "abcdefghij");
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
  EXPECT_FALSE(std::filesystem::exists(path + ".partial.chunks"));
}

TEST(PartialFile, OtherTermsBeginAnew) {
  const ScratchFolder folder;
  const std::string path = folder.file("a");
  const auto done_after = [&](const PartialFile::Terms& terms) {
    {
      Result<PartialFile> file = PartialFile::open(path, kTerms);
      EXPECT_TRUE(file && write_text(*file, 0, "abcd") && file->finish_chunk(0));
    }
    return PartialFile::open(path, terms)->done_bytes();
  };
  EXPECT_EQ(done_after(kTerms), 4u);
  EXPECT_EQ(done_after({.bytes = 10, .chunk_bytes = 4, .identity = "y"}), 0u);
  EXPECT_EQ(done_after({.bytes = 11, .chunk_bytes = 4, .identity = "x"}), 0u);
  EXPECT_EQ(done_after({.bytes = 10, .chunk_bytes = 0, .identity = "x"}), 0u);
  // What nobody can name is not gone on with.
  const PartialFile::Terms unknown{.bytes = 10, .chunk_bytes = 4, .identity = ""};
  EXPECT_EQ(done_after(unknown), 0u);
  {
    Result<PartialFile> file = PartialFile::open(path, unknown);
    EXPECT_TRUE(file && write_text(*file, 0, "abcd") && file->finish_chunk(0));
  }
  EXPECT_EQ(PartialFile::open(path, unknown)->done_bytes(), 0u);
}

// Who asks for smaller parts since the way is bad keeps what is there.
TEST(PartialFile, OtherChunksAreThoseOfBefore) {
  const ScratchFolder folder;
  const std::string path = folder.file("a");
  {
    Result<PartialFile> file = PartialFile::open(path, kTerms);
    ASSERT_TRUE(file && write_text(*file, 4, "efgh") && file->finish_chunk(1));
  }
  for (const uint64_t chunk_bytes : {1, 5, 100}) {
    Result<PartialFile> file =
        PartialFile::open(path, {.bytes = 10, .chunk_bytes = chunk_bytes, .identity = "x"});
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->chunk_count(), 3u);
    EXPECT_EQ(file->chunk_end(1), 8u);
    EXPECT_TRUE(file->is_done(1));
    EXPECT_EQ(file->done_bytes(), 4u);
  }
  write_to(path + ".partial.chunks", "cairn-partial-1 10 0 x\n");
  EXPECT_EQ(PartialFile::open(path, kTerms)->chunk_end(1), 8u);
}

TEST(PartialFile, DamagedListsOfChunksAreNotBelieved) {
  const ScratchFolder folder;
  const std::string path = folder.file("a"), chunks = path + ".partial.chunks";
  std::string head;
  {
    Result<PartialFile> file = PartialFile::open(path, kTerms);
    ASSERT_TRUE(file);
    head = contents_of(chunks);
  }
  const auto done_with = [&](const std::string& lines) {
    write_to(chunks, head + lines);
    return PartialFile::open(path, kTerms)->done_bytes();
  };
  EXPECT_EQ(done_with("0\n2\n"), 6u);
  EXPECT_EQ(done_with("0\n1"), 4u);  // Cut off.
  EXPECT_EQ(contents_of(chunks), head + "0\n");
  EXPECT_EQ(done_with("3\n"), 0u);
  EXPECT_EQ(done_with("x\n"), 0u);
  EXPECT_EQ(done_with("99999999999999999999999\n"), 0u);
  write_to(chunks, "nonsense");
  EXPECT_EQ(PartialFile::open(path, kTerms)->done_bytes(), 0u);
  write_to(path + ".partial", "short");
  EXPECT_EQ(done_with("0\n"), 0u);
}

TEST(PartialFile, IsOneProcessesAtATime) {
  const ScratchFolder folder;
  const std::string path = folder.file("a");
  Result<PartialFile> first = PartialFile::open(path, kTerms);
  ASSERT_TRUE(first);
  Result<PartialFile> second = PartialFile::open(path, kTerms);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::cancelled);
  ASSERT_TRUE(first->discard());
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
  EXPECT_TRUE(PartialFile::open(path, kTerms));
}

TEST(PartialFile, WhatTheDiskHasNoRoomForIsNotBegun) {
  const ScratchFolder folder;
  Result<PartialFile> file = PartialFile::open(
      folder.file("a"),
      {.bytes = uint64_t(1) << 50, .chunk_bytes = uint64_t(1) << 40, .identity = "x"});
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::no_room);
  EXPECT_NE(file.error().message.find("free on the disk"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  // More chunks than memory could count.
  file = PartialFile::open(folder.file("a"),
                           {.bytes = uint64_t(1) << 59, .chunk_bytes = 4096, .identity = "x"});
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::no_room);
}

TEST(PartialFile, LinksAreNotFollowed) {
  const ScratchFolder folder;
  write_to(folder.file("other"), "other");
  std::filesystem::create_symlink(folder.file("other"), folder.file("a.partial"));
  EXPECT_FALSE(PartialFile::open(folder.file("a"), kTerms));
  EXPECT_EQ(contents_of(folder.file("other")), "other");
}

TEST(PartialFile, DigestsOfFiles) {
  const ScratchFolder folder;
  const std::string bytes = model_bytes(3'000'000);
  write_to(folder.file("a"), bytes);
  uint64_t told = 0;
  EXPECT_EQ(sha256_of_file(folder.file("a"), [&](uint64_t done, uint64_t) { told = done; }).value(),
            hex_digest(bytes));
  EXPECT_EQ(told, bytes.size());
  EXPECT_FALSE(sha256_of_file(folder.file("none"), {}));
}

}  // namespace
}  // namespace cairn::hub::partial_file_test
