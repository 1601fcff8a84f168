// Edits of a user's source that rules attach to findings. Each keeps the file's indentation, and
// does nothing where it cannot be sure of it.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace bench::pitfalls {

// Puts a statement before the first one of a block and the comments above that, which speak of it.
// "\t" in it is one more level of indentation.
void insert_first(Ref block, std::string statement, std::string title, Finding& finding);

// Puts a statement on a line of its own before or after the statement that holds `node`; a comment
// behind that one stays beside it.
void insert_before(Ref node, std::string statement, std::string title, Finding& finding);
void insert_after(Ref node, std::string statement, std::string title, Finding& finding);

// Puts `import name` above the first import of the module that is not of __future__; false where
// it has none.
bool insert_import(const diagnose::Module& module, const std::string& name, std::string title,
                   Finding& finding);

void replace(Ref node, std::string text, std::string title, Finding& finding);
void replace_bytes(Ref node, std::uint32_t begin, std::uint32_t end, std::string text,
                   std::string title, Finding& finding);

// Adds an argument at the end of a call, on a line of its own where the others have one each.
void add_argument(const CallRef& call, std::string argument, std::string title, Finding& finding);

// Removes a keyword argument with its comma, and its line where that holds nothing else.
void remove_argument(const CallRef& call, std::string_view keyword, std::string title,
                     Finding& finding);

// Puts the statement that holds `node` under `if condition:`.
void guard_statement(Ref node, std::string_view condition, std::string title, Finding& finding);

// The same for the statements of one block from `first` to `last`.
void guard_statements(Ref first, Ref last, std::string_view condition, std::string title,
                      Finding& finding);

// Takes the statement that holds `node` away, with its line; `pass` where the block has no other.
void remove_statement(Ref node, std::string title, Finding& finding);

// The same where other statements go as well, this one among them: `pass` stands in the place of
// the first one where nothing is left of the block.
void remove_statement(Ref node, const std::vector<Ref>& gone, std::string title, Finding& finding);

// Nothing stands before the statement on its first line but blanks.
bool starts_its_line(Ref statement);

// Nothing stands behind the statement on its last line but a comment.
bool ends_its_line(Ref statement);

// The statement that holds the node: the ancestor directly inside a block or the module.
Ref statement_of(Ref node);

}  // namespace bench::pitfalls
