// Reading a rule's page: its sections, and the cases that show it firing and staying silent.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace bench::pitfalls {

// The headings every page has, in this order.
inline constexpr std::string_view kPageHeadings[] = {
    "What it detects",  "Why it costs", "Measured here", "Fix",
    "When it is wrong", "Fires",        "Stays silent"};

std::string section(const Rule& rule, std::string_view heading);

// The page without its cases: what `bench explain` prints.
std::string guide(const Rule& rule);

struct PageCase {
  std::string title;
  bool fires = false;
  std::map<std::string, std::string> files;  // by name; the script is train.py unless named
  std::string script = "train.py";
  std::string launch;    // content of a ```launch block
  int gpus = 0;          // from a ```gpus block
  std::string expected;  // content of the ```finding block
};

std::vector<PageCase> cases_of(std::string_view page);

}  // namespace bench::pitfalls
