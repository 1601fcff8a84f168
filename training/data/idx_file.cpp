#include "training/data/idx_file.hpp"

#include "bench/core/error.hpp"

#include <zlib.h>

#include <filesystem>
#include <memory>

namespace bench::training {
namespace {

constexpr int kUnsignedByteType = 0x08;
// Larger than any data set in this format; a damaged size must not become an allocation.
constexpr std::int64_t kLargestArray = std::int64_t{1} << 31;

class GzipReader {
 public:
  explicit GzipReader(const std::string& path) : path_(path), file_(gzopen(path.c_str(), "rb")) {
    if (!file_) throw UsageError(path + ": cannot be opened");
    gzbuffer(file_.get(), 1 << 18);
  }

  void read(std::uint8_t* out, std::size_t size, const std::string& what) {
    while (size > 0) {
      const auto part = static_cast<unsigned>(std::min<std::size_t>(size, 1u << 30));
      const int got = gzread(file_.get(), out, part);
      if (got <= 0) {
        int code = Z_OK;
        const std::string reason = gzerror(file_.get(), &code);
        const bool damaged = got < 0 || code != Z_OK;
        throw UsageError(path_ + ": " + (damaged ? "damaged (" + reason + ")" : "too short") +
                         "; expected " + what);
      }
      out += got;
      size -= static_cast<std::size_t>(got);
    }
  }

  std::uint32_t read_big_endian(const std::string& what) {
    std::uint8_t b[4];
    read(b, sizeof b, what);
    return std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 | b[3];
  }

  bool at_end() {
    std::uint8_t extra;
    return gzread(file_.get(), &extra, 1) == 0;
  }

 private:
  struct Close {
    void operator()(gzFile file) const { gzclose(file); }
  };
  std::string path_;
  std::unique_ptr<gzFile_s, Close> file_;
};

}  // namespace

IdxArray read_idx(const std::string& path, int dimensions) {
  if (!std::filesystem::exists(path)) {
    throw MachineError(path +
                       ": no such file; the data comes with the package "
                       "dataset-fashion-mnist (apt-get install dataset-fashion-mnist)");
  }
  GzipReader reader(path);
  const std::string header = "an IDX file of unsigned bytes with " + std::to_string(dimensions) +
                             (dimensions == 1 ? " dimension" : " dimensions");
  const std::uint32_t magic = reader.read_big_endian(header);
  if (magic != (std::uint32_t{kUnsignedByteType} << 8 | static_cast<std::uint32_t>(dimensions))) {
    throw UsageError(path + ": starts with " + std::to_string(magic) + "; expected " + header);
  }
  IdxArray array;
  std::int64_t total = 1;
  for (int i = 0; i < dimensions; ++i) {
    array.sizes.push_back(reader.read_big_endian(header));
    total *= array.sizes.back();
    if (total > kLargestArray)
      throw UsageError(path + ": sizes are implausible; expected " + header);
  }
  array.values.resize(static_cast<std::size_t>(total));
  const std::string body = std::to_string(total) + " bytes after the header";
  reader.read(array.values.data(), array.values.size(), body);
  if (!reader.at_end()) throw UsageError(path + ": too long; expected " + body);
  return array;
}

}  // namespace bench::training
