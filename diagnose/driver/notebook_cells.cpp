#include "diagnose/driver/notebook_cells.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace bench::diagnose {
namespace {

using Json = nlohmann::json;

// Characters of a text for the JSON parser, which tells no positions: `line` follows what it has
// read. It reads a string up to its closing quote and no further, and a string holds no line feed
// of its own, so while a string is told, `line` is where it stands.
class CountingCharacters {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingCharacters(const char* at, std::uint32_t* line) : at_(at), line_(line) {}

  reference operator*() const { return *at_; }
  CountingCharacters& operator++() {
    *line_ += *at_ == '\n' ? 1 : 0;
    ++at_;
    return *this;
  }
  CountingCharacters operator++(int) {
    CountingCharacters before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingCharacters& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  std::uint32_t* line_;
};

// Events of the parser: keeps `cell_type` and `source` (a string, or a list of strings) of what
// stands in the list `cells` of the outermost object.
class CellCollector : public nlohmann::json_sax<Json> {
 public:
  explicit CellCollector(const std::uint32_t& line) : line_(line) {}

  std::vector<NotebookCell> take() { return std::move(cells_); }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
    return false;
  }

  bool string(string_t& text) override {
    if (!in_cell()) return true;
    const bool is_item = open_.size() == 4 && open_[3].is_list && open_[2].key == "source";
    if (open_.size() == 3 && open_[2].key == "cell_type") cells_.back().is_code = text == "code";
    if (is_item || (open_.size() == 3 && open_[2].key == "source")) add(text);
    return true;
  }

  bool start_object(std::size_t) override {
    if (open_.size() == 2 && open_[0].key == "cells" && !open_[0].is_list && open_[1].is_list) {
      cells_.emplace_back();
      at_line_begin_ = true;
    }
    open_.push_back({false, {}});
    return true;
  }
  bool key(string_t& name) override {
    open_.back().key = name;
    return true;
  }
  bool start_array(std::size_t) override {
    open_.push_back({true, {}});
    return true;
  }
  bool end_object() override {
    open_.pop_back();
    return true;
  }
  bool end_array() override { return end_object(); }

 private:
  struct Open {
    bool is_list = false;
    std::string key;  // of an object: what is being read
  };

  bool in_cell() const {
    return open_.size() >= 3 && open_[0].key == "cells" && open_[1].is_list && !open_[2].is_list;
  }

  // Parts of a list are joined as they are: a part may be less than a line, or several.
  void add(std::string_view text) {
    std::vector<CellLine>& lines = cells_.back().lines;
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      if (at_line_begin_) lines.push_back({{}, line_});
      lines.back().text += text.substr(0, end);
      at_line_begin_ = end != std::string_view::npos;
      text.remove_prefix(at_line_begin_ ? end + 1 : text.size());
    }
  }

  const std::uint32_t& line_;
  std::vector<Open> open_;
  std::vector<NotebookCell> cells_;
  bool at_line_begin_ = true;
};

}  // namespace

std::vector<NotebookCell> notebook_cells(std::string_view json) {
  std::uint32_t line = 1;
  CellCollector collector(line);
  const CountingCharacters begin(json.data(), &line);
  const CountingCharacters end(json.data() + json.size(), &line);
  return Json::sax_parse(begin, end, &collector) ? collector.take() : std::vector<NotebookCell>();
}

}  // namespace bench::diagnose
