// Readers of data sets in files. A damaged file is an error that names it.
//
// Tensors in .npy, .npz and .safetensors files become data sets by tensor_dataset({load_npy(path), …}).
#pragma once
#include "burin/training/dataset.h"

namespace burin::data {

enum class Split { Train, Test };
/// An IDX file (MNIST's format), possibly compressed by gzip. Element types are u8, i8, i16, i32, f32 and f64.
BURIN_API Tensor load_idx(const std::string &path, Location where = Location::current());
/// Images f32[1, 28, 28] in [0, 1] and classes i64[]. `folder` has the four IDX files, with or without .gz; the default
/// is that of Debian's package dataset-fashion-mnist.
BURIN_API DatasetRef fashion_mnist(Split split, const std::string &folder = "/usr/share/datasets/fashion-mnist",
                                   Location where = Location::current());
/// The same for the digits of MNIST.
BURIN_API DatasetRef mnist(Split split, const std::string &folder, Location where = Location::current());
/// The binary form of CIFAR-10 (data_batch_1.bin … test_batch.bin): images f32[3, 32, 32] in [0, 1], classes i64[].
BURIN_API DatasetRef cifar10(Split split, const std::string &folder, Location where = Location::current());

// ---- images

/// How images are read.
enum class ImageMode { Rgb, Gray };
/// A PNG or JPEG file as u8[3, H, W], red, green and blue, or u8[1, H, W]. Palettes, grey levels, CMYK and 16 bits per
/// sample are converted to the mode, transparency is dropped. The formats are found by content. Throws if burin was
/// built without libpng or libjpeg, whichever the file needs; both are optional.
BURIN_API Tensor load_image(const std::string &path, ImageMode mode = ImageMode::Rgb,
                            Location where = Location::current());

/// A folder per class, with images in it and in its subfolders, as torchvision's ImageFolder: classes are numbered in
/// the order of the folders' names, and files are in the order of their paths. Files are those whose names end in .png,
/// .jpg or .jpeg, in capitals too. Examples are {f32[3, H, W] or f32[1, H, W] in [0, 1], class i64[]}; images are read
/// when they are used, and resize() or random_resized_crop() brings those of a batch to one size.
class BURIN_API ImageFolder : public Dataset {
public:
  /// Throws if there is no class, or a class without an image.
  explicit ImageFolder(const std::string &folder, ImageMode mode = ImageMode::Rgb,
                       Location where = Location::current());
  ~ImageFolder() override;
  int64_t size() const override;
  Example get(int64_t index) const override;
  /// The names of the classes.
  const std::vector<std::string> &classes() const;
  /// The path and class of each image.
  const std::vector<std::pair<std::string, int64_t>> &samples() const;

private:
  struct Files;
  std::unique_ptr<const Files> files;
};
/// The same, as a set for a loader.
BURIN_API std::shared_ptr<const ImageFolder> image_folder(const std::string &folder, ImageMode mode = ImageMode::Rgb,
                                                          Location where = Location::current());

// ---- tables

/// Options of CsvDataset.
struct CsvOptions {
  std::vector<std::string> features = {}; ///< columns; by default all that are not targets
  std::vector<std::string> targets = {};  ///< columns; by default the last one
  bool header = true; ///< the first line has the names of the columns; otherwise these are "0", "1", …
  char delimiter = ',';
  /// Targets are names of classes, such as "setosa": they become numbers in the order of their names, i64.
  bool class_targets = false;
  DType target_dtype = DType::f32;              ///< i64 for classes that are numbers
  std::optional<double> missing = std::nullopt; ///< the value of an empty field; by default it is an error
};
/// A file of comma-separated values (RFC 4180): fields in double quotes may contain delimiters, line breaks and doubled
/// quotes. Fields are numbers; spaces around them are ignored, and so are empty lines. The whole file is read at once.
/// Examples are {features f32[F], target} with a target of shape [], or [T] for several columns. Errors name file:line
/// and the column.
class BURIN_API CsvDataset : public Dataset {
public:
  explicit CsvDataset(const std::string &path, CsvOptions options = {}, Location where = Location::current());
  ~CsvDataset() override;
  int64_t size() const override;
  Example get(int64_t index) const override;
  Example batch(std::span<const int64_t> indices) const override;
  /// All rows: features f32[N, F] and targets [N] or [N, T].
  const Tensor &features() const;
  const Tensor &targets() const;
  /// The names of the columns of features.
  const std::vector<std::string> &columns() const;
  /// With class_targets, the names of the classes.
  const std::vector<std::string> &classes() const;

private:
  struct Table;
  std::unique_ptr<const Table> table;
};
/// The same, as a set for a loader.
BURIN_API std::shared_ptr<const CsvDataset> csv_dataset(const std::string &path, CsvOptions options = {},
                                                        Location where = Location::current());

// ---- text

/// The bytes of a file in windows of `length`, each with the bytes that follow: {i64[length], i64[length]}, where the
/// second is the first moved by one byte. Windows begin every `stride` bytes, at each byte by default. The file is
/// mapped, not read at once. Throws if it is shorter than length + 1.
BURIN_API DatasetRef byte_dataset(const std::string &path, int64_t length, int64_t stride = 1,
                                  Location where = Location::current());

} // namespace burin::data
