/** LBFGS: the iterations of a step, and the class. */
import {
  applyRuleInPlace,
  type BaseOptions,
  check,
  type Group,
  keep,
  type MeshAxis,
  noGrad,
  OptError,
  type OptimizerInput,
  type OptimizerState,
  runsOnce,
  show,
  Tensor,
  tidy,
} from "@opt/core";
import { moveRule } from "./direction";
import { History, type LBFGSMemory } from "./history";
import { type SearchLimits, strongWolfe, type Trial } from "./line-search";
import { type LBFGSOptions, lbfgs, Parameters, WHERE } from "./options";
import { Vectors } from "./vectors";

export { lbfgsRules } from "./direction";
export type { LBFGSMemory } from "./history";
export type { LBFGSOptions } from "./options";

/** The options of the group, and the state under the name of its first parameter. */
export interface LBFGSState {
  groups: OptimizerState["groups"];
  state: Record<string, LBFGSMemory>;
}

interface GradientTrial extends Trial {
  readonly gradient: Tensor;
}

/** Computes the loss and its gradients. */
export type Closure<Loss extends Tensor | number> = () => Loss | Promise<Loss>;

/**
 * L-BFGS: a quasi-Newton method for smooth objectives whose loss is of all data. Each step calls a closure several times.
 *
 *     s = p - p_old    y = grad - grad_old          d = -H grad, H from the last s and y by two loops          p += t d
 *
 * All parameters are one vector: f32 or f64, on one device. Vectors stay there; each iteration reads a few numbers twice, and once for
 * each trial of the line search. Names, defaults, checks and the order of operations are those of torch.optim.LBFGS (PyTorch 2.13).
 * In float64 parameters agree to 1e-8 after 8 steps on Rosenbrock's function. Options that change steps of single elements
 * (`clip`, `regularizer`, `stateDType`, `lazyMode`, `stochasticRounding`, modifications), `compile`, `functional` and `GradScaler` do not apply and throw.
 *
 * Where ranks have parts of parameters (`placement`), and in `ShardedOptimizer`, each rank keeps an equal part of every vector. All ranks
 * call `step`, with the words of one process. The loss is the mean of the ranks', also in `DataParallel`. A product of vectors sends a number for each 256
 * elements; each trial gathers the direction, a whole vector.
 * Source: Nocedal & Wright, "Numerical Optimization" (2006), chapters 3 and 7.
 *
 * @throws OptError BAD_ARGUMENT for an option out of range or several groups; BAD_DTYPE, DEVICE_MISMATCH; UNSUPPORTED; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { LBFGS } from "@opt/lbfgs";
 * const w = parameter([1, -2, 3]);
 * const optimizer = new LBFGS([w], { lineSearch: "strongWolfe" });
 * const loss = await optimizer.step(() => {
 *   optimizer.zeroGrad();
 *   const loss = w.sub(1).pow(4).sum();
 *   loss.backward();
 *   return loss;
 * });
 */
export class LBFGS {
  /** @internal A step calls its closure. */
  readonly needsClosure = true;
  readonly #parameters: Parameters;
  #vectors: Vectors;
  #history: History;
  #isStepping = false;

  constructor(params: OptimizerInput<LBFGSOptions & BaseOptions>, options: Partial<LBFGSOptions> = {}) {
    const { maxIter = lbfgs.defaults.maxIter, maxEval = Math.floor(maxIter * 1.25) } = Object(options);
    this.#parameters = new Parameters(params, { ...options, maxEval });
    const { length } = this.groups;
    check(
      length === 1,
      "BAD_ARGUMENT",
      WHERE,
      () => `takes one group of parameters, got ${length}.`,
      "Pass model.parameters().",
    );
    const [first, ...others] = this.#params as [Tensor, ...Tensor[]];
    for (const { dtype, device } of others) {
      check(
        dtype === first.dtype,
        "BAD_DTYPE",
        WHERE,
        () => `parameters must have one dtype, got ${first.dtype} and ${dtype}.`,
        "They are one vector: cast the model.",
      );
      check(
        device === first.device,
        "DEVICE_MISMATCH",
        WHERE,
        () => `parameters must be on one device, got ${first.device.name} and ${device.name}.`,
        "They are one vector: move the model.",
      );
    }
    this.#vectors = new Vectors(this.#params, []);
    this.#history = new History(this.#vectors);
  }

