/** What a program must do, in float64: forward, gradients of any order and steps, without any of the code that is tested. */
import { Random } from "../../numbers/random";
import { EPSILON, isFloat, numbersOf } from "../numbers";
import type { Argument, Fill, Hook, Id, Layer, Leaf, Options, Program, Shape, Spec, Statement } from "../program";
import { innerOf, statementsOf } from "../program";
import { ARRANGING } from "./arranging";
import { ELEMENTWISE, type Interpretation } from "./elementwise";
import { chosen, INDEXING, written } from "./indexing";
import { NETWORKS } from "./networks";
import { constant, filled, gradients, Node, plus, times } from "./node";
import { mustHold, Rejected } from "./places";
import { REDUCING } from "./reducing";
import { canStep, Stepper } from "./steps";

const OPS: Readonly<Record<string, Interpretation>> = {
  ...ELEMENTWISE,
  ...ARRANGING,
  ...REDUCING,
  ...NETWORKS,
  ...INDEXING,
};

export interface Interpreted {
  /** After each round by name, as an observation has them: "w0", "w0.grad", "result t7". */
  readonly rounds: readonly ReadonlyMap<string, Float64Array>[];
  /** Why and where it must be rejected. */
  readonly rejected: { readonly why: string; readonly at: Statement } | null;
  /** Of all gradients, those on the way too: what rounding loses of the largest is not in the others. */
  readonly largest: number;
}

type Of<Kind extends Statement["do"]> = Extract<Statement, { do: Kind }>;

