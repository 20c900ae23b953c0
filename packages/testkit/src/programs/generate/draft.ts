/** A program while it is being drafted: the values that statements can use, and what is known of them. */
import type { DType, ErrorCode } from "@opt/core";
import type { Random } from "../../numbers/random";
import { isFloat, sizeOf } from "../numbers";
import { OPS } from "../ops";
import type { Fill, Id, Layer, Leaf, Options, Shape, Spec, Statement } from "../program";

export interface Value extends Spec {
  readonly id: Id;
  /** About the largest magnitude, and a number that no element is below. */
  readonly bound: number;
  readonly low: number;
  readonly requiresGrad: boolean;
  /** The same in every dtype and on every device: its order and its integers may decide something. */
  readonly certain: boolean;
  /** Whose memory it may share. */
  readonly root: Id;
  /** It is a copy where PyTorch has a view, which can't be written. */
  readonly isPart?: boolean;
}

/** An argument of the body that is no tensor. */
export interface Scalar {
  readonly scalar: Id;
}

export const NO_LIMIT = Number.NEGATIVE_INFINITY;

/** Ops that copy where PyTorch has views. */
const PARTS = /^(slice|permute|transpose|split|expand)$/;

export class Draft {
  readonly leaves: Leaf[] = [];
  readonly layers: Layer[] = [];
  /** Whether special values are among the numbers. */
  isSpecial = false;
  readonly mayReject = new Set<ErrorCode>();
  compiles = true;
  /** Some gradients are there when a body ends. */
  leavesGradients = false;
  /** Data whose first extent is another in some rounds; data that a round takes from the last one's results, by their names. */
  readonly batches = new Set<Id>();
  readonly carried = new Map<Id, Id>();
  readonly frozen = new Set<Id>();
  /** Data that hooks overwrite with averages of a parameter. */
  readonly averages = new Map<Id, Id>();
  /** Leaves that a round has disposed, and parameters that joined an optimizer later. */
  readonly disposed = new Set<Id>();
  readonly joined = new Set<Id>();
  /** Optimizers whose state a round has saved, and the first such round. */
  readonly saved = new Set<Id>();
  resumeBefore: number | undefined;
  /** What the next statement can see. */
  values: Value[] = [];
  /** Memory that a tape may have saved. */
  readonly taped = new Set<Id>();
  /** Where statements go. */
  statements: Statement[] = [];
  recording = true;
  /** A body is being drafted: it may have arguments. */
  inBody = false;
  #count = 0;

  constructor(
    readonly random: Random,
    /** Float dtypes of the program, the first the most frequent. */
    readonly dtypes: readonly DType[],
    /** Leaves are broadcast, cut and turned versions of this. */
    readonly shape: Shape,
  ) {}

  chance(probability: number): boolean {
    return this.random.uniform() < probability;
  }

  fill(kind?: Fill["kind"]): Fill {
    const { random } = this;
    if (this.isSpecial && kind === undefined && this.chance(0.5)) kind = "special";
    return { kind: kind ?? random.pick(["grid", "grid", "small", "ties"]), seed: random.below(1 << 20) };
  }

  newId(prefix: string): Id {
    return `${prefix}${this.#count++}`;
  }

  /** The name of an argument of the body: a number ("k") or a boolean ("b"). */
  argument(kind: "k" | "b"): Scalar {
    return { scalar: this.newId(kind) };
  }

  leaf(kind: Leaf["kind"], shape: Shape, dtype: DType, fill = this.fill(), of?: Leaf["of"]): Value {
    const id = this.newId(kind === "parameter" ? "w" : kind === "marked" ? "m" : "x");
    this.leaves.push({ id, kind, shape, dtype, fill, ...(of && { of }) });
    const value: Value = {
      id,
      shape,
      dtype,
      bound: fill.kind === "whole" ? (fill.below ?? 6) : 4,
      low: fill.kind === "whole" ? 0 : -4,
      requiresGrad: kind !== "data",
      certain: kind === "data",
      root: id,
    };
    this.values.push(value);
    return value;
  }

