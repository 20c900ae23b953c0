/** Layers whose weights are divided over the ranks of an axis. They begin as the whole layer would, then are cut: W changes nothing. */
import {
  check,
  checkOptions,
  checkTensor,
  concat,
  gather,
  parameter,
  show,
  type Tensor,
  tidy,
  versionOf,
  zeros,
} from "@opt/core";
import { inEachRun } from "@opt/core/backend";
import { Embedding, type LayerOptions, Linear, type LinearOptions, Module } from "@opt/nn";
import { Communicator } from "../communicator/communicator";
import { digest } from "../communicator/digest";
import { partsOf } from "../communicator/parts";
import { sampleOf } from "../communicator/sample";
import { bytesNow } from "../communicator/staging";
import { cut } from "../placement/cut";
import { added, joined, shared } from "./exchange";

const OPTIONS = { bias: "boolean", dtype: "string", device: ["string", "object"], generator: "object" } as const;

/** A layer of which each rank has a part. The `placement` of its tensors says which. */
export abstract class DividedLayer extends Module {
  readonly #communicator: Communicator;
  /** The whole weights that this one's were cut from, as long as it has those: told apart by a number. */
  #drawn: { readonly weight: Tensor; readonly version: number; readonly digest: string } | undefined;

  /** @throws OptError BAD_ARGUMENT */
  constructor(where: string, communicator: Communicator, divided: number, what: string) {
    super();
    const isOurs = communicator instanceof Communicator;
    check(
      isOurs,
      "BAD_ARGUMENT",
      where,
      () => `needs a communicator, got ${show(communicator)}.`,
      `mesh(...).axis("model")`,
    );
    const isCount = Number.isSafeInteger(divided) && divided >= communicator.size;
    check(
      isCount,
      "BAD_ARGUMENT",
      where,
      () => `each of ${communicator.size} ranks needs ${what}, got ${show(divided)} of them.`,
    );
    this.#communicator = communicator;
  }

  /** Of the whole layer, which is not needed any more. */
  protected cutFrom(whole: Module, weight: Tensor): void {
    if (this.#communicator.size > 1) {
      const values = whole.parameters().map((each) => digest(bytesNow(DividedLayer.name, each)));
      this.#drawn = { weight, version: versionOf(weight), digest: digest(new TextEncoder().encode(values.join())) };
    }
    for (const each of whole.parameters()) each.dispose();
  }

  /** All ranks have parts of one layer: those that were drawn are compared before they are used. */
  protected noteWeights(where: string): void {
    if (this.#drawn === undefined) return;
    const { weight, version, digest } = this.#drawn;
    if (versionOf(weight) === version) this.#communicator.group.note(`weights of ${where} ${digest}`);
    this.#drawn = undefined;
  }

  /** The ranks that have the other parts. */
  get communicator(): Communicator {
    return this.#communicator;
  }
}

export interface ColumnParallelLinearOptions extends LinearOptions {
  /** Every rank gets all output features; otherwise its own, which a `RowParallelLinear` takes. Default false. */
  readonly gatherOutput?: boolean;
}

/**
 * A Linear whose output features are divided: weight [out / W, in], bias [out / W], x [..., in] the same on all ranks, y [..., out / W]
 * or, with `gatherOutput`, [..., out]. What comes out has the bits of the whole layer.
 *
 * @throws OptError BAD_ARGUMENT; forward: BAD_SHAPE, NOT_SYNC, UNSUPPORTED if the engine cannot wait in the middle of a forward
 * @example
 * const model = mesh(await connect(), { model: 1 }).axis("model");
 * const y = new ColumnParallelLinear(4, 6, model, { gatherOutput: true }).forward(randn([2, 4])); // [2, 6]
 */
export class ColumnParallelLinear extends DividedLayer {
  readonly weight: Tensor;
  readonly bias: Tensor | null;
  readonly gatherOutput: boolean;
  readonly #extents: readonly number[];

  constructor(
    inFeatures: number,
    outFeatures: number,
    communicator: Communicator,
    options: ColumnParallelLinearOptions = {},
  ) {
    const where = "ColumnParallelLinear";
    checkOptions(where, options, { ...OPTIONS, gatherOutput: "boolean" });
    super(where, communicator, outFeatures, "an output feature");
    const { gatherOutput = false, ...linear } = options;
    const whole = new Linear(inFeatures, outFeatures, linear);
    this.weight = cut(whole.weight, 0, communicator);
    this.bias = whole.bias && cut(whole.bias, 0, communicator);
    this.cutFrom(whole, this.weight);
    this.gatherOutput = gatherOutput;
    this.#extents = partsOf(outFeatures, communicator.size).map(({ begin, end }) => end - begin);
  }

