/** Vectors of all parameters: which elements a rank has, and what is told of whole vectors, in the same words on any number of ranks. */
import { concat, type MeshAxis, type Placement, type RowSparse, span, type Tensor, tensor, zeros } from "@opt/core";
import { axesOf, boxAfter, inWholes, largestOf, partsOfWholes, wholesOf } from "@opt/core/backend";

/** So many elements are added at a time. Parts of ranks begin at multiples, so sums don't depend on them. */
const BLOCK = 256;

/** Room for the products of two vectors: `all` ends with zeros, to whole blocks. */
export interface Products {
  readonly own: Tensor;
  readonly all: Tensor;
}

/** The elements of all parameters in their order. Each rank of `axes`, and of those that divide parameters, has an equal part. */
export class Vectors {
  /** Of a whole vector. */
  readonly length: number;
  /** Null where each rank has all. */
  readonly placement: Placement<Tensor> | null = null;
  readonly #axes: readonly MeshAxis<Tensor>[];
  /** Of one number for each block. */
  readonly #blocks: Placement<Tensor> | null = null;
  readonly #begin: number = 0;
  readonly #end: number;
  readonly #whole: readonly { readonly begin: number; readonly end: number; readonly shape: readonly number[] }[];

  constructor(
    private readonly params: readonly Tensor[],
    axes: readonly MeshAxis<Tensor>[],
  ) {
    let length = 0;
    this.#whole = params.map(({ placement, shape: own }) => {
      const shape = placement?.shape ?? own;
      const begin = length;
      length += shape.reduce((a, b) => a * b, 1);
      return { begin, end: length, shape };
    });
    this.length = this.#end = length;
    this.#axes = [...new Set([...axes, ...axesOf(params)])].filter(({ size }) => size > 1);
    if (this.#axes.length === 0) return;
    this.placement = { shape: [length], cuts: this.#axes.map((axis) => ({ axis, dim: 0, multiple: BLOCK })) };
    this.#blocks = { shape: [Math.ceil(length / BLOCK)], cuts: this.#axes.map((axis) => ({ axis, dim: 0 })) };
    const { offset, size } = boxAfter(this.placement);
    this.#begin = offset[0]!;
    this.#end = this.#begin + size[0]!;
  }

  /** Elements of this rank's part. */
  get ownLength(): number {
    return this.#end - this.#begin;
  }

  /** This rank's part of the vector of all gradients. It gathers about 64 MiB of them at a time. */
  gradient(): Tensor {
    const placements = this.params.map(({ placement }) => placement);
    const pieces = inWholes(this.params.map(denseGradient), placements, (indices, wholes) =>
      indices.flatMap((i, k) => {
        const { begin, end } = this.#whole[i]!;
        const [from, to] = [Math.max(begin, this.#begin), Math.min(end, this.#end)];
        const flat = wholes[k]!.reshape([end - begin]);
        if (to - from === end - begin) return [flat];
        return to > from ? [flat.slice(from - begin, to - begin)] : [];
      }),
    ).flat();
    return pieces.length > 0 ? concat(pieces) : this.#room(0);
  }

  /** The parts of a whole vector that belong to this rank's parts of parameters. It gathers the vector. */
  ofParameters(vector: Tensor): Tensor[] {
    const [whole] = wholesOf([vector], [this.placement]) as [Tensor];
    return this.#whole.map(({ begin, end, shape }, i) => {
      const own = span(whole, begin, end);
      const { placement } = this.params[i]!;
      return placement === null ? own : partsOfWholes([own.reshape(shape)], [placement])[0]!;
    });
  }

  /** This rank's part of what is whole, or such a part itself. */
  own(vector: Tensor): Tensor {
    const flat = vector.detach().reshape([vector.size]);
    return vector.size === this.length ? flat.slice(this.#begin, this.#end) : flat;
  }

  products(): Products {
    const all = this.#room(Math.ceil(this.ownLength / BLOCK) * BLOCK);
    return { all, own: span(all, 0, this.ownLength) };
  }

  /** The sum of all products, a tensor of one element: of each block, then of these. */
  sum({ all }: Products): Tensor {
    const own = all.reshape([all.size / BLOCK, BLOCK]).sum(1);
    const [blocks] = wholesOf([own], [this.#blocks]) as [Tensor];
    return blocks.size === 1 ? blocks.reshape([]) : blocks.sum();
  }

  /** The largest absolute value, a tensor of one element. */
  largest(vector: Tensor): Tensor {
    const own = vector.size === 0 ? this.#room(1) : vector.norm(Number.POSITIVE_INFINITY);
    return largestOf(own, this.#axes);
  }

  /** Ranks whose losses are of other samples, or those that divide vectors. */
  get #others(): readonly MeshAxis<Tensor>[] {
    const averaged = new Set(this.params.flatMap(({ averagedOver }) => averagedOver ?? []));
    const others = [...averaged].filter(({ size }) => size > 1);
    return others.length > 0 ? others : this.#axes;
  }

  /** Whether ranks decide together. */
  get areShared(): boolean {
    return this.#others.length > 0;
  }

  /** The mean of all ranks' losses: one of them where they are equal, without rounding. */
  meanLoss(loss: number): number {
    const own = tensor([loss], { dtype: "f64", device: "js" });
    const axes = this.#others;
    const cuts = axes.map((axis) => ({ axis, dim: 0 }));
    const count = axes.reduce((product, { size }) => product * size, 1);
    const [all] = wholesOf([own], [{ shape: [count], cuts }]) as [Tensor];
    const losses = [...all.dataSync()];
    own.dispose();
    all.dispose();
    return losses.every((each) => each === loss) ? loss : losses.reduce((sum, each) => sum + each, 0) / count;
  }

  #room(length: number): Tensor {
    const { dtype, device } = this.params[0]!;
    return zeros([length], { dtype, device });
  }
}

const denseGradient = ({ grad, shape, dtype, device }: Tensor): Tensor =>
  grad === null ? zeros(shape, { dtype, device }) : ((grad as Partial<RowSparse>).toDense?.() ?? grad).detach();
