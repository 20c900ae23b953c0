/** Gradients that travel together: one row of elements, with a mark behind it for each of them that says whether it was there. */
import { check, concat, empty, hostBytes, keep, noGrad, RowSparse, type Tensor, tensor, tidy, zeros } from "@opt/core";
import { byteSize } from "@opt/core/backend";

export interface NamedParameter {
  readonly name: string;
  readonly tensor: Tensor;
}

export class Bucket {
  /** Parameters that a backward has reached since the last `sync`. */
  readonly ready = new Set<Tensor>();
  /** While it is on its way. */
  #flat: Tensor | undefined;
  #arrived: Promise<void> | undefined;

  constructor(readonly parameters: readonly NamedParameter[]) {}

  get isReady(): boolean {
    return this.ready.size === this.parameters.length;
  }

  get hasLeft(): boolean {
    return this.#arrived !== undefined;
  }

  /** Copies the gradients out, those that are missing as zeros, and begins what brings back their averages. */
  leave(where: string, average: (flat: Tensor) => Promise<void>): void {
    for (const { name, tensor } of this.parameters) {
      const isDense = !(tensor.grad instanceof RowSparse);
      const problem = () => `the gradient of ${name} is row-sparse, which is not averaged.`;
      check(isDense, "UNSUPPORTED", where, problem, "Make its layer with sparse: false.");
    }
    const flat = keep(noGrad(() => tidy(() => this.#filled())));
    this.#flat = flat;
    this.#arrived = average(flat);
    this.#arrived.catch(() => {}); // sync() throws it
  }

  /** The averages have come: the gradients take them. One that is missing on all ranks stays away. */
  async arrive(): Promise<void> {
    try {
      await this.#arrived;
      const marks = await this.#marks();
      noGrad(() => tidy(() => this.#handOut(marks)));
    } finally {
      this.#flat?.dispose();
      this.#flat = undefined;
      this.#arrived = undefined;
      this.ready.clear();
    }
  }

  get #size(): number {
    return this.parameters.reduce((sum, { tensor }) => sum + tensor.size, 0);
  }

  #filled(): Tensor {
    const [{ tensor: first }] = this.parameters as [NamedParameter];
    const { dtype, device } = first;
    const marks = tensor(
      this.parameters.map((parameter) => (parameter.tensor.grad === null ? 0 : 1)),
      { dtype, device },
    );
    const flat = empty([this.#size + marks.size], { dtype, device });
    const bytes = hostBytes(flat, "write");
    if (bytes === undefined) {
      const rows = this.parameters.map(
        ({ tensor: { grad, size } }) => grad?.reshape([size]) ?? zeros([size], { dtype, device }),
      );
      return concat([...rows, marks], 0);
    }
    let at = 0;
    for (const { tensor: each } of this.parameters) {
      const length = each.size * byteSize(dtype);
      if (each.grad === null) bytes.fill(0, at, at + length);
      else bytes.set(hostBytes(each.grad, "read")!, at);
      at += length;
    }
    bytes.set(hostBytes(marks, "read")!, at);
    return flat;
  }

  async #marks(): Promise<ArrayLike<number>> {
    const flat = this.#flat!;
    const marks = noGrad(() => keep(flat.slice(this.#size)));
    try {
      return await marks.data();
    } finally {
      marks.dispose();
    }
  }

  #handOut(marks: ArrayLike<number>): void {
    const flat = this.#flat!;
    const bytes = hostBytes(flat, "read");
    let at = 0;
    for (const [i, { tensor: each }] of this.parameters.entries()) {
      const { grad, size } = each;
      const width = byteSize(each.dtype);
      const own = grad === null ? undefined : hostBytes(grad, "write");
      if (marks[i] === 0) {
        // No rank has one.
      } else if (bytes && own) own.set(bytes.subarray(at * width, (at + size) * width));
      else {
        const average = flat.slice(at, at + size).reshape(each.shape);
        if (grad === null) each.grad = average;
        else grad.set(average);
      }
      at += size;
    }
  }
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
