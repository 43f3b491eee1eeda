// The page as the server sends it: types, names of contents, what browsers are told to refuse, and
// that nothing of it needs anything else.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <string>

#include "serve/page/page_files.h"
#include "tests/serve/serving.h"

namespace cairn::serve::page_test {
namespace {

AppOptions with_key() {
  AppOptions options;
  EXPECT_TRUE(options.keys.add("a-key-of-a-user-1234", Role::user));
  return options;
}

TEST(Page, NeedsNoKey) {
  Serving serving(with_key());
  const BareReply page = serving.get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_TRUE(page.has("content-type: text/html; charset=utf-8\r\n"));
  EXPECT_NE(page.body.find("<!doctype html>"), std::string::npos);
  for (const PageFile& file : page_files()) {
    const BareReply reply = serving.get("/page/" + std::string(file.name));
    EXPECT_EQ(reply.status, 200) << file.name;
    EXPECT_EQ(reply.body, file.bytes);
    EXPECT_FALSE(reply.has("application/octet-stream")) << file.name;
  }
  EXPECT_EQ(serving.get("/v1/models").status, 401);
}

TEST(Page, TellsBrowsersWhatToRefuse) {
  Serving serving;
  for (const char* path : {"/", "/page/main.js", "/page/style.css"}) {
    const BareReply reply = serving.get(path);
    EXPECT_TRUE(reply.has("content-security-policy: default-src 'none'; script-src 'self'; "));
    EXPECT_TRUE(reply.has("frame-ancestors 'none'"));
    EXPECT_TRUE(reply.has("require-trusted-types-for 'script'"));
    EXPECT_FALSE(reply.has("unsafe-"));
    EXPECT_TRUE(reply.has("x-content-type-options: nosniff\r\n"));
    EXPECT_TRUE(reply.has("referrer-policy: no-referrer\r\n"));
    EXPECT_TRUE(reply.has("cross-origin-resource-policy: same-origin\r\n"));
  }
}

TEST(Page, IsNotSentAgainWhereItIsKnown) {
  Serving serving;
  const BareReply first = serving.get("/page/main.js");
  std::smatch tag;
  ASSERT_TRUE(std::regex_search(first.head, tag, std::regex("etag: (\"[0-9a-f]{32}\")\r\n")));
  BareClient asking = serving.client();
  ASSERT_TRUE(asking.send(get_request("/page/main.js", "If-None-Match: " + tag[1].str() + "\r\n")));
  const BareReply again = asking.read_reply(false);
  EXPECT_EQ(again.status, 304);
  EXPECT_FALSE(again.has("content-length"));
  // The connection goes on.
  ASSERT_TRUE(asking.send(get_request("/page/main.js", "If-None-Match: \"another\"\r\n")));
  EXPECT_EQ(asking.read_reply().status, 200);
}

TEST(Page, UnknownFilesAreNotThere) {
  Serving serving;
  for (const char* path : {"/page/", "/page/other.js", "/page/../app.cpp", "/page/page_files.h"}) {
    EXPECT_EQ(serving.get(path).status / 100, 4) << path;
  }
  EXPECT_EQ(serving.post("/", "{}").status, 405);
}

// No text becomes markup, nothing stands inline, and nothing comes from elsewhere.
TEST(Page, LoadsOnlyItsOwnFiles) {
  const std::regex asked("(?:src|href|from|import)[ =(]*\"(/[^\"]*)\"");
  for (const PageFile& file : page_files()) {
    const std::string text(file.bytes);
    for (const char* forbidden : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write",
                                  "eval(", "new Function", " style=\"", " onclick=\""}) {
      EXPECT_EQ(text.find(forbidden), std::string::npos) << file.name << ": " << forbidden;
    }
    for (std::sregex_iterator found(text.begin(), text.end(), asked), end; found != end; ++found) {
      const std::string path = (*found)[1];
      const bool is_there = std::any_of(
          page_files().begin(), page_files().end(),
          [&](const PageFile& other) { return path == "/page/" + std::string(other.name); });
      EXPECT_TRUE(is_there) << file.name << " asks for " << path;
    }
    if (file.name.ends_with(".html")) {
      EXPECT_EQ(text.find("http://"), std::string::npos);
      EXPECT_EQ(text.find("https://"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace cairn::serve::page_test
