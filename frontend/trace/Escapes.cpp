#include "frontend/trace/Escapes.h"
#include "ir/dialect/Burin.h"

namespace burin {

std::shared_ptr<const void> Escapes::reference(mlir::Value value) {
  mlir::Operation *op = value.getDefiningOp();
  auto reference = std::make_shared<const char>();
  made.push_back({reference, value.getLoc(), op ? op->getName().stripDialect() : llvm::StringRef()});
  return reference;
}

void Escapes::append(Escapes others) {
  made.insert(made.end(), std::make_move_iterator(others.made.begin()), std::make_move_iterator(others.made.end()));
}

void Escapes::refuse(const char *op, const Location &where) const {
  auto escaped = std::ranges::find_if(made, [](const Made &tensor) { return !tensor.reference.expired(); });
  if (escaped == made.end())
    return;
  const std::string place = ir::fileLine(escaped->where);
  throw Error(where, op,
              (escaped->op.empty() ? "an argument" : "the result of " + escaped->op.str()) +
                  (place.empty() ? "" : " at " + place) +
                  " is in a variable outside of the traced function, which the function has assigned.\n  Compiled code "
                  "would not assign it. Return the tensor, or keep it in a Parameter and set() that: in a module, "
                  "register_buffer() makes one");
}

} // namespace burin
