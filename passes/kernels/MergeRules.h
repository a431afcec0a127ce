// Which groups of ops may become one kernel: the table behind fusion.
#pragma once
#include "passes/analysis/OpFacts.h"

namespace burin::passes {

/// What a group of ops is, by the op that its loops are made for.
enum class GroupForm {
  Pointwise,
  Movement, // pointwise work and movement
  Row,      // reductions along the rows of one space, and pointwise work
  MovedRow, // the same, and movement
  Contract, // a contraction, and pointwise work behind it
  Window,   // the same with a window op
  Sequential,
};
inline constexpr size_t kGroupForms = size_t(GroupForm::Sequential) + 1;

/// Whether a group that computes operands of another one may join it.
enum class Merge { Never, IfSameRows, Always };
Merge mergeOf(GroupForm producer, GroupForm consumer);

/// How an op must use a value for the group that computes it to join its own.
enum class Link {
  Never,
  SameSpace,  // at the point where it is computed: directly, or through views and broadcasts of one space
  RowOperand, // as the rows that it reduces: directly, or through a reshape that only adds or drops sizes of 1
  DirectRow,  // as the rows that it reduces, directly
  OnlyUser,   // directly, and nobody else uses the group: its work is done where moved elements are asked for
};
/// `user` is Pointwise, Row or Movement: ops of other kinds start groups that no producer joins.
Link linkOf(GroupForm producer, FusionKind user);

/// The form of the group that an op of this kind starts.
GroupForm formOf(FusionKind);
/// The form of two groups that may merge, as one.
GroupForm joined(GroupForm, GroupForm);

inline bool isRow(GroupForm form) { return form == GroupForm::Row || form == GroupForm::MovedRow; }
/// Whether its results are made by loops of their own, so that no element can be computed alone.
inline bool isWalk(GroupForm form) { return isRow(form) || form == GroupForm::Contract || form == GroupForm::Window; }

} // namespace burin::passes
