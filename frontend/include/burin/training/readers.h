// Readers of data sets in files. A damaged file is an error that names it.
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

} // namespace burin::data
