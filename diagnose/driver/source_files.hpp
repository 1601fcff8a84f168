// What a file is by its name, and its bytes. Nothing above the size limit is read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bench::diagnose {

// A training script of this size does not exist; a data dump does.
inline constexpr std::uint64_t kMaxFileBytes = 10ULL << 20;

enum class FileType : std::uint8_t { python, notebook, shell, yaml, toml, json, other };

FileType type_of(const std::string& path);

// By its name: hidden, or made by tools and filled with what others wrote.
bool is_skipped_directory(const std::string& name);

struct SourceFile {
  std::string path;  // as the user would write it
  FileType type = FileType::other;
  std::string top;        // the tree it was found in; imports are not followed out of it
  bool is_named = false;  // itself on the command line, not found in a directory
};

// The path as findings show it: ./a//b.py is a/b.py.
std::string shown_path(const std::string& path);

// Nothing when the file is too large, unreadable or not a regular file.
std::optional<std::string> read_source(const std::string& path);

// The path that is written where the path is a link, be there a file or not.
std::string behind_links(const std::string& path);

// Why a file must not be replaced: it is read-only, or its name cannot be one. Empty where it may
// be, and where there is none.
std::string why_not_replaced(const std::string& path);

// Replaces a file's content through a file beside it, so that a crash leaves one or the other. Why
// that failed; empty when it did not.
std::string replace_file(const std::string& path, const std::string& text);

// The same for a source; throws UsageError.
void write_source(const std::string& path, const std::string& text);

}  // namespace bench::diagnose
