#include "passes/kernels/fusion/MergeRules.h"

namespace burin::passes {

Merge mergeOf(GroupForm producer, GroupForm consumer) {
  constexpr Merge no = Merge::Never, yes = Merge::Always, rows = Merge::IfSameRows;
  static constexpr Merge table[kGroupForms][kGroupForms] = {
      // consumer: Pointwise Movement  Row  MovedRow  Contract  Window  Sequential
      {yes, yes, yes, yes, yes, yes, no}, // Pointwise
      {yes, yes, yes, yes, no, no, no},   // Movement
      {yes, yes, rows, rows, no, no, no}, // Row
      {yes, yes, rows, rows, no, no, no}, // MovedRow
      {yes, no, no, no, no, no, no},      // Contract
      {yes, no, no, no, no, no, no},      // Window
      {no, no, no, no, no, no, no},       // Sequential
  };
  return table[size_t(producer)][size_t(consumer)];
}

Link linkOf(GroupForm producer, FusionKind user) {
  constexpr Link space = Link::SameSpace, rows = Link::RowOperand, direct = Link::DirectRow, only = Link::OnlyUser,
                 never = Link::Never;
  static constexpr Link table[kGroupForms][3] = {
      // user: Pointwise Row Movement
      {space, rows, only},    // Pointwise
      {space, direct, only},  // Movement
      {space, rows, never},   // Row
      {space, direct, never}, // MovedRow
      {space, never, never},  // Contract
      {space, never, never},  // Window
      {never, never, never},  // Sequential
  };
  switch (user) {
  case FusionKind::Pointwise:
    return table[size_t(producer)][0];
  case FusionKind::Row:
    return table[size_t(producer)][1];
  case FusionKind::Movement:
    return table[size_t(producer)][2];
  default:
    return Link::Never;
  }
}

GroupForm formOf(FusionKind kind) {
  switch (kind) {
  case FusionKind::Row:
    return GroupForm::Row;
  case FusionKind::Movement:
    return GroupForm::Movement;
  case FusionKind::Window:
    return GroupForm::Window;
  case FusionKind::Contract:
    return GroupForm::Contract;
  case FusionKind::Sequential:
    return GroupForm::Sequential;
  default:
    return GroupForm::Pointwise;
  }
}

GroupForm joined(GroupForm a, GroupForm b) {
  if (a == GroupForm::Pointwise || a == b)
    return b;
  return b == GroupForm::Pointwise ? a : GroupForm::MovedRow; // other forms do not merge
}

} // namespace burin::passes
