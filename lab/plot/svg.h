// A picture as SVG 1.1: the few shapes that our plots are made of, written down in order. No
// scripts, no styles, nothing outside the file; the same calls give the same bytes everywhere.
#pragma once

#include <string>
#include <string_view>

namespace cgphase {

// Pixels; y grows downwards.
struct Point {
  double x = 0, y = 0;
};

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
  constexpr double right() const { return x + width; }
  constexpr double bottom() const { return y + height; }
};

// What text and frames are drawn in: at least 4.5 to 1 on white (WCAG 2.1, 1.4.3).
inline constexpr std::string_view kInk = "#222222";
inline constexpr std::string_view kFaintInk = "#595959";
inline constexpr std::string_view kGridColor = "#e0e0e0";
inline constexpr std::string_view kPaper = "#ffffff";

struct Stroke {
  std::string_view color = kInk;
  double width = 1;
  std::string_view dash = "";  // as of stroke-dasharray; "": solid
};

enum class Anchor { start, middle, end };

struct Font {
  double size = 12;
  Anchor anchor = Anchor::start;
  std::string_view color = kInk;
  bool bold = false;
};

// Foreign text as XML character data or attribute: what printable() (base/text.h) lets through,
// with markup escaped, and the two code points that XML has no way to write in hexadecimal.
std::string xml_text(std::string_view text);

// A finite coordinate with at most one decimal: "12", "0.5", never "-0".
std::string svg_number(double value);

// About how many pixels a line of text takes; fonts differ.
double text_pixels(std::string_view text, double font_size);
// The longest text that fits in `pixels`; what is longer ends in "...".
std::string fitted(std::string_view text, double font_size, double pixels);

class Svg {
 public:
  void rectangle(const Box& box, std::string_view fill);
  void line(Point from, Point to, const Stroke& stroke = {});
  // `d` is SVG path data.
  void path(std::string_view d, const Stroke& stroke = {});
  void shape(std::string_view d, std::string_view fill, double opacity = 1);
  void circle(Point center, double radius, std::string_view fill);
  // Escaped by xml_text(); a name that should be told from its escaped form comes from
  // escape_name().
  void text(Point baseline, std::string_view text, const Font& font = {});
  // A fill of stripes, used as "url(#ID)".
  void stripes(std::string_view id, std::string_view paper, std::string_view ink, int degrees);

  // The whole file, on white. Title and description are for screen readers.
  std::string document(double width, double height, std::string_view title,
                       std::string_view description) const;

 private:
  std::string definitions_, shapes_;
};

}  // namespace cgphase
