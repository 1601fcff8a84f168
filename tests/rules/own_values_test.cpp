// Values that are made of themselves: kwargs = dict(lr=0.1, **kwargs), device =
// torch.device(device). What follows a value to where it comes from must end there. Every page's
// cases run with every assignment and parameter given such a value too; a walk that does not end
// overflows the stack.
#include "diagnose/driver/diagnose.hpp"
#include "scenarios/pitfalls/page.hpp"
#include "scenarios/pitfalls/registry.hpp"

#include <gtest/gtest.h>

#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace bench::pitfalls {
namespace {

// NAME stands for the variable.
const std::vector<std::string> kForms = {
    "dict(a=1, **NAME)",
    "torch.device(NAME)",
    "functools.partial(NAME, 1)",
    "NAME.to(NAME)",
    "[NAME]",
    "NAME or other",
    "DDP(NAME)",
    "os.path.join(NAME, NAME)",
    "f\"{NAME}\"",
    "NAME[0]",
    "next(iter(NAME))",
    "NAME if flag else NAME",
    "NAME(NAME)",
    "lambda: NAME",
    "NAME + NAME",
    "{**NAME}",
    "int(NAME)",
    "copy.deepcopy(NAME)",
    "torch.load(NAME)",
    "NAME.module",
    "accelerator.prepare(NAME)",
    "DataLoader(NAME)",
    "zip(NAME, NAME)",
    "getattr(NAME, 'NAME')",
    "not NAME",
    "NAME == NAME",
};

constexpr std::size_t kFormsOfACase = 3;  // every case has others: all of them are run on a page

std::string with_name(std::string form, const std::string& name) {
  for (std::size_t at = 0; (at = form.find("NAME", at)) != std::string::npos; at += name.size())
    form.replace(at, 4, name);
  return form;
}

// name = FORM(name) below each assignment of one line, and for each parameter.
std::string made_of_itself(const std::string& source, const std::string& form) {
  static const std::regex assignment(R"(^(\s*)([A-Za-z_][\w.]*) = (.*[^\\\[({,])$)");
  static const std::regex definition(R"(^(\s*)def \w+\((.*)\):$)");
  static const std::regex parameter(R"(\s*\**(\w+)[^,]*,?)");
  std::istringstream lines(source);
  std::string out = "import functools\n";
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    out += line + "\n";
    if (std::regex_match(line, match, assignment)) {
      out += match.str(1) + match.str(2) + " = " + with_name(form, match.str(2)) + "\n";
    } else if (std::regex_match(line, match, definition)) {
      const std::string names = match.str(2);
      for (std::sregex_iterator at(names.begin(), names.end(), parameter), end; at != end; ++at)
        if (at->str(1) != "self")
          out += match.str(1) + "    " + at->str(1) + " = " + with_name(form, at->str(1)) + "\n";
    }
  }
  return out;
}

class OwnValues : public testing::TestWithParam<Rule> {};

TEST_P(OwnValues, AreFollowedToTheirEnd) {
  std::size_t next = 0;
  for (const PageCase& each : cases_of(page_of(GetParam())))
    for (std::size_t run = 0; run < kFormsOfACase; ++run) {
      std::map<std::string, std::string> files = each.files;
      for (auto& [name, source] : files)
        if (name.ends_with(".py")) source = made_of_itself(source, kForms[next % kForms.size()]);
      ++next;
      for (const Finding& finding : diagnose::diagnose_texts(files, each.script, {}))
        EXPECT_GE(finding.line, 1U) << each.title;
    }
  EXPECT_EQ(next > 0, GetParam().check != nullptr);
}

INSTANTIATE_TEST_SUITE_P(Pitfalls, OwnValues, testing::ValuesIn(all_rules()),
                         [](const testing::TestParamInfo<Rule>& each) {
                           return std::string(each.param.id);
                         });

}  // namespace
}  // namespace bench::pitfalls
