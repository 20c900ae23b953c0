/** A sequence through an LSTM and its gradient, place by place: a product, then the maps of its ops, row by row while they are in the cache. */
import { add, div, Expression, exp, mul, neg, sub, tanh } from "@opt/core";
import { byteSize, type Launch, type Program, type Slice, trace } from "@opt/core/backend";
import { i32, type Local, ModuleBuilder } from "../assembler";
import type { Execution, KernelSource, Target } from "../kernel";
import { costOf, emitRow } from "./map";
import { emitProduct } from "./matmul/matmul";
import { shareOut } from "./matmul/share-out";

type Spec = Launch<"lstm" | "lstmGrad">["kernel"]["spec"];

/** Widths that a row of each operand takes: of the bias there is one row. */
const WIDTHS = {
  ...{ inputs: 4, bias: 0, gates: 4, last: 1, cells: 1, results: 1 },
  ...{ gradient: 1, shown: 1, ofGates: 4, ofHidden: 1, ofCell: 1, ofLast: 1 },
} as const;
type Operand = keyof typeof WIDTHS;
/** An operand from a gate on: 0 to 3 are i, f, g and o. */
type Part = Operand | readonly [operand: Operand, gate: number];

/** A map over one row: of so many gates, into a part, from others. */
interface Step {
  readonly program: Program;
  readonly gates?: number;
  readonly to: Part;
  readonly from: readonly Part[];
}

const FORMS = {
  lstm: { transposeA: false, transposeB: true },
  lstmGrad: { transposeA: false, transposeB: false },
} as const;

type E = Expression;

/** The program of an expression, in which each op rounds as it does by itself. */
function map(expression: (...buffers: E[]) => E): Program {
  const buffers = Array.from({ length: expression.length }, (_, slot) => new Expression("buffer", [], slot));
  return trace(buffers.map(String), [], [{ slot: 0, expression: expression(...buffers) }]);
}

const sum = (input: E, bias: E, product: E) => add(add(input, bias), product);
const rest = (x: E) => sub(1, x);
const sigmoid = map((input, bias, product) => div(1, add(1, exp(neg(sum(input!, bias!, product!))))));
const gate = (program: Program, at: number, gates = 1): Step => {
  const from = (["inputs", "bias", "gates"] as const).map((operand) => [operand, at] as const);
  return { program, gates, to: ["gates", at], from };
};

/** What follows the product of a place, which is in the gates. */
const PLACE: readonly Step[] = [
  gate(sigmoid, 0, 2),
  gate(
    map((input, bias, product) => tanh(sum(input!, bias!, product!))),
    2,
  ),
  gate(sigmoid, 3),
  {
    program: map((f, c, i, g) => add(mul(f!, c!), mul(i!, g!))),
    to: "cells",
    from: [["gates", 1], "last", ["gates", 0], ["gates", 2]],
  },
  { program: map((o, next) => mul(o!, tanh(next!))), to: "results", from: [["gates", 3], "cells"] },
];

/** What the last place is handed. */
const GRAD_FIRST: readonly Step[] = [
  { program: map(() => Expression.constant(0)), to: "ofHidden", from: [] },
  { program: map((x) => x!), to: "ofCell", from: ["ofLast"] },
];

/** The gradient of a sigmoid's argument, from its result y and two factors. */
const throughSigmoid = map((a, b, y) => mul(mul(mul(a!, b!), y!), rest(y!)));

/** What the product of a place follows, which is what it hands on to the place before. */
const GRAD_PLACE: readonly Step[] = [
  { program: map((next) => tanh(next!)), to: "shown", from: ["cells"] },
  { program: map((a, b) => add(a!, b!)), to: "ofHidden", from: ["ofHidden", "gradient"] },
  {
    program: map((c, h, o, shown) => add(c!, mul(mul(h!, o!), rest(mul(shown!, shown!))))),
    to: "ofCell",
    from: ["ofCell", "ofHidden", ["gates", 3], "shown"],
  },
  { program: throughSigmoid, to: ["ofGates", 0], from: ["ofCell", ["gates", 2], ["gates", 0]] },
  { program: throughSigmoid, to: ["ofGates", 1], from: ["ofCell", "last", ["gates", 1]] },
  {
    program: map((c, i, g) => mul(mul(c!, i!), rest(mul(g!, g!)))),
    to: ["ofGates", 2],
    from: ["ofCell", ["gates", 0], ["gates", 2]],
  },
  { program: throughSigmoid, to: ["ofGates", 3], from: ["ofHidden", "shown", ["gates", 3]] },
  { program: map((c, f) => mul(c!, f!)), to: "ofCell", from: ["ofCell", ["gates", 1]] },
];

const FIRST = ["ofHidden", "ofCell", "ofLast"] as const;
const FORWARD = ["inputs", "bias", "gates", "last", "cells", "results"] as const;
const BACKWARD = ["gates", "last", "cells", "gradient", "shown", "ofGates", "ofHidden", "ofCell"] as const;

