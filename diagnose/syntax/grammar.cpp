#include "diagnose/syntax/grammar.hpp"

#include <cstring>
#include <string_view>
#include <unordered_map>

namespace bench::diagnose {
namespace {

struct KindName {
  const char* name;
  Kind kind;
};

constexpr KindName kKinds[] = {
    {"module", Kind::module},
    {"import_statement", Kind::import_statement},
    {"import_from_statement", Kind::import_from},
    {"future_import_statement", Kind::other},
    {"aliased_import", Kind::aliased_import},
    {"dotted_name", Kind::dotted_name},
    {"relative_import", Kind::relative_import},
    {"wildcard_import", Kind::wildcard_import},
    {"expression_statement", Kind::expression_statement},
    {"assignment", Kind::assignment},
    {"augmented_assignment", Kind::augmented_assignment},
    {"named_expression", Kind::named_expression},
    {"call", Kind::call},
    {"argument_list", Kind::argument_list},
    {"generator_expression", Kind::comprehension},
    {"keyword_argument", Kind::keyword_argument},
    {"list_splat", Kind::list_splat},
    {"dictionary_splat", Kind::dictionary_splat},
    {"identifier", Kind::identifier},
    {"keyword_identifier", Kind::identifier},
    {"attribute", Kind::attribute},
    {"subscript", Kind::subscript},
    {"slice", Kind::slice},
    {"list", Kind::list},
    {"tuple", Kind::tuple},
    {"expression_list", Kind::tuple},
    {"pattern_list", Kind::tuple},
    {"tuple_pattern", Kind::tuple},
    {"list_pattern", Kind::tuple},
    {"dictionary", Kind::dictionary},
    {"set", Kind::set},
    {"pair", Kind::pair},
    {"concatenated_string", Kind::concatenated_string},
    {"integer", Kind::integer},
    {"float", Kind::floating},
    {"true", Kind::true_literal},
    {"false", Kind::false_literal},
    {"none", Kind::none_literal},
    {"unary_operator", Kind::unary},
    {"not_operator", Kind::not_expression},
    {"boolean_operator", Kind::boolean},
    {"comparison_operator", Kind::comparison},
    {"binary_operator", Kind::binary},
    {"conditional_expression", Kind::conditional},
    {"lambda", Kind::lambda},
    {"list_comprehension", Kind::comprehension},
    {"set_comprehension", Kind::comprehension},
    {"dictionary_comprehension", Kind::comprehension},
    {"for_in_clause", Kind::for_in_clause},
    {"if_clause", Kind::if_clause},
    {"function_definition", Kind::function},
    {"class_definition", Kind::class_definition},
    {"decorated_definition", Kind::decorated},
    {"decorator", Kind::decorator},
    {"parameters", Kind::parameters},
    {"lambda_parameters", Kind::parameters},
    {"default_parameter", Kind::default_parameter},
    {"typed_default_parameter", Kind::default_parameter},
    {"typed_parameter", Kind::typed_parameter},
    {"list_splat_pattern", Kind::list_splat_parameter},
    {"dictionary_splat_pattern", Kind::dictionary_splat_parameter},
    {"block", Kind::block},
    {"if_statement", Kind::if_statement},
    {"elif_clause", Kind::elif_clause},
    {"else_clause", Kind::else_clause},
    {"for_statement", Kind::for_statement},
    {"while_statement", Kind::while_statement},
    {"with_statement", Kind::with_statement},
    {"with_item", Kind::with_item},
    {"as_pattern", Kind::as_pattern},
    {"try_statement", Kind::try_statement},
    {"except_clause", Kind::except_clause},
    {"except_group_clause", Kind::except_clause},
    {"finally_clause", Kind::finally_clause},
    {"return_statement", Kind::return_statement},
    {"raise_statement", Kind::raise_statement},
    {"break_statement", Kind::break_statement},
    {"continue_statement", Kind::continue_statement},
    {"delete_statement", Kind::delete_statement},
    {"assert_statement", Kind::assert_statement},
    {"print_statement", Kind::print_statement},
    {"yield", Kind::yield_expression},
    {"ERROR", Kind::error},
};

struct OpName {
  const char* token;
  Op op;
};

constexpr OpName kOps[] = {
    {"+", Op::add},
    {"-", Op::subtract},
    {"*", Op::multiply},
    {"/", Op::divide},
    {"//", Op::floor_divide},
    {"%", Op::modulo},
    {"**", Op::power},
    {"==", Op::equal},
    {"!=", Op::not_equal},
    {"<>", Op::not_equal},
    {"<", Op::less},
    {"<=", Op::less_equal},
    {">", Op::greater},
    {">=", Op::greater_equal},
    {"in", Op::in},
    {"not in", Op::not_in},
    {"is", Op::is},
    {"is not", Op::is_not},
    {"and", Op::logical_and},
    {"or", Op::logical_or},
    {"&", Op::bit_and},
    {"|", Op::bit_or},
    {"+=", Op::add},
    {"-=", Op::subtract},
    {"*=", Op::multiply},
    {"/=", Op::divide},
    {"//=", Op::floor_divide},
    {"%=", Op::modulo},
};

struct FieldName {
  const char* name;
  Field field;
};

constexpr FieldName kFields[] = {
    {"alias", Field::alias},
    {"alternative", Field::alternative},
    {"argument", Field::argument},
    {"arguments", Field::arguments},
    {"attribute", Field::attribute},
    {"body", Field::body},
    {"condition", Field::condition},
    {"consequence", Field::consequence},
    {"function", Field::function},
    {"key", Field::key},
    {"left", Field::left},
    {"module_name", Field::module_name},
    {"name", Field::name},
    {"object", Field::object},
    {"parameters", Field::parameters},
    {"right", Field::right},
    {"subscript", Field::subscript},
    {"superclasses", Field::superclasses},
    {"value", Field::value},
};

}  // namespace

Grammar::Grammar() {
  const TSLanguage* language = tree_sitter_python();
  std::unordered_map<std::string_view, Meaning> by_name;
  for (const auto& entry : kKinds) by_name[entry.name] = {Treatment::keep, entry.kind, Op::none};
  for (const char* name : {"identifier", "integer", "float", "true", "false", "none"})
    by_name[name].treatment = Treatment::leaf;
  for (const char* name : {"parenthesized_expression", "await", "with_clause", "interpolation",
                           "as_pattern_target", "case_clause", "match_statement"})
    by_name[name] = {Treatment::elide, Kind::other, Op::none};
  for (const char* name :
       {"string_start", "string_content", "string_end", "escape_sequence", "escape_interpolation",
        "format_specifier", "type_conversion", "line_continuation", "type"})
    by_name[name] = {Treatment::skip, Kind::other, Op::none};
  by_name["string"] = {Treatment::string, Kind::string, Op::none};
  by_name["comment"] = {Treatment::comment, Kind::other, Op::none};
  std::unordered_map<std::string_view, Op> ops;
  for (const auto& entry : kOps) ops[entry.token] = entry.op;

  const std::uint32_t symbol_count = ts_language_symbol_count(language);
  meanings.resize(symbol_count);
  for (TSSymbol symbol = 0; symbol < symbol_count; ++symbol) {
    const std::string_view name = ts_language_symbol_name(language, symbol);
    if (ts_language_symbol_type(language, symbol) == TSSymbolTypeRegular) {
      const auto known = by_name.find(name);
      meanings[symbol] =
          known == by_name.end() ? Meaning{Treatment::keep, Kind::other, Op::none} : known->second;
    } else if (const auto op = ops.find(name); op != ops.end()) {
      meanings[symbol] = {Treatment::op_token, Kind::other, op->second};
    }
  }
  fields.resize(ts_language_field_count(language) + 1, Field::none);
  for (const auto& entry : kFields)
    fields[ts_language_field_id_for_name(
        language, entry.name, static_cast<std::uint32_t>(std::strlen(entry.name)))] = entry.field;
  type_field = ts_language_field_id_for_name(language, "type", 4);
}

const Grammar& grammar() {
  static const Grammar instance;
  return instance;
}

}  // namespace bench::diagnose