  forward(x: Tensor): Tensor {
    const where = "ColumnParallelLinear";
    checkInput(where, x, this.weight);
    this.noteWeights(where);
    return tidy(() => {
      const product = linear(shared(where, x, this.communicator), this.weight);
      const own = this.bias === null ? product : product.add(this.bias);
      return this.gatherOutput ? joined(where, own, this.#extents, this.communicator) : own;
    });
  }
}

export interface RowParallelLinearOptions extends LinearOptions {
  /** x holds this rank's input features, as a `ColumnParallelLinear` gives them; otherwise all of them. Default true. */
  readonly inputIsParallel?: boolean;
}

/**
 * A Linear whose input features are divided: weight [out, in / W], bias [out] on every rank, x [..., in / W], y [..., out], which is
 * added over the ranks in their order: equal to the whole layer within rounding.
 *
 * @throws OptError BAD_ARGUMENT; forward: BAD_SHAPE, NOT_SYNC, UNSUPPORTED if the engine cannot wait in the middle of a forward
 * @example
 * const model = mesh(await connect(), { model: 1 }).axis("model");
 * const hidden = new ColumnParallelLinear(4, 6, model).forward(randn([2, 4])).relu();
 * const y = new RowParallelLinear(6, 3, model).forward(hidden); // [2, 3]
 */
export class RowParallelLinear extends DividedLayer {
  readonly weight: Tensor;
  readonly bias: Tensor | null;
  readonly inputIsParallel: boolean;
  readonly #part: { readonly begin: number; readonly end: number };
  readonly #inFeatures: number;

  constructor(
    inFeatures: number,
    outFeatures: number,
    communicator: Communicator,
    options: RowParallelLinearOptions = {},
  ) {
    const where = "RowParallelLinear";
    checkOptions(where, options, { ...OPTIONS, inputIsParallel: "boolean" });
    super(where, communicator, inFeatures, "an input feature");
    const { inputIsParallel = true, ...linear } = options;
    const whole = new Linear(inFeatures, outFeatures, linear);
    this.weight = cut(whole.weight, 1, communicator);
    this.bias = whole.bias && parameter(whole.bias.detach().clone());
    this.cutFrom(whole, this.weight);
    this.inputIsParallel = inputIsParallel;
    this.#part = partsOf(inFeatures, communicator.size)[communicator.rank]!;
    this.#inFeatures = inFeatures;
  }

  forward(x: Tensor): Tensor {
    const where = "RowParallelLinear";
    checkTensor(where, x);
    if (!this.inputIsParallel) checkFeatures(where, x, this.#inFeatures);
    this.noteWeights(where);
    return tidy(() => {
      const { begin, end } = this.#part;
      const own = this.inputIsParallel ? x : shared(where, x, this.communicator).slice(begin, end, -1);
      checkInput(where, own, this.weight);
      const sum = added(where, linear(own, this.weight), this.communicator);
      return this.bias === null ? sum : sum.add(this.bias);
    });
  }
}

/**
 * An Embedding whose rows are divided: weight [count / W, width], indices [...] the same on all ranks, y [..., width].
 *
 * @throws OptError BAD_ARGUMENT; forward: BAD_DTYPE, NOT_SYNC, UNSUPPORTED if the engine cannot wait in the middle of a forward
 * @example
 * const model = mesh(await connect(), { model: 1 }).axis("model");
 * const vectors = new ParallelEmbedding(64, 32, model).forward(tensor([[3, 1, 4]], { dtype: "i32" })); // [1, 3, 32]
 */
export class ParallelEmbedding extends DividedLayer {
  readonly weight: Tensor;
  readonly #begin: number;

  constructor(count: number, width: number, communicator: Communicator, options: LayerOptions = {}) {
    const where = "ParallelEmbedding";
    const { bias: _, ...kinds } = OPTIONS;
    checkOptions(where, options, kinds);
    super(where, communicator, count, "a row");
    const whole = new Embedding(count, width, options);
    this.weight = cut(whole.weight, 0, communicator);
    this.cutFrom(whole, this.weight);
    this.#begin = partsOf(count, communicator.size)[communicator.rank]!.begin;
  }

  forward(indices: Tensor): Tensor {
    const where = "ParallelEmbedding";
    checkTensor(where, indices, "indices");
    if (this.communicator.size === 1) return gather(this.weight, indices);
    this.noteWeights(where);
    const { group } = this.communicator;
    inEachRun([indices], (now) => group.note(`indices of ${where} [${now.shape}] ${sampleOf([now], 0)}`));
    return tidy(() => {
      const [rows, width] = this.weight.shape as [number, number];
      const { dtype, device } = this.weight;
      const local = indices.to("i32").sub(this.#begin);
      // Rows of other ranks are the one of zeros behind the own ones.
      const isOwn = local.ge(0).mul(local.lt(rows));
      const at = local.sub(rows).mul(isOwn.to("i32")).add(rows);
      const table = concat([this.weight, zeros([1, width], { dtype, device })], 0);
      return added(where, gather(table, at), this.communicator);
    });
  }
}

/** One matrix product over all leading axes. */
function linear(x: Tensor, weight: Tensor): Tensor {
  const [outFeatures, inFeatures] = weight.shape as [number, number];
  const rows = x.reshape([x.size / inFeatures, inFeatures]);
  return rows.matmul(weight, { transposeB: true }).reshape([...x.shape.slice(0, -1), outFeatures]);
}

function checkInput(where: string, x: Tensor, weight: Tensor): void {
  checkTensor(where, x);
  checkFeatures(where, x, weight.shape[1]!);
}

function checkFeatures(where: string, x: Tensor, features: number): void {
  check(
    x.shape.at(-1) === features,
    "BAD_SHAPE",
    where,
    () => `the last axis of the input must be ${features}, got shape [${x.shape}].`,
    "Reshape the input, or change inFeatures.",
  );
}
