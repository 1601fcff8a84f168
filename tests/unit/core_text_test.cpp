// Hashes and file reading that several rooms share.
#include "bench/core/file_text.hpp"
#include "bench/core/fnv_hash.hpp"
#include "bench/core/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace bench {
namespace {

// Vectors of draft-eastlake-fnv, appendix C.
TEST(FnvHash, AgreesWithPublishedVectors) {
  EXPECT_EQ(fnv_hex(""), "cbf29ce484222325");
  EXPECT_EQ(fnv_hex("a"), "af63dc4c8601ec8c");
  EXPECT_EQ(fnv_hex("foobar"), "85944171f73967e8");
  FnvHash parts;
  parts.add("foo");
  parts.add("bar");
  EXPECT_EQ(parts.hex(), fnv_hex("foobar"));
}

TEST(FileText, GivesEveryByteOrNothing) {
  const TemporaryDirectory folder;
  const auto file = folder.path() / "text.bin";
  const std::string bytes("a\0\r\n\xff", 5);
  std::ofstream(file, std::ios::binary) << bytes;
  EXPECT_EQ(file_text(file), bytes);
  std::filesystem::remove(file);
  EXPECT_EQ(file_text(file), std::nullopt);
  EXPECT_EQ(file_text(folder.path()), std::nullopt);
}

}  // namespace
}  // namespace bench
