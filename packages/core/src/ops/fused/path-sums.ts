/** Sums of all paths through a lattice, as logarithms: the forward-backward algorithm that CTC needs. */

import { tidy } from "../../device/scope";
import { check } from "../../errors/errors";
import { Expression } from "../../rule/expression";
import { type Program, trace } from "../../rule/program";
import { add, exp, mul, sub } from "../../rule/symbols";
import { overSamples } from "../../tensor/batching";
import { isTaping, noGrad, record } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import { type ComputeDType, computeDType } from "../../values/dtype";
import { sameShape, showShape } from "../../values/shape";
import { checkTensor } from "../check-tensor";
import { elementwise } from "../elementwise/elementwise";
import { LOG_ADD_EXP } from "../elementwise/loss-terms";
import { fill, fillInPlace, launchMap } from "../map";
import { pad } from "../shape/pad";
import { concat, reshape, slice } from "../shape/shape";

const buffers = (count: number) => Array.from({ length: count }, (_, slot) => new Expression("buffer", [], slot));

const program = (count: number, of: (...operands: Expression[]) => Expression): Program =>
  trace(
    buffers(count).map((_, slot) => `x${slot}`),
    [],
    [{ slot: 0, expression: of(...buffers(count)) }],
  );

/** From itself, from the state before, and past that one. */
const REACH = /* @__PURE__ */ program(5, (own, before, past, skips, score) =>
  add(LOG_ADD_EXP.forward(own!, before!, add(past!, skips!)), score!),
);
const REST = /* @__PURE__ */ program(2, (y, score) => sub(y!, score!));
const SHARE = /* @__PURE__ */ program(3, (from, cost, to) => exp(sub(add(from!, cost!), to!)));
const ONE_MORE = /* @__PURE__ */ program(3, (g, share, next) => add(g!, mul(share!, next!)));
const TWO_MORE = /* @__PURE__ */ program(5, (g, a, nextA, b, nextB) => add(add(g!, mul(a!, nextA!)), mul(b!, nextB!)));

/** The logarithm of no probability: finite, so that sums of such have gradients. */
const NEVER = -1e30;

/**
 * y[t, s] = scores[t, s] + log(exp(y[t - 1, s]) + exp(y[t - 1, s - 1]) + exp(y[t - 1, s - 2] + skips[s])), y[-1] being `begin`: a launch for
 * each t. Logarithms are finite: -1e30 is one of nothing. State 0 is a border that no path takes: its scores are -1e30.
 *
 * @param begin [states, batch], without a gradient, as `skips`
 * @param scores [times, states, batch] of f32 or f64
 * @param skips [states, batch]: 0 where a path may leave a state out, else -1e30. The first two are -1e30
 * @throws OptError BAD_ARGUMENT, BAD_DTYPE, BAD_SHAPE, DEVICE_MISMATCH
 * @example
 * const never = full([3, 1], -1e30);
 * pathSums(tensor([[-1e30], [0], [-1e30]]), pad(rand([4, 2, 1]), [0, 0, 1, 0], { value: -1e30 }), never); // [4, 3, 1]
 */
export function pathSums(begin: Tensor, scores: Tensor, skips: Tensor): Tensor {
  const samples = overSamples(pathSums, begin, scores, skips);
  if (samples) return samples;
  const where = "pathSums";
  for (const [name, x] of Object.entries({ begin, scores, skips })) checkTensor(where, x, name);
  const { shape, dtype, device } = scores;
  check(
    dtype === computeDType(dtype),
    "BAD_DTYPE",
    where,
    () => `scores must be f32 or f64, got ${dtype}.`,
    'Use to("f32").',
  );
  const [times = 0, states = 0, batch = 0] = shape;
  const fits = shape.length === 3 && times > 0 && [begin, skips].every((x) => sameShape(x.shape, [states, batch]));
  check(
    fits,
    "BAD_SHAPE",
    where,
    () =>
      `needs [states, batch], [times, states, batch] and [states, batch], got ${[begin, scores, skips].map((x) => showShape(x.shape)).join(", ")}.`,
  );
  const areAlike = [begin, skips].every((x) => x.dtype === dtype && x.device === device);
  check(areAlike, "BAD_ARGUMENT", where, () => "tensors must be of one dtype and device.", "Use to().");
  const row = states * batch;
  // Two rows of states lie before the first time, as state 0 has no state before.
  const all = Tensor.empty([2 * batch + (times + 1) * row], dtype, device);
  const at = (time: number, back: number) => all.alias([states, batch], 2 * batch + (time + 1) * row - back * batch);
  noGrad(() =>
    tidy(() => {
      fillInPlace(all.alias([2 * batch]), NEVER);
      const copy = at(-1, 0);
      launchMap(COPY, dtype as ComputeDType, [begin], [], begin.shape, copy);
      for (let time = 0; time < times; time++) {
        const before = [at(time - 1, 0), at(time - 1, 1), at(time - 1, 2)];
        const score = scores.alias([states, batch], time * row);
        launchMap(REACH, dtype as ComputeDType, [...before, skips, score], [], copy.shape, at(time, 0));
      }
    }),
  );
  const y = all.alias(shape, 2 * batch + row);
  all.dispose();
  return record(where, y, [scores], [scores, skips, y], (g, [held, cost, sums]) => [
    isTaping() ? gradientByOps(g, held!, cost!, sums!) : tidy(() => gradient(g, held!, cost!, sums!)),
  ]);
}

