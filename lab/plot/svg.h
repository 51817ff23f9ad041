// Writes SVG 1.1: the shapes of our plots, in order. No scripts, no styles, no external references.
// The same calls give the same bytes everywhere.
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

// Colour of text and frames; contrast at least 4.5 to 1 on white (WCAG 2.1, 1.4.3).
inline constexpr std::string_view kInk = "#222222";
inline constexpr std::string_view kFaintInk = "#595959";
inline constexpr std::string_view kGridColor = "#e0e0e0";
inline constexpr std::string_view kPaper = "#ffffff";

struct Stroke {
  std::string_view color = kInk;
  double width = 1;
  std::string_view dash = "";  // stroke-dasharray; "": solid
};

enum class Anchor { start, middle, end };

struct Font {
  double size = 12;
  Anchor anchor = Anchor::start;
  std::string_view color = kInk;
  bool bold = false;
};

// Returns foreign text as XML character data or attribute: the output of printable() (base/text.h)
// with markup escaped. The two code points that XML cannot represent are written in hexadecimal.
std::string xml_text(std::string_view text);

// Returns a finite coordinate with at most one decimal: "12", "0.5", never "-0".
std::string svg_number(double value);

// Approximate width of a line of text, in pixels; fonts differ.
double text_pixels(std::string_view text, double font_size);
// Shortens text to fit in `pixels`; shortened text ends in "...".
std::string fitted(std::string_view text, double font_size, double pixels);

class Svg {
 public:
  void rectangle(const Box& box, std::string_view fill);
  void line(Point from, Point to, const Stroke& stroke = {});
  // `d` is SVG path data.
  void path(std::string_view d, const Stroke& stroke = {});
  void shape(std::string_view d, std::string_view fill, double opacity = 1);
  void circle(Point center, double radius, std::string_view fill);
  // The text is escaped by xml_text(). Pass a name through escape_name() if it must differ from its
  // escaped form.
  void text(Point baseline, std::string_view text, const Font& font = {});
  // Defines a fill of stripes, used as "url(#ID)".
  void stripes(std::string_view id, std::string_view paper, std::string_view ink, int degrees);

  // Returns the whole file, on white. Title and description are for screen readers.
  std::string document(double width, double height, std::string_view title,
                       std::string_view description) const;

 private:
  std::string definitions_, shapes_;
};

}  // namespace cgphase
