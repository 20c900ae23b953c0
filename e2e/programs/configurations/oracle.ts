/** The same run on one process, eager, never broken: it takes the batches of all ranks one by one. */
import { init, manualSeed, noGrad, RowSparse, type Tensor, tidy } from "@opt/core";
import { type Configuration, isFit, type Outcome, type Phase, stepsOf } from "@opt/testkit/configurations";
import { type Batch, batchesOf, ordersOf } from "./batches";
import { ByHand, forward, meanOf, seedOf } from "./by-hand";
import { type Optimizers, type Parts, partsOf } from "./parts";
import { contentsOf, load, remove, save } from "./saves";

/** Their numbers. */
export async function observed(tensors: Readonly<Record<string, unknown>>): Promise<Outcome["tensors"]> {
  const entries = Object.entries(tensors).map(async ([name, saved]) => {
    const tensor = "tensor" in (saved as object) ? (saved as { tensor: Tensor }).tensor : (saved as Tensor);
    return [name, Array.from(await tensor.data(), Number)] as const;
  });
  return Object.fromEntries(await Promise.all(entries));
}

const alone = (phase: Phase): Phase => ({ ...phase, way: "eager", over: "alone", data: 1, model: 1 });

/** What changes memory and time alone is left out: row-sparse gradients and recomputation. */
const plain = (one: Configuration): Configuration => ({ ...one, sparse: false, recompute: false });

/** @param isNudged weights begin one unit in the last place of a float64 away */
export async function oracle(
  given: Configuration,
  optimizers: Optimizers,
  folder: string,
  isNudged = false,
): Promise<Outcome> {
  const one = plain(given);
  const orders = ordersOf(one);
  const total = stepsOf(one);
  const losses: string[][][] = [];
  let parts: Parts | undefined;
  let step = 0;
  for (const [i, phase] of one.phases.entries()) {
    if (parts === undefined || !(await areAlike(one, phase.device, one.phases[i - 1]!.device))) {
      // What another device goes on from is copied: a checkpoint keeps every bit.
      if (parts) await save(folder, parts, { step, loader: null, through: undefined }, undefined);
      await init(phase.device);
      const next = partsOf(one, alone(phase), undefined, optimizers);
      if (parts) await load(folder, next, undefined, undefined);
      else if (isNudged)
        for (const [i, weight] of next.module.parameters().entries())
          noGrad(() => weight.set(weight.mul(1 + (-1) ** i * Number.EPSILON)));
      parts = next;
    }
    await init(parts.module.parameters()[0]!.device.name); // where batches are made
    const end = i < one.phases.length - 1 ? one.break! : total;
    for (; step < end; step++) {
      const epoch = Math.floor((step * orders.length) / total);
      const inEpoch = step - (epoch * total) / orders.length;
      losses.push(
        await stepOf(one, parts, phase, step, batchesOf(one, orders[epoch]!, inEpoch, phase.data, phase.accumulate)),
      );
      if (one.validated && inEpoch === total / orders.length - 1) swap(parts);
    }
  }
  const { tensors } = await contentsOf(parts!, step, null);
  const outcome = { losses, tensors: await observed(tensors) };
  remove(folder);
  return outcome;
}

/** Devices that say `portable` have the same bits, but for functions of float64: the run stays where it is. */
async function areAlike({ dtype }: Configuration, a: string, b: string): Promise<boolean> {
  if (a === b || dtype === "f64") return a === b;
  const isPortable = (await init(a)).portable;
  return (await init(b)).portable && isPortable;
}

/** As `fit` does before and after it measures. */
function swap({ optimizer }: Parts): void {
  const { eval: evaluate, train } = optimizer as { eval?(): void; train?(): void };
  evaluate?.call(optimizer);
  train?.call(optimizer);
}

async function stepOf(
  one: Configuration,
  parts: Parts,
  phase: Phase,
  step: number,
  batches: readonly (readonly Batch[])[],
) {
  const hand = new ByHand(one, parts, false, isFit(phase) ? 1 : phase.accumulate);
  const compute = () => gradientsOf(one, parts, hand, phase, step, batches);
  return hand.descend(compute, (losses) => meanOf(losses.map(meanOf)));
}

/** Gradients of each rank add up, then those of the ranks in their order; one division follows. Returns the losses by ranks. */
async function gradientsOf(
  one: Configuration,
  parts: Parts,
  hand: ByHand,
  phase: Phase,
  step: number,
  batches: readonly (readonly Batch[])[],
) {
  const parameters = parts.module.parameters();
  const buffers = parts.module.namedBuffers().map(([, buffer]) => [buffer, buffer.clone()] as const);
  /** Of the first rank that has samples. */
  let after: Tensor[] | undefined;
  const sums = new Map<Tensor, Tensor>();
  const losses: string[][] = [];
  // A loss of one batch alone is divided before its backward.
  const isCut = phase.data * phase.accumulate > 1;
  let count = 0;
  let weight = 0;
  const unit = batches.flat()[0]![2].size;
  for (const [rank, own] of batches.entries()) {
    if (rank > 0) for (const [buffer, first] of buffers) buffer.set(first);
    manualSeed(seedOf(one, step, rank));
    const mine: string[] = [];
    for (const batch of own) {
      const share = batch[2].size / unit;
      weight += share;
      if (one.counted) {
        const [sum, its] = tidy(() => {
          const { sum, count } = forward(one, parts, batch) as { sum: Tensor; count: Tensor };
          const part = isCut ? sum : sum.div(count.maximum(1));
          (parts.scaler ? parts.scaler.scale(part) : part).backward();
          return [sum.detach(), count.detach()] as [Tensor, Tensor];
        });
        const n = (await its.data())[0] as number;
        count += n;
        mine.push(String(Number((await sum.data())[0]) / (n || 1)));
      } else mine.push(await hand.backward(batch, share));
    }
    losses.push(mine);
    if (own.length > 0) after ??= buffers.map(([buffer]) => buffer.clone());
    if (batches.length === 1) continue;
    for (const parameter of parameters) {
      const { grad } = parameter;
      if (grad === null) continue;
      const sum = sums.get(parameter);
      sums.set(
        parameter,
        noGrad(() => (sum === undefined ? dense(grad).clone() : sum.add(dense(grad)))),
      );
      parameter.grad = null;
    }
  }
  buffers.forEach(([buffer], i) => void buffer.set(after![i]!));
  for (const [parameter, sum] of sums) parameter.grad = sum;
  const divisor = one.counted ? (isCut && count) || 1 : isFit(phase) ? weight : batches.length;
  if (divisor !== 1)
    for (const parameter of parameters) {
      const { grad } = parameter;
      if (grad !== null) parameter.grad = noGrad(() => dense(grad).div(divisor));
    }
  return losses;
}

const dense = (grad: Tensor | RowSparse): Tensor => (grad instanceof RowSparse ? grad.toDense() : grad);
