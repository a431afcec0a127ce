// Calls return at once; errors name the line that caused them.
#include <burin/burin.h>
#include <iostream>
using namespace burin;

int main() {
  try {
    Tensor sum = ones({2, 3}) + ones({4});
  } catch (const Error &error) {
    std::cout << error.what() << "\n";
  }

  Tensor huge = zeros({int64_t(1) << 46}); // returns at once: nothing is wrong with the shape
  Tensor total = huge.sum();               // and so does this
  try {
    total.item(); // reading waits, and throws what went wrong above
  } catch (const Error &error) {
    std::cout << error.what() << "\n";
  }
}
