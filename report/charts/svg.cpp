#include "report/charts/svg.hpp"

#include <fmt/format.h>

#include <cmath>

namespace bench::report {

std::string escape_html(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string svg_number(double value) {
  std::string text = fmt::format("{:.2f}", std::isfinite(value) ? value : 0.0);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

Svg::Svg(double width, double height, std::string_view label, std::string_view css_class) {
  const std::string named = css_class.empty() ? "" : fmt::format(" class=\"{}\"", css_class);
  text_ = fmt::format("<svg viewBox=\"0 0 {} {}\"{} role=\"img\" aria-label=\"{}\">\n",
                      svg_number(width), svg_number(height), named, escape_html(label));
}

void Svg::rect(const Box& box, std::string_view css_class, std::string_view tip) {
  text_ +=
      fmt::format(R"(<rect x="{}" y="{}" width="{}" height="{}" class="{}")", svg_number(box.x),
                  svg_number(box.y), svg_number(box.width), svg_number(box.height), css_class);
  text_ += tip.empty() ? "/>\n" : "><title>" + escape_html(tip) + "</title></rect>\n";
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view css_class) {
  text_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{}\"/>\n",
                       svg_number(x1), svg_number(y1), svg_number(x2), svg_number(y2), css_class);
}

void Svg::text(double x, double y, std::string_view content, std::string_view css_class,
               Anchor anchor) {
  constexpr const char* kAnchors[] = {"start", "middle", "end"};
  text_ += fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n",
                       svg_number(x), svg_number(y), css_class, kAnchors[static_cast<int>(anchor)],
                       escape_html(content));
}

void Svg::circle(double x, double y, double radius, std::string_view css_class,
                 std::string_view tip) {
  text_ += fmt::format(R"(<circle cx="{}" cy="{}" r="{}" class="{}")", svg_number(x), svg_number(y),
                       svg_number(radius), css_class);
  text_ += tip.empty() ? "/>\n" : "><title>" + escape_html(tip) + "</title></circle>\n";
}

void Svg::path(std::string_view data, std::string_view css_class) {
  text_ += fmt::format("<path d=\"{}\" class=\"{}\"/>\n", data, css_class);
}

std::string Svg::take() {
  std::string finished = std::move(text_) + "</svg>\n";
  text_.clear();
  return finished;
}

}  // namespace bench::report
