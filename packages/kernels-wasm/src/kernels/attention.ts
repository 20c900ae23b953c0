/** Attention and its gradient, item by item: the products and row programs of its ops, on scores that never leave a thread. */
import {
  type ComputeDType,
  headShapes,
  type Launch,
  type Slice,
  softmaxGradRows,
  softmaxRows,
} from "@opt/core/backend";
import { type FunctionBuilder, f64x2, i32, type Local, ModuleBuilder } from "../assembler";
import { LANES } from "../emit/lanes";
import type { Execution, KernelSource, Target } from "../kernel";
import { type Float, floatOf } from "./float";
import { emitProduct } from "./matmul/matmul";
import { MULTIPLY_ADDS, PRODUCT_WORDS, packingBytes, STRIPES, wordsOfProduct } from "./matmul/share-out";
import { walkBlocks, walkRow } from "./row";
import { emitRows } from "./rows";
import { readWords } from "./words";

type Pointer = Local<"i32">;
type Kinds = "attention" | "attentionGrad";

const PLAIN = { transposeA: false, transposeB: false };
const LEFT = { transposeA: true, transposeB: false };
const RIGHT = { transposeA: false, transposeB: true };

/** Matrices in memory. `result` is the output, or its gradient. */
const OPERANDS = ["query", "key", "value", "result", "queryGradient", "keyGradient", "valueGradient"] as const;
/** Matrices of the item that a stripe is at: the query times the scale, the weights, and gradients of scores. */
const SCRATCH = ["scaled", "weights", "scores"] as const;
type Matrix = (typeof OPERANDS)[number] | (typeof SCRATCH)[number];

interface Product {
  readonly form: typeof PLAIN;
  readonly matrices: readonly [a: Matrix, b: Matrix, c: Matrix];
}

const PRODUCTS: Readonly<Record<Kinds, readonly Product[]>> = {
  attention: [
    { form: RIGHT, matrices: ["scaled", "key", "weights"] },
    { form: PLAIN, matrices: ["weights", "value", "result"] },
  ],
  attentionGrad: [
    { form: RIGHT, matrices: ["scaled", "key", "weights"] },
    { form: LEFT, matrices: ["weights", "result", "valueGradient"] },
    { form: RIGHT, matrices: ["result", "value", "scores"] },
    { form: LEFT, matrices: ["scores", "scaled", "keyGradient"] },
    { form: PLAIN, matrices: ["scores", "key", "queryGradient"] },
  ],
};

const isScratch = (name: Matrix): name is (typeof SCRATCH)[number] => SCRATCH.some((other) => other === name);

/** What a launch passes on, in bytes. Items are shared out in stripes of `unit`, each with words of its own from `stripes` on. */
const WORDS = [
  ...["batch", "heads", "unit", "queries", "keys", "width", "causal", "stripes", "stripeBytes"],
  ...OPERANDS.flatMap((name) => [name, `${name}Outer`, `${name}Head`] as const),
  ...["queryRow", "queryGradientRow"],
] as const;

/** Writes code for one item. */
class ItemWriter {
  readonly #scratch: Readonly<Record<(typeof SCRATCH)[number], Pointer>>;
  /** The next product's words. */
  readonly #words: Pointer;
  #product = 0;

  constructor(
    private readonly f: FunctionBuilder,
    private readonly float: Float,
    private readonly kind: Kinds,
    private readonly calls: readonly ReturnType<typeof emitProduct>[],
    private readonly operands: ReadonlyMap<Matrix, Pointer>,
    stripe: Pointer,
  ) {
    this.#scratch = readWords(f, stripe, SCRATCH);
    this.#words = f.local("i32", i32.add(stripe, 4 * SCRATCH.length));
  }

  matrix(name: Matrix): Pointer {
    return this.operands.get(name) ?? this.#scratch[name as (typeof SCRATCH)[number]];
  }