  /** The one group. Its options may be changed between steps. */
  get groups(): readonly Group<LBFGSOptions>[] {
    return this.#parameters.groups;
  }

  get #params(): readonly Tensor[] {
    return this.groups[0]!.params;
  }

  /** Clears all gradients, as `Optimizer` does. */
  zeroGrad(options: { setToNull?: boolean } = {}): void {
    this.#parameters.zeroGrad(options);
  }

  /** @internal Each rank of an axis keeps a part of the vectors, also of those of whole parameters. Before the first step. */
  divideOver(axis: MeshAxis<Tensor>): void {
    this.#vectors = new Vectors(this.#params, [axis]);
    this.#history = new History(this.#vectors);
  }

  /** @internal What ranks compare. */
  get hashes(): readonly string[] {
    return this.#parameters.hashes;
  }

  /** @internal Asked of the class by whoever steps without an instance. @throws OptError UNSUPPORTED */
  define(): never {
    const problem = "a step is no rule of single elements: functional and ruleSteps do not apply.";
    throw new OptError("UNSUPPORTED", WHERE, problem, "Await step(closure) of an instance.");
  }

  /**
   * Up to `maxIter` iterations. `closure` clears the gradients, computes the loss and its gradients, and returns the loss: a tensor of
   * one element, a number, or a promise of one. What else it makes is freed if it runs in a `tidy` of its own.
   *
   * @returns what the first call of `closure` returned
   * @throws OptError BAD_ARGUMENT for what is no closure, and for a loss that is no number; BAD_STATE if the last step was not awaited;
   * UNSUPPORTED in a compiled function. If `closure` throws, parameters are where the last line search began.
   */
  step<Loss extends Tensor | number>(closure: Closure<Loss>): Promise<Loss> {
    runsOnce(WHERE, "wait for losses", "Compile what the closure calls, and step outside.");
    check(
      typeof closure === "function",
      "BAD_ARGUMENT",
      WHERE,
      () => `step() takes a closure, got ${show(closure)}.`,
      "It computes the loss and its gradients.",
    );
    check(!this.#isStepping, "BAD_STATE", WHERE, () => "the last step has not ended.", "Await step(closure).");
    lbfgs.validate({ ...this.groups[0]!, maximize: false });
    this.#isStepping = true;
    return this.#step(closure).finally(() => {
      this.#isStepping = false;
    });
  }

  async #step<Loss extends Tensor | number>(closure: Closure<Loss>): Promise<Loss> {
    const { lr, maxIter, maxEval, toleranceGrad, toleranceChange, historySize, lineSearch } = this.groups[0]!;
    const history = this.#history;
    for (const param of this.#params) param.checkSteps?.(this.groups, true);
    const { result, loss, gradient } = await this.#evaluate(closure);
    let evaluations = 1;
    let place = await history.arrive(gradient, loss);
    for (let n = 1; n <= maxIter && !(place.largest <= toleranceGrad); n++) {
      history.nIter++;
      const isFirst = history.direction === null;
      const { slope, reach } = await history.turn(place, historySize);
      const before = place.loss;
      history.t = isFirst ? Math.min(1, 1 / place.sum) * lr : lr;
      if (slope > -toleranceChange) break;
      if (lineSearch !== null) {
        const start = { t: 0, loss: before, slope, gradient: place.gradient };
        const limits = { size: reach, toleranceChange, maxIterations: maxEval - evaluations };
        const { found, evaluations: more } = await this.#search(closure, start, limits);
        history.t = found.t;
        this.#move();
        evaluations += more;
        place = await history.arrive(found.gradient, found.loss);
      } else {
        this.#move();
        if (n === maxIter) break; // nothing follows that asks for the loss
        const next = await this.#evaluate(closure);
        evaluations++;
        place = await history.arrive(next.gradient, next.loss);
      }
      if (evaluations >= maxEval) break;
      if (reach * Math.abs(history.t) <= toleranceChange || Math.abs(place.loss - before) < toleranceChange) break;
    }
    history.leave(place);
    return result;
  }

  /** A line search from the parameters as they are, where it leaves them. */
  async #search(
    closure: Closure<Tensor | number>,
    start: GradientTrial,
    limits: SearchLimits,
  ): Promise<{ found: GradientTrial; evaluations: number }> {
    const history = this.#history;
    const origin = noGrad(() => this.#params.map((param) => param.clone()));
    const restore = () =>
      noGrad(() => {
        for (const [i, param] of this.#params.entries()) param.set(origin[i]!);
      });
    const gradients: Tensor[] = [];
    const evaluate = async (t: number) => {
      restore();
      history.t = t;
      this.#move();
      const { loss, gradient } = await this.#evaluate(closure);
      gradients.push(gradient);
      const [value, slope] = await Promise.all([loss, history.slope(gradient)]);
      return { t, loss: value, slope, gradient };
    };
    try {
      const search = await strongWolfe(start, history.t, evaluate, limits);
      for (const gradient of gradients) if (gradient !== search.found.gradient) gradient.dispose();
      return search;
    } finally {
      restore();
      for (const param of origin) param.dispose();
    }
  }

  /** The loss and the flat gradient of all parameters. */
  async #evaluate<Loss extends Tensor | number>(
    closure: Closure<Loss>,
  ): Promise<{ result: Loss; loss: number | Promise<number>; gradient: Tensor }> {
    const result = await closure();
    this.#history.funcEvals++;
    const isLoss = typeof result === "number" || result instanceof Tensor;
    check(
      isLoss,
      "BAD_ARGUMENT",
      WHERE,
      () => `closure must return the loss, a tensor or a number, got ${show(result)}.`,
      "End it with `return loss`.",
    );
    const number = typeof result === "number" ? result : result.item();
    // Ranks wait for their losses before they exchange more: all in one order.
    const loss = this.#vectors.areShared ? this.#vectors.meanLoss(await number) : number;
    const gradient = noGrad(() => tidy(() => this.#vectors.gradient()));
    return { result, loss, gradient: keep(gradient) };
  }

  /** p += t d */
  #move(): void {
    const { direction, t } = this.#history;
    noGrad(() =>
      tidy(() => {
        const along = this.#vectors.ofParameters(direction!);
        const parts = this.#params.map((param, i) => ({ param, direction: along[i]! }));
        applyRuleInPlace(moveRule, parts, { t });
      }),
    );
  }

  /**
   * The options, and the state under the name of the first parameter, with PyTorch's keys. Tensors are the live ones: save or clone them
   * before the next step. PyTorch's `al` is left out: each direction computes it.
   */
  stateDict(): LBFGSState {
    const { groups } = this.#parameters.stateDict();
    const memory = this.#history.save();
    return { groups, state: memory === null ? {} : { [this.groups[0]!.names[0]!]: memory } };
  }

  /**
   * Takes over options and copies of the state, in the parameters' dtype and on their device. A resumed run has the same numbers.
   *
   * @throws OptError BAD_STATE if it does not fit. Nothing has changed then.
   */
  loadStateDict(saved: {
    readonly groups: LBFGSState["groups"];
    readonly state: Readonly<Record<string, object>>;
  }): void {
    runsOnce(WHERE, "load a state");
    const { groups, state } = Object(saved) as Partial<LBFGSState>;
    const isState = Array.isArray(groups) && Object(state) === state;
    check(
      isState,
      "BAD_STATE",
      WHERE,
      () => `state must be { groups, state }, got ${show(saved)}.`,
      "Pass what stateDict() returned.",
    );
    const memory = state![groups![0]?.params[0] ?? ""];
    const loads = this.#history.checked(WHERE, memory, this.#params[0]!);
    this.#parameters.loadStateDict({ groups: groups!, state: {} });
    loads();
  }

  /** Frees the state. The optimizer can go on, from a fresh one; its parameters are left alone. */
  dispose(): void {
    this.#history.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}
