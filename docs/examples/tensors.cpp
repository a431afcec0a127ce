// Tensors: making, computing, taking parts, printing, files.
#include <burin/burin.h>
#include <iostream>
using namespace burin;

int main() {
  Tensor x = tensor({{1, 2, 3}, {4, 5, 6}}).to(f32);
  Tensor y = sqrt(x) + 10 * x.sum(1, /*keepdims=*/true); // numbers and shapes broadcast as in NumPy
  std::cout << y << "\n";

  Tensor row = x[0], lastColumn = x[{Ellipsis, -1}];
  Tensor reversed = x[{Slice(), Slice(None, None, -1)}];
  Tensor large = where(x > 2, x, 0);
  std::cout << reversed << "\n" << large << "\n";

  Tensor changed = x;
  changed.set(0, row * 10);                             // x[0] = row * 10
  changed.set({Slice(), 2}, changed[{Slice(), 2}] + 1); // x[:, 2] += 1
  std::cout << changed << "\n";

  float mean = x.mean().item<float>();
  std::vector<float> numbers = lastColumn.to_vector<float>();
  std::cout << "mean " << mean << ", last column " << numbers[0] << " and " << numbers[1] << "\n";

  Tensor grid = arange(12).reshape({3, 4});
  std::cout << str(grid.spec()) << " times " << str(row.spec()) << " is " << str((matmul(row, grid.to(f32))).spec())
            << "\n";

  save_npy("y.npy", y);
  Tensor z = load_npy("y.npy");
  std::cout << (all(y == z).item<bool>() ? "the same" : "different") << "\n";
}
