// Data from files, augmentation, streams.
#include <burin/burin.h>
#include <filesystem>
#include <fstream>
#include <iostream>
using namespace burin;

data::DataLoader photos(const std::string &folder) {
  data::LoaderOptions options{.batch_size = 64, .shuffle = true, .workers = 2};
  options.transform = data::compose({data::random_resized_crop(224), data::random_horizontal_flip(),
                                     data::color_jitter({.brightness = 0.2, .hue = 0.05}),
                                     data::normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225})});
  auto images = data::image_folder(folder); // a folder per class
  options.batch_transform = data::mixup(int64_t(images->classes().size()), /*alpha=*/0.2);
  return {images, options};
}

struct Words : data::IterableDataset {
  std::string path;
  explicit Words(std::string path) : path(std::move(path)) {}
  Stream open(uint64_t epoch) const override {
    return [file = std::make_shared<std::ifstream>(path)]() -> std::optional<data::Example> {
      std::string word;
      if (!(*file >> word))
        return std::nullopt;
      return data::Example{from_vector(std::vector<int64_t>(word.begin(), word.end()))};
    };
  }
};

Tensor padded(const std::vector<data::Example> &words) {
  int64_t longest = 0;
  for (const data::Example &word : words)
    longest = std::max(longest, word[0].size(0).value());
  std::vector<Tensor> rows;
  for (const data::Example &word : words)
    rows.push_back(pad(word[0], {0}, {longest - word[0].size(0).value()}));
  return stack(rows);
}

int main() {
  std::ofstream("flowers.csv") << "length,width,species\n5.1,3.5,setosa\n6.3,3.3,virginica\n4.9,3.0,setosa\n";
  auto flowers = data::csv_dataset("flowers.csv", {.targets = {"species"}, .class_targets = true});
  for (const std::vector<Tensor> &batch : data::DataLoader(flowers, {.batch_size = 3}))
    std::cout << str(batch[0].spec()) << " " << batch[1] << " " << flowers->classes()[1] << "\n";

  std::ofstream("book.txt") << "the quick brown fox jumps over the lazy dog";
  data::DatasetRef text = data::byte_dataset("book.txt", /*length=*/16);
  std::cout << text->size() << " windows\n";

  data::DataLoader words(std::make_shared<Words>("book.txt"),
                         {.batch_size = 4, .workers = 2, .collate = [](std::vector<data::Example> examples) {
                            return data::Example{padded(examples)};
                          }});
  while (auto batch = words.next())
    std::cout << str((*batch)[0].spec()) << "\n";

  if (std::filesystem::exists("photos"))
    photos("photos").next();
}
