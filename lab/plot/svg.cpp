#include "lab/plot/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/check.h"
#include "base/text.h"
#include "cli/output/text_width.h"

namespace cgphase {
namespace {

constexpr double kPixelsPerColumn = 0.6;  // of the font size; average of DejaVu Sans

template <class... Parts>
void append(std::string& out, fmt::format_string<Parts...> form, Parts&&... parts) {
  fmt::format_to(std::back_inserter(out), form, std::forward<Parts>(parts)...);
}

std::string_view anchor_word(Anchor anchor) {
  switch (anchor) {
    case Anchor::start: return "start";
    case Anchor::middle: return "middle";
    case Anchor::end: return "end";
  }
  return "";
}

std::string stroke_of(const Stroke& stroke) {
  std::string out =
      fmt::format("stroke=\"{}\" stroke-width=\"{}\"", stroke.color, svg_number(stroke.width));
  if (!stroke.dash.empty()) append(out, " stroke-dasharray=\"{}\"", stroke.dash);
  return out;
}

// U+FFFE and U+FFFF in UTF-8. XML 1.0 excludes them (section 2.2); printable() does not.
bool starts_with_noncharacter(std::string_view text) {
  return text.starts_with("\xEF\xBF\xBE") || text.starts_with("\xEF\xBF\xBF");
}

}  // namespace

std::string xml_text(std::string_view text) {
  const std::string shown = printable(text);
  std::string out;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    switch (shown[i]) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default:
        if (starts_with_noncharacter(std::string_view(shown).substr(i))) {
          append(out, "\\xef\\xbf\\x{:02x}", static_cast<unsigned char>(shown[i + 2]));
          i += 2;
        } else {
          out += shown[i];
        }
    }
  }
  return out;
}

std::string svg_number(double value) {
  CHECK_INVARIANT(std::isfinite(value));
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

double text_pixels(std::string_view text, double font_size) {
  return static_cast<double>(display_width(text)) * font_size * kPixelsPerColumn;
}

std::string fitted(std::string_view text, double font_size, double pixels) {
  const double columns = std::max(pixels / (font_size * kPixelsPerColumn), 0.0);
  return shortened(text, static_cast<std::size_t>(columns));
}

void Svg::rectangle(const Box& box, std::string_view fill) {
  append(shapes_, "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n",
         svg_number(box.x), svg_number(box.y), svg_number(box.width), svg_number(box.height), fill);
}

void Svg::line(Point from, Point to, const Stroke& stroke) {
  append(shapes_, "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" {}/>\n", svg_number(from.x),
         svg_number(from.y), svg_number(to.x), svg_number(to.y), stroke_of(stroke));
}

void Svg::path(std::string_view d, const Stroke& stroke) {
  if (d.empty()) return;
  append(shapes_,
         "<path d=\"{}\" fill=\"none\" {} stroke-linejoin=\"round\" stroke-linecap=\"round\"/>\n",
         d, stroke_of(stroke));
}

void Svg::shape(std::string_view d, std::string_view fill, double opacity) {
  if (d.empty()) return;
  append(shapes_, "<path d=\"{}\" fill=\"{}\"", d, fill);
  if (opacity < 1) append(shapes_, " fill-opacity=\"{:.2f}\"", opacity);
  shapes_ += "/>\n";
}

void Svg::circle(Point center, double radius, std::string_view fill) {
  append(shapes_, "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\"/>\n", svg_number(center.x),
         svg_number(center.y), svg_number(radius), fill);
}

void Svg::text(Point baseline, std::string_view text, const Font& font) {
  append(shapes_, "<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\"", svg_number(baseline.x),
         svg_number(baseline.y), svg_number(font.size), font.color);
  if (font.anchor != Anchor::start)
    append(shapes_, " text-anchor=\"{}\"", anchor_word(font.anchor));
  if (font.bold) shapes_ += " font-weight=\"bold\"";
  append(shapes_, ">{}</text>\n", xml_text(text));
}

void Svg::stripes(std::string_view id, std::string_view paper, std::string_view ink,
                  int degrees) {
  append(definitions_,
         "<pattern id=\"{}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
         "patternTransform=\"rotate({})\">\n<rect width=\"6\" height=\"6\" fill=\"{}\"/>\n"
         "<rect width=\"2\" height=\"6\" fill=\"{}\"/>\n</pattern>\n",
         id, degrees, paper, ink);
}

std::string Svg::document(double width, double height, std::string_view title,
                          std::string_view description) const {
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  append(out,
         "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"{0}\" height=\"{1}\" "
         "viewBox=\"0 0 {0} {1}\" role=\"img\" aria-labelledby=\"plot-title plot-description\" "
         "font-family=\"DejaVu Sans, Verdana, sans-serif\">\n",
         svg_number(width), svg_number(height));
  append(out, "<title id=\"plot-title\">{}</title>\n", xml_text(title));
  append(out, "<desc id=\"plot-description\">{}</desc>\n", xml_text(description));
  if (!definitions_.empty()) append(out, "<defs>\n{}</defs>\n", definitions_);
  append(out, "<rect width=\"100%\" height=\"100%\" fill=\"{}\"/>\n", kPaper);
  return out + shapes_ + "</svg>\n";
}

}  // namespace cgphase