/** Exports `name(start, end, width, ...operands)`: the steps of some rows. */
function emitSteps(
  module: ModuleBuilder,
  name: string,
  operands: readonly Operand[],
  steps: readonly Step[],
  { dtype }: Spec,
  target: Target,
): void {
  const bytes = byteSize(dtype);
  const rows = new Map(steps.map(({ program }) => [program, emitRow(module, program, dtype, target)]));
  const types = operands.map(() => "i32" as const);
  module.items(name, ["i32", ...types], (f, index, width, ...slices) => {
    const stride = f.local("i32", i32.mul(width as Local<"i32">, bytes));
    const own = f.local("i32", i32.mul(stride, index));
    const starts = operands.map((operand, k) =>
      f.local("i32", i32.add(slices[k] as Local<"i32">, i32.mul(own, WIDTHS[operand]))),
    );
    const at = (part: Part) => {
      const [operand, gate] = typeof part === "string" ? [part, 0] : part;
      return i32.add(starts[operands.indexOf(operand)]!, i32.mul(stride, gate));
    };
    for (const { program, gates = 1, to, from } of steps) {
      const inputs = from.flatMap((part) => [at(part), i32.const(bytes)]);
      f.do(rows.get(program)!(at(to), i32.mul(width as Local<"i32">, gates), ...inputs));
    }
  });
}

function emit(spec: Spec, target: Target): ModuleBuilder {
  const module = new ModuleBuilder(target);
  emitProduct(module, { ...FORMS[spec.kind], dtype: spec.dtype }, target, "multiply");
  if (spec.kind === "lstm") emitSteps(module, "place", FORWARD, PLACE, spec, target);
  else {
    emitSteps(module, "first", FIRST, GRAD_FIRST, spec, target);
    emitSteps(module, "place", BACKWARD, GRAD_PLACE, spec, target);
  }
  return module;
}

const costOfSteps = (steps: readonly Step[]) =>
  steps.reduce((sum, { program, gates = 1 }) => sum + gates * costOf(program), 0);
/** What a number of the state costs at a place. */
const [COST, GRAD_COST] = [costOfSteps(PLACE), costOfSteps(GRAD_PLACE)];

/** Slices of places, in the order in which they are gone through. */
function placesOf({ kernel, length, batch, width, reverse }: Launch<"lstm" | "lstmGrad">) {
  const bytes = byteSize(kernel.spec.dtype);
  return Array.from({ length }, (_, step) => {
    const place = reverse ? length - 1 - step : step;
    return ({ memory, byteOffset }: Slice, gates = 1): Slice => {
      const size = gates * batch * width;
      return { memory, byteOffset: byteOffset + place * size * bytes, length: size };
    };
  });
}

/** What multiplies by the weight, or its transpose. */
function multiplier({ kernel: { spec }, batch, width, weight }: Launch<"lstm" | "lstmGrad">, execution: Execution) {
  const [n, k] = spec.kind === "lstm" ? [4 * width, width] : [width, 4 * width];
  const sizes = { batch: 1, m: batch, n, k, strideA: 0, strideB: 0 };
  const { range, work, words } = shareOut({ ...FORMS[spec.kind], dtype: spec.dtype }, sizes, execution);
  words[1] = execution.address(weight);
  return (from: Slice, to: Slice) => {
    words[0] = execution.address(from);
    words[2] = execution.address(to);
    execution.run("multiply", { range, work }, execution.table(words));
  };
}

export const lstm: KernelSource<"lstm"> = {
  emit,
  launch(launch, execution) {
    const { inputs, bias, gates, cells, results, batch, width } = launch;
    let { hidden, cell: last } = launch;
    const split = { range: batch, work: batch * width * COST };
    const multiply = multiplier(launch, execution);
    for (const at of placesOf(launch)) {
      multiply(hidden, at(gates, 4));
      execution.run("place", split, width, at(inputs, 4), bias, at(gates, 4), last, at(cells), at(results));
      [hidden, last] = [at(results), at(cells)];
    }
  },
};

export const lstmGrad: KernelSource<"lstmGrad"> = {
  emit,
  launch(launch, execution) {
    const { kernel, cell, cells, gates, gradient, cellGradient, batch, width } = launch;
    const { inputsGradient, firstHiddenGradient: ofHidden, firstCellGradient: ofCell } = launch;
    const places = placesOf(launch);
    const multiply = multiplier(launch, execution);
    const shown = execution.scratch(batch * width * byteSize(kernel.spec.dtype));
    const split = { range: batch, work: batch * width * GRAD_COST };
    execution.run("first", split, width, ofHidden, ofCell, cellGradient);
    for (const [step, at] of [...places.entries()].reverse()) {
      const last = step === 0 ? cell : places[step - 1]!(cells);
      const [own, ofGates] = [at(gates, 4), at(inputsGradient, 4)];
      execution.run("place", split, width, own, last, at(cells), at(gradient), shown, ofGates, ofHidden, ofCell);
      multiply(ofGates, ofHidden);
    }
  },
};