const STATEMENTS: { readonly [Kind in Statement["do"]]?: (self: Interpreter, statement: Of<Kind>) => void } = {
  op(self, { id, op, of, options = {} }) {
    const operands = of.map((one) => (typeof one === "number" ? one : (self.plain[one] ?? self.value(one))));
    const all = { ...self.layerFacts(options.layer as Id | undefined), ...options };
    const result = OPS[op]!(operands as (Node | number)[], all);
    const factors = self.factors.get(options.layer as Id) ?? [];
    self.give(
      id,
      factors.reduce((x, factor) => times(x, filled(x.shape, factor)), result),
    );
  },
  constant: (self, { id, shape, fill, dtype }) => self.give(id, new Node(shape, self.numbers(fill, { shape, dtype }))),
  set(self, { to, from }) {
    const target = self.value(to);
    target.data.set(typeof from === "string" ? self.value(from).data : self.numbers(from, self.leaf(to)));
  },
  move(self, { of, from, to, count }) {
    self.value(of).data.copyWithin(to, from, from + count);
  },
  /** What is no leaf is the result from then on. */
  assign(self, { of, index, tensors, from }) {
    const x = self.value(of);
    const picks = tensors.map((id) => self.value(id));
    const result = written(x, self.value(from), chosen(x.shape, index, picks), false);
    if (self.isLeaf(of)) x.data.set(result.data);
    else self.give(of, result);
  },
  /** A part is a view: what is written to it is in the whole. */
  writePart(self, { of, op, options, from }) {
    const whole = self.value(of);
    const numbered = new Node(
      whole.shape,
      whole.data.map((_, i) => i),
    );
    const places = OPS[op]!([numbered], options);
    const { data } = self.value(from);
    places.data.forEach((place, i) => {
      whole.data[place] = data[i]!;
    });
  },
  train(self, { training, layers = self.program.layers.map(({ id }) => id) }) {
    for (const id of layers) {
      if (training) self.evaluating.delete(id);
      else self.evaluating.add(id);
    }
  },
  /** Ops name the tensor itself. */
  tie: () => undefined,
  onForward(self, { layer, factor }) {
    self.factors.set(layer, [...(self.factors.get(layer) ?? []), factor]);
  },
  onGradient(self, { of, body }) {
    const node = self.value(of);
    self.gradientHooks.set(node, [...(self.gradientHooks.get(node) ?? []), body]);
  },
  /** A scaler whose gradients are finite changes nothing. */
  unscale: () => undefined,
  update: () => undefined,
  grad(self, { id, of, by }) {
    const output = self.value(of);
    mustHold(output.requiresGrad && output.data.length === 1, "a gradient of one element");
    const [gradient] = self.gradientsOf(output, filled(output.shape, 1), [self.value(by)]);
    mustHold(gradient !== null, `${of} is computed from ${by}`);
    self.give(id, gradient!);
  },
  backward(self, { of, gradient, retain }) {
    const output = self.value(of);
    mustHold(!self.spent.has(output), "a graph that no backward has freed");
    if (!retain && output.edges.length > 0) self.spent.add(output);
    mustHold(output.requiresGrad, "something with a gradient");
    mustHold(gradient !== null || output.data.length === 1, "one element, or a gradient");
    const seed = gradient === null ? filled(output.shape, 1) : constant(self.value(gradient));
    const trained = self.trained();
    const found = self.gradientsOf(output, seed, trained);
    trained.forEach((node, i) => {
      if (found[i] === null) return;
      self.accumulate(node, found[i]!);
      for (const body of self.gradientHooks.get(node) ?? []) self.runAll(body);
    });
  },
  gradient(self, { of, value }) {
    const node = self.value(of);
    if (value === null) self.gradients.delete(node);
    else if (typeof value === "number") {
      const before = self.gradients.get(node);
      if (before) self.gradients.set(node, constant({ shape: before.shape, data: before.data.map((v) => v * value) }));
    } else {
      const data = typeof value === "string" ? self.value(value).data.slice() : self.numbers(value, self.leaf(of));
      self.gradients.set(node, constant({ shape: node.shape, data }));
    }
  },
  clip(self, { how, params, limit, normType = 2 }) {
    const found = params.flatMap((id) => self.gradients.get(self.value(id)) ?? []);
    const change = ({ data }: Node, by: (value: number) => number) => data.set(data.map(by));
    if (how === "value") {
      for (const one of found) change(one, (v) => Math.min(Math.max(v, -limit), limit));
      return;
    }
    const power = (data: Float64Array) => data.reduce((total, v) => total + Math.abs(v) ** normType, 0);
    for (const lists of how === "each" ? found.map((one) => [one]) : [found]) {
      const total = lists.reduce((sum, { data }) => sum + power(data), 0) ** (1 / normType);
      // PyTorch's adds a little to the norm of all.
      const factor = Math.min(1, limit / (how === "each" ? total : total + 1e-6));
      for (const one of lists) change(one, (v) => v * factor);
    }
  },
  step(self, { optimizer }) {
    const stepper = self.steppers.get(optimizer)!;
    const hook = (at: Hook["event"]) => {
      for (const { event, body } of stepper.use.hooks ?? []) if (event === at) self.runAll(body);
    };
    hook("beforeStep");
    stepper.step(
      (id) => self.value(id),
      (node) => self.gradients.get(node),
    );
    hook("afterStep");
  },
  zeroGrad(self, { optimizer, setToNull }) {
    const { groups } = self.steppers.get(optimizer)!.use;
    for (const id of groups.flatMap(({ params }) => params)) {
      const node = self.value(id);
      if (setToNull) self.gradients.delete(node);
      else self.gradients.get(node)?.data.fill(0);
    }
  },
  freeze(self, { of, frozen }) {
    self.value(of).isTrained = !frozen;
  },
  freezeLayer(self, { layer }) {
    for (const id of self.weightsOf(layer)) self.value(id).isTrained = false;
  },
  replace(self, { layer, seed }) {
    self.factors.delete(layer);
    for (const leaf of self.program.leaves) {
      if (leaf.of?.layer === layer) self.lay(leaf, { ...leaf.fill, seed });
    }
  },
  property(self, { layer, name, value }) {
    self.properties.set(layer, { ...self.properties.get(layer), [name]: value });
  },
  follow(self, { layer, other }) {
    const sources = self.weightsOf(other);
    self.weightsOf(layer).forEach((id, i) => {
      self.value(id).data.set(self.value(sources[i]!).data);
    });
  },
  when(self, { flag, body }) {
    if (self.plain[flag]) self.runAll(body);
  },
  noGrad(self, { body }) {
    self.recording--;
    self.runAll(body);
    self.recording++;
  },
  tidy: (self, { body }) => self.runAll(body),
  dispose: () => undefined,
  keep: () => undefined,
};

