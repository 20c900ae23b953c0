/** Elements, or slices, that differ: how many they are the host has to know, so it waits for the device. */
import { tidy } from "../../device/scope";
import { checkOptions } from "../../errors/options";
import type { Tensor } from "../../tensor/tensor";
import { normalizeAxis } from "../../values/shape";
import { checkTensor } from "../check-tensor";
import { permute, reshape } from "../shape/shape";
import { gather } from "./gather";
import { places } from "./positions";

export interface UniqueOptions {
  /** Compares slices along it. Default: elements of the flattened tensor. */
  readonly axis?: number;
}

export interface Unique {
  /** In order, NaN last: each NaN differs from all. */
  readonly values: Tensor;
  /** i32: for each element, in x's shape, or for each slice which value it is. */
  readonly inverse: Tensor;
  /** i32: how many each value stands for. */
  readonly counts: Tensor;
}

/**
 * The elements of x that differ, sorted. No gradient flows.
 *
 * @throws OptError BAD_ARGUMENT, BAD_DTYPE; UNSUPPORTED in a compiled function
 * @example
 * const { values, counts } = await unique(tensor([3, 1, 3])); // [1, 3] and [1, 2]
 */
export function unique(x: Tensor, options: UniqueOptions = {}): Promise<Unique> {
  checkTensor("unique", x);
  checkOptions("unique", options, { axis: "number" });
  const { axis } = options;
  const along = axis === undefined ? undefined : normalizeAxis("unique", axis, x.shape.length);
  x.device.checkReadable();
  if (along === undefined) return found(reshape(x.detach(), [x.size]), x.shape, [0]);
  const order = x.shape.map((_, i) => (i === 0 ? along : i <= along ? i - 1 : i));
  return found(permute(x.detach(), order), [x.shape[along]!], order);
}

/** Of the slices along the first axis, which `order` put there. */
async function found(slices: Tensor, shape: readonly number[], order: readonly number[]): Promise<Unique> {
  const numbers = await slices.data();
  const [count = 0] = slices.shape;
  const width = count === 0 ? 0 : slices.size / count;
  const compare = (a: number, b: number): number => {
    for (let i = 0; i < width; i++) {
      const [x, y] = [numbers[a * width + i]!, numbers[b * width + i]!];
      if (x !== y) return x < y ? -1 : y < x ? 1 : Number(Number.isNaN(x)) - Number(Number.isNaN(y)) || a - b;
    }
    return 0;
  };
  const firsts: number[] = [];
  const counts: number[] = [];
  const inverse = new Int32Array(count);
  for (const place of Array.from({ length: count }, (_, i) => i).sort((a, b) => compare(a, b) || a - b)) {
    if (firsts.length === 0 || compare(firsts.at(-1)!, place) !== 0) {
      firsts.push(place);
      counts.push(0);
    }
    counts[counts.length - 1]! += 1;
    inverse[place] = firsts.length - 1;
  }
  return tidy(() => {
    const list = (values: ArrayLike<number>, shape: readonly number[]) =>
      places(shape, slices.device, (i) => values[i]!);
    const rows = gather(slices, list(firsts, [firsts.length]));
    slices.dispose();
    return {
      values: permute(
        rows,
        order.map((_, i) => order.indexOf(i)),
      ),
      inverse: list(inverse, shape),
      counts: list(counts, [counts.length]),
    };
  });
}
