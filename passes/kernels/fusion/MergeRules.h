// Merge rules of fusion: which groups of ops may become one kernel.
#pragma once
#include "passes/analysis/OpFacts.h"

namespace burin::passes {

/// The form of a group, after the op that its loops are built for.
enum class GroupForm {
  Pointwise,
  Movement, // pointwise work and movement
  Row,      // reductions along the rows of one space, and pointwise work
  MovedRow, // reductions, pointwise work and movement
  Contract, // a contraction with its epilogue
  Window,   // a window op with its epilogue
  Sequential,
};
inline constexpr size_t kGroupForms = size_t(GroupForm::Sequential) + 1;

/// Whether a group that computes operands of another group may join it.
enum class Merge { Never, IfSameRows, Always };
Merge mergeOf(GroupForm producer, GroupForm consumer);

/// Required use of a value for the group that computes it to join the user's group.
enum class Link {
  Never,
  SameSpace,  // at the same point: directly, or through views and broadcasts within the space
  RowOperand, // as the reduced rows: directly, or through a reshape that only adds or drops sizes of 1
  DirectRow,  // as the reduced rows, directly
  OnlyUser,   // directly, and the group has no other users: its work is done at the moved positions
};
/// `user` is Pointwise, Row or Movement: ops of other kinds start groups that no producer joins.
Link linkOf(GroupForm producer, FusionKind user);

/// The form of the group that an op of this kind starts.
GroupForm formOf(FusionKind);
/// The form of two merged groups.
GroupForm joined(GroupForm, GroupForm);

inline bool isRow(GroupForm form) { return form == GroupForm::Row || form == GroupForm::MovedRow; }
/// Whether the group computes its results in loops over rows, sums or windows, so that another loop cannot ask it for a
/// single element.
inline bool hasOwnLoops(GroupForm form) {
  return isRow(form) || form == GroupForm::Contract || form == GroupForm::Window;
}

} // namespace burin::passes
