// A small SVG writer: escaped text, compact numbers, colours by CSS class so that light, dark and
// print follow the page. Nothing here knows what it draws.
#pragma once

#include <string>
#include <string_view>

namespace bench::report {

// & < > " ' for use in HTML text and attribute values.
std::string escape_html(std::string_view text);
// At most two decimals, no trailing zeros: "12.5", "3".
std::string svg_number(double value);

enum class Anchor { start, middle, end };

struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

class Svg {
 public:
  // `label` is what a screen reader says for the whole picture.
  Svg(double width, double height, std::string_view label, std::string_view css_class = {});

  // `tip` appears when the pointer rests on the shape; empty for none.
  void rect(const Box& box, std::string_view css_class, std::string_view tip = {});
  void line(double x1, double y1, double x2, double y2, std::string_view css_class);
  void text(double x, double y, std::string_view content, std::string_view css_class,
            Anchor anchor = Anchor::start);
  void circle(double x, double y, double radius, std::string_view css_class,
              std::string_view tip = {});
  // Raw path data, e.g. "M0,0h4v4h-4z".
  void path(std::string_view data, std::string_view css_class);

  std::string take();  // the finished element; the writer is empty afterwards

 private:
  std::string text_;
};

}  // namespace bench::report
