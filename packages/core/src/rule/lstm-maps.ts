/** What an LSTM computes beside its products, element by element and in the words of its ops: for devices that write kernels from programs. */
import { Expression } from "./expression";
import { type Program, trace } from "./program";
import { add, div, exp, mul, neg, sub, tanh } from "./symbols";

type E = Expression;

const map = (expression: (...buffers: E[]) => E): Program => {
  const buffers = Array.from({ length: expression.length }, (_, slot) => new Expression("buffer", [], slot));
  const names = buffers.map((_, slot) => `x${slot}`);
  return trace(names, [], [{ slot: 0, expression: expression(...buffers) }]);
};
const gate = (input: E, bias: E, product: E) => add(add(input, bias), product);
const rest = (x: E) => sub(1, x);

/** What follows the product of a place in an LSTM, as maps: its gates, the next cell and the result. */
export const lstmMaps = () => ({
  /** Of inputs, biases and products. */
  sigmoid: map((input, bias, product) => div(1, add(1, exp(neg(gate(input!, bias!, product!)))))),
  tanh: map((input, bias, product) => tanh(gate(input!, bias!, product!))),
  /** The next cell, of f, c, i and g. */
  cell: map((f, c, i, g) => add(mul(f!, c!), mul(i!, g!))),
  /** The result of o and the next cell. */
  result: map((o, next) => mul(o!, tanh(next!))),
});

/** What the gradient of a place in an LSTM needs beside its product, as maps. */
export const lstmGradMaps = () => ({
  zero: map(() => new Expression("constant", [], 0)),
  same: map((x) => x!),
  shown: map((next) => tanh(next!)),
  sum: map((a, b) => add(a!, b!)),
  product: map((a, b) => mul(a!, b!)),
  /** What the next cell gets, of what it hands on, the result's gradient, o and what is shown of the cell. */
  cell: map((c, h, o, shown) => add(c!, mul(mul(h!, o!), rest(mul(shown!, shown!))))),
  /** Through a sigmoid y, and through a tanh y. */
  sigmoid: map((a, b, y) => mul(mul(mul(a!, b!), y!), rest(y!))),
  tanh: map((a, b, y) => mul(mul(a!, b!), rest(mul(y!, y!)))),
});
