// Places and spellings of values, and their text without blanks.
#include "json/document.h"

#include <gtest/gtest.h>

namespace cairn::json::document_test {
namespace {

TEST(JsonDocument, KnowsWhereEachValueStands) {
  auto document = Document::read("schema", "{ \"a\" : [ 1.0, \"x\\u0041\" ],\n\"b\":{ } }", {});
  ASSERT_TRUE(document) << document.error().message;
  const Document::Member* list = document->find(document->root(), "a");
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(list->offset, 2u);
  EXPECT_EQ(document->spelling(list->value), "[ 1.0, \"x\\u0041\" ]");
  EXPECT_EQ(document->compact(list->value), "[1.0,\"x\\u0041\"]");
  const uint32_t text = document->value(list->value).items[1];
  EXPECT_EQ(document->value(text).text, "xA");
  EXPECT_EQ(document->compact(text), "\"xA\"");
  EXPECT_EQ(document->compact(document->root()), "{\"a\":[1.0,\"x\\u0041\"],\"b\":{}}");
  EXPECT_EQ(document->find(list->value, "a"), nullptr);
}

}  // namespace
}  // namespace cairn::json::document_test
