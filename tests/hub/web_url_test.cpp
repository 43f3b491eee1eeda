// Where URLs lead, and where they must not.
#include "hub/web_url.h"

#include <gtest/gtest.h>

namespace cairn::hub::web_url_test {
namespace {

TEST(WebUrl, OriginsAreNormal) {
  Result<WebUrl> url = parse_url("https://Example.ORG/a/./b/../c?x=1#part");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->origin, "https://example.org:443");
  EXPECT_EQ(url->path, "/a/c");
  EXPECT_TRUE(url->text.ends_with("/a/c?x=1")) << url->text;
  EXPECT_TRUE(url->is_secure);
  EXPECT_FALSE(url->is_here);
  EXPECT_EQ(without_query(*url).find('?'), std::string::npos);
  EXPECT_EQ(parse_url("http://h:8080/")->origin, "http://h:8080");
  for (const char* own : {"http://localhost/", "http://127.0.0.1:1/", "http://[::1]:1/"}) {
    EXPECT_TRUE(parse_url(own)->is_here) << own;
  }
  EXPECT_FALSE(parse_url("http://localhost.example.org/")->is_here);
}

TEST(WebUrl, OthersAreRefused) {
  for (const char* text : {"", "example.org", "ftp://h/x", "file:///etc/passwd", "https://",
                           "https://user@h/", "https://user:word@h/", "https://h:99999/"}) {
    EXPECT_FALSE(parse_url(text)) << text;
  }
  EXPECT_FALSE(parse_url(std::string("https://h/\0x", 12)));
}

TEST(WebUrl, RedirectsAreFollowedUnderTls) {
  const WebUrl base = parse_url("https://h/a/b?q=1").value();
  EXPECT_EQ(follow_url(base, "/c")->text, "https://h/c");
  EXPECT_EQ(follow_url(base, "c")->text, "https://h/a/c");
  EXPECT_EQ(follow_url(base, "//other/c")->origin, "https://other:443");
  EXPECT_EQ(follow_url(base, "https://other:444/c")->origin, "https://other:444");
  EXPECT_FALSE(follow_url(base, "http://h/c"));
  EXPECT_FALSE(follow_url(base, "file:///etc/passwd"));
  EXPECT_FALSE(follow_url(base, "https://user:word@h/"));
  const WebUrl plain = parse_url("http://h/a").value();
  EXPECT_TRUE(follow_url(plain, "http://other/"));
  EXPECT_TRUE(follow_url(plain, "https://other/"));
}

TEST(WebUrl, PathsAreEscaped) {
  EXPECT_EQ(escape_path("a b/c?d#e%\xc3\xa4+"), "a%20b/c%3Fd%23e%25%C3%A4%2B");
}

}  // namespace
}  // namespace cairn::hub::web_url_test