const COPY = /* @__PURE__ */ program(1, (x) => x!);

/** G[t, s] = g[t, s] + the sum over k of G[t + 1, s + k] times the share of y[t, s] in what reached state s + k. */
function gradient(g: Tensor, scores: Tensor, skips: Tensor, y: Tensor): Tensor {
  const { shape, device } = scores;
  const dtype = scores.dtype as ComputeDType;
  const [times, states, batch] = shape as [number, number, number];
  const row = states * batch;
  /** With two rows of states behind. */
  const longer = (size: number, value: number) => {
    const x = Tensor.empty([size + 2 * batch], dtype, device);
    fillInPlace(x.alias([2 * batch], size), value);
    return x;
  };
  const reached = longer(times * row, 0);
  launchMap(REST, dtype, [y, scores], [], shape, reached.alias(shape));
  const costs = longer(row, NEVER);
  launchMap(COPY, dtype, [skips], [], skips.shape, costs.alias(skips.shape));
  const later = [times - 1, states, batch];
  const free = fill([1], 0, dtype, device);
  const shares = [free, free, costs.alias([states, batch], 2 * batch)].map((cost, k) => {
    const to = reached.alias(later, row + k * batch);
    return launchMap(SHARE, dtype, [y.alias(later), cost, to], [], later);
  });
  const total = longer(times * row, 0);
  const at = (x: Tensor, time: number, ahead = 0) => x.alias([states, batch], time * row + ahead * batch);
  for (let time = times - 1; time >= 0; time--) {
    const target = at(total, time);
    if (time === times - 1) launchMap(COPY, dtype, [at(g, time)], [], target.shape, target);
    else {
      const [own, before, past] = shares.map((share) => at(share, time)) as [Tensor, Tensor, Tensor];
      const next = [0, 1, 2].map((ahead) => at(total, time + 1, ahead)) as [Tensor, Tensor, Tensor];
      const sum = launchMap(ONE_MORE, dtype, [at(g, time), own, next[0]], [], target.shape);
      launchMap(TWO_MORE, dtype, [sum, before, next[1], past, next[2]], [], target.shape, target);
    }
  }
  return total.alias(shape);
}

/** The same on the tape. */
function gradientByOps(g: Tensor, scores: Tensor, skips: Tensor, y: Tensor): Tensor {
  const [times, states] = scores.shape as [number, number];
  const at = (x: Tensor, time: number) => reshape(slice(x, time, time + 1), x.shape.slice(1));
  const ahead = (x: Tensor, k: number, value = 0) => pad(slice(x, k, states), [0, 0, 0, k], { value });
  const reached = elementwise("sub", [y, scores]);
  const costs = [0, 1, 2].map((k) =>
    ahead(k === 2 ? skips : fill(skips.shape, 0, skips.dtype, skips.device), k, NEVER),
  );
  let total = at(g, times - 1);
  const totals = [total];
  for (let time = times - 2; time >= 0; time--) {
    let sum = at(g, time);
    for (const [k, cost] of costs.entries()) {
      const to = ahead(at(reached, time + 1), k);
      const share = elementwise("exp", [elementwise("sub", [elementwise("add", [at(y, time), cost]), to])]);
      sum = elementwise("add", [sum, elementwise("mul", [share, ahead(total, k)])]);
    }
    total = sum;
    totals.unshift(total);
  }
  return concat(totals.map((x) => reshape(x, [1, ...x.shape])));
}