/** True if an interpretation of all its parts is there. */
export function canInterpret(program: Program): boolean {
  const leaves = new Set(program.leaves.map(({ id }) => id));
  const isKnown = (one: Statement): boolean => {
    if (!(one.do in STATEMENTS)) return false;
    if (one.do === "op") return one.op in OPS && (one.op !== "Dropout" || isCertain(one.options!.layer));
    // What else shares its memory is not said.
    return one.do !== "set" || leaves.has(one.to);
  };
  const isCertain = (layer: unknown) => {
    const [p] = program.layers.find(({ id }) => id === layer)!.sizes;
    return p === 0 || p === 1;
  };
  // Without one of its buffers it has another of its own.
  const isWhole = ({ id, options }: Layer) =>
    !options.trackRunningStats ||
    program.leaves.filter(({ of, kind }) => of?.layer === id && kind === "data").length === 3;
  const passes = program.rounds.flatMap(({ args }) => Object.values(args));
  return (
    program.averages.length === 0 &&
    program.optimizers.every(canStep) &&
    program.layers.every(isWhole) &&
    passes.every((given) => typeof given !== "object" || "fill" in given) &&
    statementsOf(program).every(isKnown)
  );
}

/** What an op does. */
export const interpretation = (op: string): Interpretation => OPS[op]!;

/** The shape that an op gives of operands of any numbers that fit; null where it must be rejected. */
export function interpretOp(op: string, operands: readonly Spec[], options: Options): Shape | null {
  try {
    return OPS[op]!(
      operands.map(({ shape }) => filled(shape, 0)),
      options,
    ).shape;
  } catch (error) {
    if (error instanceof Rejected) return null;
    throw error;
  }
}

/** @param jitter moves the numbers of leaves by a unit in the last place of `dtype`: what that changes, rounding may change */
export function interpret(program: Program, jitter?: { readonly seed: number; readonly epsilon: number }): Interpreted {
  return new Interpreter(program, jitter).run();
}

class Interpreter {
  readonly gradients = new Map<Node, Node>();
  readonly steppers: ReadonlyMap<Id, Stepper>;
  plain: Readonly<Record<Id, number | boolean>> = {};
  recording = 1;
  /** Layers in evaluation, what their results are multiplied by, and what runs after the gradients of leaves. */
  readonly evaluating = new Set<Id>();
  readonly factors = new Map<Id, readonly number[]>();
  readonly gradientHooks = new Map<Node, (readonly Statement[])[]>();
  /** Outputs whose graph a backward has freed. */
  readonly spent = new Set<Node>();
  /** Properties of layers that were set later. */
  readonly properties = new Map<Id, object>();
  #values = new Map<Id, Node>();
  readonly #leaves: ReadonlyMap<Id, Leaf>;
  #at: Statement | null = null;
  #largest = 0;

  constructor(
    readonly program: Program,
    readonly jitter?: { readonly seed: number; readonly epsilon: number },
  ) {
    this.#leaves = new Map(program.leaves.map((leaf) => [leaf.id, leaf]));
    this.steppers = new Map(program.optimizers.map((use) => [use.id, new Stepper(use)]));
  }