  /** The next product. */
  multiply(): void {
    const { f } = this;
    const { matrices } = PRODUCTS[this.kind][this.#product]!;
    for (const [word, name] of matrices.entries()) f.do(i32.store(this.#words, this.matrix(name), 4 * word));
    f.do(this.calls[this.#product++]!(0, 1, this.#words));
    f.increase(this.#words, 4 * PRODUCT_WORDS);
  }

  /** target = source * factor, elementwise. */
  scale(source: Pointer, target: Pointer, length: Pointer, factor: Local<"v128">): void {
    const { mul } = this.float.vector;
    walkRow(this.f, this.float, [source, target], length, (step, from, to) => {
      step.store(to, mul(step.load(from), factor));
    });
  }
}

function emit(kind: Kinds, dtype: ComputeDType, target: Target): ModuleBuilder {
  const float = floatOf(dtype);
  const module = new ModuleBuilder(target);
  const products = PRODUCTS[kind];
  const forms = [PLAIN, LEFT, RIGHT].filter((form) => products.some((product) => product.form === form));
  const made = new Map(forms.map((form) => [form, emitProduct(module, { ...form, dtype }, target)]));
  const calls = products.map(({ form }) => made.get(form)!);
  const softmax = emitRows(module, softmaxRows, dtype, target, "weights");
  const softmaxGrad = kind === "attentionGrad" ? emitRows(module, softmaxGradRows, dtype, target, "scores") : undefined;

  module.function({ parameters: ["i32", "i32", "i32", "f64"], export: "items" }, (f, start, end, table, scale) => {
    const words = readWords(f, table, WORDS);
    const { queries, keys, width } = words;
    const factor = f.local("v128", LANES[dtype].splat(scale));
    const stripe = f.local("i32", i32.add(words.stripes, i32.mul(start, words.stripeBytes)));
    const last = f.least(i32.mul(end, words.unit), words.batch);
    const index = f.local("i32");
    f.for(index, i32.mul(start, words.unit), last, 1, () => {
      const outer = f.local("i32", i32.divU(index, words.heads));
      const head = f.local("i32", i32.remU(index, words.heads));
      const operands = OPERANDS.map((name): [Matrix, Pointer] => {
        const offset = i32.add(i32.mul(outer, words[`${name}Outer`]), i32.mul(head, words[`${name}Head`]));
        return [name, f.local("i32", i32.add(words[name], offset))];
      });
      const item = new ItemWriter(f, float, kind, calls, new Map(operands), stripe);
      const [query, scaled] = [f.local("i32", item.matrix("query")), f.local("i32", item.matrix("scaled"))];
      const left = f.local("i32", queries);
      const rowsOfQuery = [
        [query, words.queryRow],
        [scaled, i32.mul(width, float.bytes)],
      ] as const;
      f.walk(left, 1, rowsOfQuery, () => item.scale(query, scaled, width, factor));

      /** Calls `body` for each row of scores, with how many keys its query sees, and clears the others in `cleared`. */
      const forRows = (cleared: Matrix, body: (seen: Pointer, weights: Pointer, scores: Pointer) => void) => {
        const [weights, scores] = [f.local("i32", item.matrix("weights")), f.local("i32", item.matrix("scores"))];
        const line = cleared === "weights" ? weights : scores;
        const row = f.local("i32");
        const seen = f.local("i32");
        f.for(row, 0, queries, 1, () => {
          f.set(seen, keys);
          f.if(words.causal, () => f.set(seen, f.least(i32.add(row, 1), keys)));
          body(seen, weights, scores);
          const hidden = f.local("i32", i32.sub(keys, seen));
          f.if(hidden, () => {
            const from = i32.add(line, i32.mul(seen, float.bytes));
            // Where weights are not finite, those of hidden keys are NaN, too.
            const zero = f.local(
              "v128",
              float.vector.mul(float.vector.loadSplat(line), f.constant(f64x2.const([0, 0]))),
            );
            const value = cleared === "weights" ? zero : f.constant(f64x2.const([0, 0]));
            walkBlocks(f, float, [from], hidden, 1, ([step], to) => step!.store(to, value));
          });
          for (const pointer of [weights, scores]) f.increase(pointer, i32.mul(keys, float.bytes));
        });
      };

      item.multiply();
      forRows("weights", (seen, weights) => f.do(softmax(0, 1, seen, 0, 0, weights, weights)));
      item.multiply();
      if (softmaxGrad === undefined) return;
      item.multiply();
      forRows("scores", (seen, weights, scores) => f.do(softmaxGrad(0, 1, seen, 0, 0, weights, scores, scores)));
      item.multiply();
      item.multiply();
      const gradient = f.local("i32", item.matrix("queryGradient"));
      f.walk(f.local("i32", queries), 1, [[gradient, words.queryGradientRow]], () =>
        item.scale(gradient, gradient, width, factor),
      );
    });
  });
  return module;
}

function launch(given: Launch<Kinds>, execution: Execution): void {
  const { kind, kernel, batch, queries, keys, width, scale, causal, heads, strides } = given;
  const float = floatOf(kernel.spec.dtype);
  const { bytes } = float;
  const result = given.kind === "attention" ? given.output : given.gradient;
  const gradients = given.kind === "attentionGrad" ? given : undefined;
  const ofScratch = { scaled: [queries, width], weights: [queries, keys], scores: [queries, keys] } as const;
  const shapes = headShapes(given);
  const shapeOf = (name: Matrix) => (isScratch(name) ? ofScratch[name] : shapes[OPERANDS.indexOf(name)]!);
  const rowStride = (name: Matrix) => (isScratch(name) ? ofScratch[name][1] : strides[OPERANDS.indexOf(name)]![2]);
  const products = PRODUCTS[kind].map(({ form, matrices: [a, b, c] }) => {
    const [m, n] = shapeOf(c);
    const k = shapeOf(a)[form.transposeA ? 0 : 1]!;
    const values = { a: 0, b: 0, c: 0, m, n, k, batch: 1, strideA: 0, strideB: 0, axis: 0, unit: 1 };
    return {
      ...values,
      rowA: rowStride(a),
      rowB: rowStride(b),
      rowC: rowStride(c),
      ...packingBytes(float, n, form.transposeA),
    };
  });
  const unit = Math.ceil(batch / STRIPES);
  const range = batch === 0 ? 0 : Math.ceil(batch / unit);
  const packing = Math.max(...products.map(({ slotBytes }) => slotBytes));
  const sizes = SCRATCH.map((name) => Math.ceil((ofScratch[name][0] * ofScratch[name][1] * bytes) / 64) * 64);
  const [scaled, weights, scores] = sizes as [number, number, number];
  const stripeBytes = packing + scaled + weights + (gradients ? scores : 0);
  const scratch = execution.scratch(range * stripeBytes);
  const stripes = Array.from({ length: range }, (_, stripe) => {
    const from = scratch + stripe * stripeBytes + packing;
    const words = products.map((product) => wordsOfProduct({ ...product, scratch: from - packing }));
    return [from, from + scaled, from + scaled + weights, ...words.flat()];
  });
  const addressOf = (slice: Slice | undefined) => (slice === undefined ? 0 : execution.address(slice));
  const slices: Record<(typeof OPERANDS)[number], Slice | undefined> = {
    ...{ query: given.query, key: given.key, value: given.value, result },
    queryGradient: gradients?.queryGradient,
    keyGradient: gradients?.keyGradient,
    valueGradient: gradients?.valueGradient,
  };
  const places = OPERANDS.flatMap((name, operand) => {
    const [outer, head] = strides[operand]!;
    return [addressOf(slices[name]), outer * bytes, head * bytes];
  });
  const table = execution.table([
    ...[batch, heads, unit, queries, keys, width, Number(causal)],
    execution.table(stripes.flat()),
    4 * (SCRATCH.length + products.length * PRODUCT_WORDS),
    ...places,
    ...[rowStride("query") * bytes, rowStride("queryGradient") * bytes],
  ]);
  const multiplyAdds = products.reduce((sum, { m, n, k }) => sum + m * n * k, 0);
  execution.run("items", { range, work: batch * (multiplyAdds / MULTIPLY_ADDS + 8 * queries * keys) }, table, scale);
}

export const attention: KernelSource<"attention"> = {
  emit: ({ dtype }, target) => emit("attention", dtype, target),
  launch,
};

export const attentionGrad: KernelSource<"attentionGrad"> = {
  emit: ({ dtype }, target) => emit("attentionGrad", dtype, target),
  launch,
};
