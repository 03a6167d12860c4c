// SPDX-License-Identifier: BSD-2-Clause
//
// merge_iter.h - many internal iterators as one, in internal order, both ways: a tournament (loser)
// tree over the 8-byte heads of the children's keys (Knuth, vol. 3, 5.4.1), so that most matches
// are decided by one integer comparison.
//
//         [0]          the winner: the current child
//          |
//         [1]          losers wait where they lost; after a step only the matches on the current
//        /   '.        child's way up are played again
//     [2]     [3]
//     / '.    / '.
//   c0   c1 c2   c3
//
// Two children never hold the same (key, trailer). If they do (damage), both are given, the earlier
// child's first. A failing child makes the merge fail: what comes next is not known then.
//
// Threads: one at a time. Ownership: the children are the merge's, and go with it.
// Cost: log2(n) comparisons a step; a change of direction moves every child.
#ifndef TM_MERGE_ITER_H
#define TM_MERGE_ITER_H

#include "base/iter.h"

// Takes the children (newest first), also on failure; not the array. n may be 0; of one child, *out
// is that child itself.
int tm_merge_iter_create(const tm_order *order, tm_iter **children, size_t n, tm_iter **out,
                         tamis_error *err) TM_CHECK_RESULT;
// Which child the current entry comes from.
size_t tm_merge_iter_child(const tm_iter *it);
// On a valid position: moves on past what the current child has before key to (behind, and at, key
// to where back). NULL: past all it has. Entries of other children are not passed over.
void tm_merge_iter_skip_child(tm_iter *it, const tm_slice *to, bool back);

#endif // TM_MERGE_ITER_H
