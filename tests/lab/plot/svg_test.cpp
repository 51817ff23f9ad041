#include "lab/plot/svg.h"

#include <doctest/doctest.h>

#include "tests/lab/plot/xml_check.h"

using namespace cgphase;
using namespace cgphase::test;

TEST_CASE("markup in a text is escaped") {
  CHECK(xml_text("a<b>&\"c\" 'd'") == "a&lt;b&gt;&amp;&quot;c&quot; &#39;d&#39;");
  CHECK(xml_text("</text><script>") == "&lt;/text&gt;&lt;script&gt;");
}

TEST_CASE("characters that XML excludes are written in hexadecimal") {
  CHECK(xml_text("\x1b[2J\n") == "\\x1b[2J\\x0a");
  CHECK(xml_text(std::string_view("\0", 1)) == "\\x00");
  CHECK(xml_text("\xff") == "\\xff");
  CHECK(xml_text("\xEF\xBF\xBE|\xEF\xBF\xBF") == "\\xef\\xbf\\xbe|\\xef\\xbf\\xbf");
}

TEST_CASE("letters of all scripts stay") {
  CHECK(xml_text("größe 漢字 \xEF\xBF\xBD") == "größe 漢字 \xEF\xBF\xBD");
}

TEST_CASE("coordinates have one decimal at most and no negative zero") {
  CHECK(svg_number(12) == "12");
  CHECK(svg_number(0.25) == "0.2");
  CHECK(svg_number(-1.5) == "-1.5");
  CHECK(svg_number(-0.01) == "0");
  CHECK(svg_number(1e6) == "1000000");
}

TEST_CASE("a text that is too long is shortened") {
  CHECK(fitted("short", 10, 100) == "short");
  CHECK(fitted("0123456789", 10, 48) == "01234...");
  CHECK(fitted("abc", 10, -5) == "");
}

TEST_CASE("a document is XML with title and description first") {
  Svg svg;
  svg.stripes("s", kPaper, kInk, 45);
  svg.rectangle({1, 2, 3, 4}, "url(#s)");
  svg.line({0, 0}, {1, 1}, {.dash = "2 3"});
  svg.path("M0 0L1 1");
  svg.shape("M0 0H1V1Z", kInk, 0.5);
  svg.circle({1, 1}, 2, kInk);
  svg.text({0, 0}, "<&>", {.anchor = Anchor::end, .bold = true});
  const std::string text = svg.document(10, 20, "a & b", "\"c\" < d");
  CHECK(xml_fault(text) == "");
  CHECK(text.find("<title id=\"plot-title\">a &amp; b</title>\n"
                  "<desc id=\"plot-description\">&quot;c&quot; &lt; d</desc>\n"
                  "<defs>") != std::string::npos);
  CHECK(text.find("viewBox=\"0 0 10 20\"") != std::string::npos);
  CHECK(text.ends_with("&lt;&amp;&gt;</text>\n</svg>\n"));
}

TEST_CASE("a path without data is left out") {
  Svg svg;
  svg.path("");
  svg.shape("", kInk);
  CHECK(svg.document(1, 1, "", "").find("<path") == std::string::npos);
}