  /** A layer, and its weights as leaves. */
  layer(
    kind: string,
    sizes: readonly number[],
    dtype: DType,
    weights: Readonly<Record<string, Shape>>,
    options: Options = {},
  ): [Id, Value[]] {
    const id = this.newId("n");
    this.layers.push({ id, kind, sizes, dtype, options });
    const of = (name: string) => ({ layer: id, name });
    return [
      id,
      Object.entries(weights).map(([name, shape]) =>
        this.leaf("parameter", shape, dtype, this.fill("small"), of(name)),
      ),
    ];
  }

  /** A float dtype of the program. */
  floatDType(): DType {
    return this.chance(0.6) ? this.dtypes[0]! : this.random.pick(this.dtypes);
  }

  /** A value of a shape: one that is there, or a new leaf. */
  ofShape(shape: Shape): Value {
    const known = this.values.filter((value) => String(value.shape) === String(shape) && isFloat(value.dtype));
    if (known.length > 0 && this.chance(0.7)) return this.random.pick(known);
    return this.leaf(this.chance(0.5) ? "parameter" : "data", shape, this.floatDType());
  }

  /** Writes `id = op(of, options)` down. */
  op(op: string, of: readonly (Value | number | Scalar)[], facts: Partial<Value>, options?: Options): Value {
    const kind = OPS[op]!;
    const tensors = of.filter((operand) => typeof operand !== "number" && "id" in operand);
    const numbers = of.filter((operand) => typeof operand === "number");
    const spec = kind.spec(tensors, options ?? {}, numbers);
    const id = this.newId("t");
    const requiresGrad =
      this.recording &&
      isFloat(spec.dtype) &&
      op !== "detach" &&
      op !== "less" &&
      op !== "argmax" &&
      tensors.some((tensor) => tensor.requiresGrad);
    const value: Value = {
      id,
      shape: spec.shape,
      dtype: spec.dtype,
      bound: Math.max(...tensors.map((tensor) => tensor.bound)),
      low: NO_LIMIT,
      certain: false,
      root: kind.view ? tensors[0]!.root : id,
      isPart: PARTS.test(op) || (kind.view === true && tensors[0]!.isPart === true),
      ...facts,
      requiresGrad,
    };
    if (requiresGrad) for (const { root } of [...tensors, value]) this.taped.add(root);
    this.statements.push({
      do: "op",
      id,
      op,
      of: of.map((one) => (typeof one === "number" ? one : "id" in one ? one.id : one.scalar)),
      ...(options && { options }),
    });
    this.values.push(value);
    return value;
  }

  /** Buffers of a layer: leaves that no other statement sees. */
  buffers(layer: Id, named: Readonly<Record<string, readonly [Shape, DType, Fill]>>): void {
    const before = [...this.values];
    for (const [name, [shape, dtype, fill]] of Object.entries(named)) {
      this.leaf("data", shape, dtype, fill, { layer, name });
    }
    this.values = before;
  }

  /** Statements written by `body`, apart from the others. */
  inner(body: () => void): Statement[] {
    const outer = this.statements;
    this.statements = [];
    try {
      body();
      return this.statements;
    } finally {
      this.statements = outer;
    }
  }

  /** What shares memory with an overwritten value has unknown numbers now. */
  overwritten(root: Id): void {
    this.values = this.values.map((value) =>
      value.root === root ? { ...value, certain: false, low: NO_LIMIT } : value,
    );
  }

  forget(isForgotten: (value: Value) => boolean): void {
    this.values = this.values.filter((value) => !isForgotten(value));
  }

  floats(): Value[] {
    return this.values.filter(({ dtype }) => isFloat(dtype));
  }

  isEmpty({ shape }: Spec): boolean {
    return sizeOf(shape) === 0;
  }
}
