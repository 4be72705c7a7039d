#pragma once

// The order of tokens in the transposed copies that attention's products read as their right
// operand, where tokens are k.

namespace lockstep::layout {

/// The token at `place`, both counted from a multiple of eight. A lane (g, t) of a tensor core's
/// sums has columns 2 t and 2 t + 1 of each eight; of the left operand that they become, it has k =
/// t and t + 4. In this order those are the same tokens, and sums need no shuffles.
constexpr int token_at(int place) {
  return place < 4 ? 2 * place : 2 * (place - 4) + 1;
}

}  // namespace lockstep::layout