  run(): Interpreted {
    const { leaves, prelude, rounds } = this.program;
    const seen: Map<string, Float64Array>[] = [];
    try {
      for (const leaf of leaves) this.lay(leaf, leaf.fill);
      this.runAll(prelude);
      for (const round of rounds) seen.push(this.#round(round));
    } catch (error) {
      if (!(error instanceof Rejected)) throw error;
      return { rounds: seen, rejected: { why: error.message, at: this.#at! }, largest: this.#largest };
    }
    return { rounds: seen, rejected: null, largest: this.#largest };
  }

  #round({ before, body, args }: Program["rounds"][number]): Map<string, Float64Array> {
    this.runAll(before);
    const { args: names, statements, results } = this.program.bodies[body]!;
    const outer = new Map(this.#values);
    for (const id of names) {
      const given = args[id];
      if (typeof given === "object") this.#values.set(id, this.#passed(id, given));
    }
    const plain = Object.entries(args).filter(([, given]) => typeof given !== "object");
    this.plain = Object.fromEntries(plain) as Record<Id, number | boolean>;
    this.runAll(statements);
    this.plain = {};
    const seen = new Map<string, Float64Array>();
    for (const id of results) seen.set(`result ${id}`, this.value(id).data.slice());
    this.#values = outer;
    for (const [id, node] of outer) {
      seen.set(id, node.data.slice());
      const gradient = this.gradients.get(node);
      if (gradient !== undefined) seen.set(`${id}.grad`, gradient.data.slice());
    }
    return seen;
  }

  #passed(id: Id, given: Exclude<Argument, number | boolean>): Node {
    const { shape, dtype } = this.leaf(id);
    const { fill, rows = shape[0] } = given as { fill: Fill; rows?: number };
    const own = rows === undefined ? shape : shape.with(0, rows);
    return new Node(own, this.numbers(fill, { shape: own, dtype }));
  }

  runAll(statements: readonly Statement[]): void {
    for (const statement of statements) {
      if (innerOf(statement).length === 0) this.#at = statement;
      (STATEMENTS[statement.do] as (self: Interpreter, statement: Statement) => void)(this, statement);
    }
  }

  /** A leaf of some numbers. */
  lay({ id, shape, dtype, kind }: Leaf, fill: Fill): void {
    const node = new Node(shape, this.numbers(fill, { shape, dtype }));
    node.isTrained = kind !== "data";
    this.#values.set(id, node);
  }

  give(id: Id, node: Node): void {
    this.#values.set(id, this.recording > 0 ? node : constant(node));
  }

  value(id: Id): Node {
    return this.#values.get(id)!;
  }

  isLeaf(id: Id): boolean {
    return this.#leaves.has(id);
  }

  leaf(id: Id): Spec {
    return this.#leaves.get(id)!;
  }

  gradientsOf(output: Node, seed: Node, by: readonly Node[]): (Node | null)[] {
    return gradients(output, seed, by, ({ data }) => {
      for (const x of data) if (Math.abs(x) > this.#largest) this.#largest = Math.abs(x);
    });
  }

  trained(): Node[] {
    return [...this.#leaves.keys()].map((id) => this.value(id)).filter(({ isTrained }) => isTrained);
  }

  accumulate(node: Node, gradient: Node): void {
    const before = this.gradients.get(node);
    const data = before === undefined ? gradient.data.slice() : plus(before, gradient).data;
    this.gradients.set(node, constant({ shape: node.shape, data }));
  }

  /** The leaves that are a layer's weights, in the order of its parameters. */
  weightsOf(layer: Id): Id[] {
    return this.program.leaves
      .filter(({ of, kind }) => of?.layer === layer && kind === "parameter")
      .map(({ id }) => id);
  }

  /** What an op knows of its layer: its options, its buffers by name, and whether it trains. */
  layerFacts(layer: Id | undefined): object {
    const found = this.program.layers.find(({ id }) => id === layer);
    if (found === undefined) return {};
    const own = this.program.leaves.filter(({ of, kind }) => of?.layer === layer && kind === "data");
    const buffers = Object.fromEntries(own.map(({ id, of }) => [of!.name, this.value(id)]));
    const [p] = found.sizes;
    return { ...found.options, p, buffers, training: !this.evaluating.has(found.id), ...this.properties.get(found.id) };
  }

  numbers(fill: Fill, { shape, dtype }: { readonly shape: Shape; readonly dtype: Spec["dtype"] }): Float64Array {
    const numbers = numbersOf(fill, shape);
    if (dtype === "bool") return numbers.map((x) => Number(x !== 0));
    if (this.jitter === undefined || !isFloat(dtype)) return numbers;
    const random = new Random(this.jitter.seed + numbers.length);
    // Equal numbers move together: ties stay ties.
    const moved = new Map<number, number>();
    const unit = Math.max(EPSILON[dtype], this.jitter.epsilon);
    return numbers.map((x) => {
      if (!moved.has(x)) moved.set(x, x * (1 + (random.below(3) - 1) * unit));
      return moved.get(x)!;
    });
  }
}
