/** Gradients that travel together: one flat list of elements, with a mark behind it for each of them that says whether it was there. */
import {
  check,
  concat,
  hostBytes,
  keep,
  noGrad,
  RowSparse,
  span,
  type Tensor,
  tensor,
  tidy,
  versionOf,
  zeros,
} from "@opt/core";
import { byteSize } from "@opt/core/backend";
import type { NamedParameter } from "./parameters";

export class Bucket {
  /** Parameters that a backward has reached since the last `sync`. */
  readonly ready = new Set<Tensor>();
  /** Parts of the flat list while it is on its way: all gradients in their own memory, where that is the host's; else one copy of all. */
  #flat: readonly Tensor[] = [];
  #arrived: Promise<void> | undefined;
  /** Each gradient as it left, and how often its memory had been written to: what is done to it now would be lost, or mixed in. */
  #left: readonly (readonly [gradient: Tensor | null, version: number])[] = [];

  constructor(readonly parameters: readonly NamedParameter[]) {}

  get isReady(): boolean {
    return this.ready.size === this.parameters.length;
  }

  get hasLeft(): boolean {
    return this.#arrived !== undefined;
  }

  /** Begins what turns the gradients, those that are missing being zeros, into their averages. */
  leave(where: string, average: (flat: readonly Tensor[]) => Promise<void>): void {
    for (const { name, tensor } of this.parameters) {
      const isDense = !(tensor.grad instanceof RowSparse);
      check(
        isDense,
        "UNSUPPORTED",
        where,
        () => `the gradient of ${name} is row-sparse, which is not averaged.`,
        "Make its layer with sparse: false.",
      );
    }
    this.#flat = noGrad(() => tidy(() => this.#gradients().map((each) => keep(each))));
    this.#arrived = average(this.#flat);
    this.#arrived.catch(() => {}); // sync() throws it
    this.#left = this.parameters.map(({ tensor: { grad } }) => [grad, grad === null ? 0 : versionOf(grad)]);
  }

  /** Nobody has touched a gradient since it left. @throws OptError CHANGED */
  checkUntouched(where: string): void {
    for (const [i, [gradient, version]] of this.#left.entries()) {
      const { name, tensor } = this.parameters[i]!;
      const isSame = tensor.grad === gradient && (gradient === null || versionOf(gradient) === version);
      check(
        isSame,
        "CHANGED",
        where,
        () => `the gradient of ${name} was changed between backward and sync(), while it was averaged.`,
        "Await sync() first; then clip, scale or clear gradients.",
      );
    }
  }

  /** The averages have come: the gradients take them. One that is missing on all ranks stays away. */
  async arrive(): Promise<void> {
    try {
      await this.#arrived;
      const last = this.#flat.at(-1)!;
      const marks = noGrad(() => keep(last.slice(last.size - this.parameters.length)));
      try {
        const values = await marks.data();
        noGrad(() => tidy(() => this.#handOut(values)));
      } finally {
        marks.dispose();
      }
    } finally {
      for (const part of this.#flat) part.dispose();
      this.#flat = [];
      this.#left = [];
      this.#arrived = undefined;
      this.ready.clear();
    }
  }

  #gradients(): Tensor[] {
    const [{ tensor: first }] = this.parameters as [NamedParameter];
    const { dtype, device } = first;
    const marks = tensor(
      this.parameters.map((parameter) => (parameter.tensor.grad === null ? 0 : 1)),
      { dtype, device },
    );
    const rows = this.parameters.map(({ tensor: { grad, size } }) =>
      grad === null ? zeros([size], { dtype, device }) : span(grad, 0, size),
    );
    return hostBytes(marks, "read") === undefined ? [concat([...rows, marks], 0)] : [...rows, marks];
  }

  #handOut(marks: ArrayLike<number>): void {
    const isCopy = this.#flat.length === 1;
    let at = 0;
    for (const [i, { tensor: each }] of this.parameters.entries()) {
      const { grad, size, shape } = each;
      const average = isCopy ? this.#flat[0]!.slice(at, at + size) : this.#flat[i]!;
      at += size;
      if (marks[i] === 0) continue; // no rank has one
      if (grad === null) each.grad = average.reshape(shape);
      else if (isCopy || !sharesMemory(grad, average)) grad.set(average.reshape(shape));
    }
  }
}

function sharesMemory(a: Tensor, b: Tensor): boolean {
  const [one, other] = [a, b].map((x) => hostBytes(x, "read")!) as [Uint8Array, Uint8Array];
  return one.buffer === other.buffer && one.byteOffset === other.byteOffset;
}

/** Parameters from the last one on, as backward reaches them; the first bucket is small, so that something leaves soon. */
export function bucketsOf<Each extends { readonly tensor: Pick<Tensor, "dtype" | "size"> }>(
  parameters: readonly Each[],
  bucketBytes: number,
): Each[][] {
  const lists: { list: Each[]; bytes: number; limit: number }[] = [];
  for (const parameter of [...parameters].reverse()) {
    const { dtype, size } = parameter.tensor;
    const bytes = size * byteSize(dtype);
    const open = lists.findLast(({ list }) => list[0]!.tensor.dtype === dtype);
    if (open !== undefined && open.bytes + bytes <= open.limit) {
      open.list.push(parameter);
      open.bytes += bytes;
    } else {
      const limit = open === undefined ? Math.min(FIRST_BYTES, bucketBytes) : bucketBytes;
      lists.push({ list: [parameter], bytes, limit });
    }
  }
  return lists.map(({ list }) => list);
}

export const BUCKET_BYTES = 25 << 20;
/** As PyTorch's first bucket. */
const FIRST_BYTES = 1 << 20;
