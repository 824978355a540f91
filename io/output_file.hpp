#pragma once
// Output files: written whole to a temporary beside the output, synced, then renamed.
#include <cstddef>
#include <span>
#include <string>

namespace rowmill {

/// Before a long run: can a file be made at `path`? Throws Error(usage) naming what is in the way: a folder that is
/// missing or closed to us, something there that is no regular file, or a file while `overwrite` is false.
void check_output_path(const std::string& path, bool overwrite);

/// What a file is before it has its name. Files without a name vanish with the program, however that ends; where the
/// file system has none (NFS), and where HDF5 or other ranks are to open the file, it is ".NAME.PID.partial" beside the
/// output.
enum class Temporary { unnamed, named };

/// Owns a temporary in the folder of `path` until `commit` gives it the name. Destroyed before that, it leaves nothing
/// behind. Not thread safe. Every failure is Error(failed) naming the path and the reason, except where
/// check_output_path throws.
class OutputFile {
 public:
  OutputFile(std::string path, bool overwrite, Temporary temporary = Temporary::unnamed);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  /// Where the bytes lie for now; other writers (HDF5) may open it, those of other programs only if it is named.
  const std::string& temporary() const { return temporary_; }

  /// Appends.
  void write(std::span<const std::byte> bytes);

  /// Syncs the file, renames it, syncs its folder. Error(usage) if meanwhile somebody else made a file of that name and
  /// `overwrite` is false.
  void commit();

  /// Cuts the temporary to nothing, so that a full disk has room again for a library that insists on finishing its
  /// file.
  void discard_contents() noexcept;

 private:
  bool create_unnamed();
  void create_named();
  void link_to_output();
  void rename_to_output(const std::string& from);

  std::string path_, folder_, temporary_;
  bool overwrite_ = false, committed_ = false, named_ = true;
  int descriptor_ = -1;
};

}  // namespace rowmill
