/** Gradient transformations: an optimizer's step as a pure function of trees, computed where jax-js has them. */
import { jit, numpy as np, tree } from "@jax-js/jax";
import {
  algorithmOf,
  type BaseOptions,
  type Counters,
  check,
  type GroupOptions,
  type OptimizerClass,
  type OptimizerState,
  show,
} from "@opt/core";
import { ruleSteps } from "@opt/core/backend";
import { factorOf, Launches } from "./launches";
import { checkAlike, checkOwned, filledLike, type Leaf, leavesOf, type Tree } from "./leaves";
import type { Result } from "./rule-function";
import { savedState, stateDict } from "./state-dict";

/** The state of an optimizer: how often it stepped (and for NAdam `mu_product`), and a tree like the parameters for each of PyTorch's keys: `exp_avg`, ... */
export type State<Params = Tree> = { step: number; [key: string]: number | Params };

/** A step as a function, as in optax. A call consumes its arrays, unless it throws. */
export interface GradientTransformation<Options extends BaseOptions = BaseOptions> {
  /** The state before the first step: zeros. @throws OptError BAD_ARGUMENT, BAD_DTYPE, DISPOSED, DUPLICATE, UNSUPPORTED */
  init<Params extends Tree>(params: Params): State<Params>;
  /**
   * The updates to add to the parameters, and the next state.
   *
   * @param params what the gradients are of; every rule reads them
   * @param overrides options of this step (a schedule's learning rate)
   * @throws OptError BAD_ARGUMENT, BAD_STATE, BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH, DISPOSED; UNSUPPORTED inside of jit, grad and vmap.
   * Nothing was consumed then.
   */
  update<Params extends Tree>(
    grads: Params,
    state: State<Params>,
    params: Params,
    overrides?: Partial<Options> & GroupOptions,
  ): [updates: Params, state: State<Params>];
  /**
   * The new parameters and the next state: as `applyUpdates` makes them of `update`, without the pass over memory that the sum is, and
   * without its rounding. Arguments and errors are those of `update`.
   */
  step<Params extends Tree>(
    grads: Params,
    state: State<Params>,
    params: Params,
    overrides?: Partial<Options> & GroupOptions,
  ): [params: Params, state: State<Params>];
  /** The state as `stateDict()` of the optimizer's class gives it, under the paths of the parameters: for checkpoints, and for PyTorch. */
  stateDict<Params extends Tree>(state: State<Params>, params: Params): Promise<OptimizerState>;
  /**
   * The state that was saved, of these parameters: by `stateDict`, by the optimizer's class or in PyTorch. Options stay as they are.
   *
   * @throws OptError BAD_STATE if it does not fit. Nothing was consumed then.
   */
  loadStateDict<Params extends Tree>(saved: OptimizerState, params: Params): Promise<State<Params>>;
}

/**
 * An optimizer for jax-js, used as those of optax. The rule is computed in jax-js' own arrays, in kernels that it compiles, on whatever
 * device they lie: nothing is transferred but the step's few scalars.
 *
 *     updates, state = update(grads, state, params)          params = applyUpdates(params, updates)
 *
 * @param optimizer its class: NAdam, AdamW, ...
 * @throws OptError BAD_ARGUMENT as the class does; UNSUPPORTED for Muon, Lamb, Adafactor, `stateDType` and `lazyMode`
 * @example
 * import { numpy, tree } from "@jax-js/jax";
 * const tx = gradientTransformation(NAdam, { lr: 0.1 });
 * let params = { w: numpy.array([1, 2]) };
 * let state = tx.init(tree.ref(params));
 * const grads = { w: numpy.array([0.5, -0.5]) };
 * let updates;
 * [updates, state] = tx.update(grads, state, tree.ref(params));
 * params = applyUpdates(params, updates);
 */
export function gradientTransformation<Options extends BaseOptions>(
  optimizer: OptimizerClass<Options>,
  options: Partial<Options> & GroupOptions = {},
): GradientTransformation<Options> {
  algorithmOf("gradientTransformation", optimizer);
  const steps = ruleSteps(optimizer, options);
  const { name: where, keys } = steps;
  const counterNames = Object.keys(steps.initial);
  const stateOf = (counters: Counters, trees: readonly Tree[]) =>
    ({ ...counters, ...Object.fromEntries(keys.map((key, i) => [key, trees[i]!])) }) as State<never>;
  const partsOf = (state: unknown, leaves: readonly Leaf[]) => {
    const counters = countersOf(where, state, [...counterNames, ...keys], counterNames);
    const states = keys.map((key) => {
      const parts = leavesOf(where, `state.${key}`, (state as State)[key]);
      checkAlike(where, `state.${key}`, "BAD_STATE", parts, leaves);
      return parts;
    });
    return { counters, states };
  };
  const run = <Params extends Tree>(
    result: Result,
    grads: Params,
    state: State<Params>,
    params: Params,
    overrides?: Partial<Options> & GroupOptions,
  ): [Params, State<Params>] => {
    const leaves = leavesOf(where, "params", params);
    const gradients = leavesOf(where, "grads", grads);
    checkAlike(where, "grads", "BAD_ARGUMENT", gradients, leaves);
    const { counters, states } = partsOf(state, leaves);
    checkOwned(where, [...leaves, ...gradients, ...states.flat()]);
    const planned = leaves.map(({ name }) => steps.next(counters, name, overrides));
    const other = planned.find((step) => String(step.keys) !== String(keys));
    check(
      other === undefined,
      "BAD_ARGUMENT",
      where,
      () => `an option of one step must not ask for other state, got ${show(other!.keys)}.`,
      "Set it when the transformation is made.",
    );
    const launches = new Launches(result, factorOf(where, planned[0]?.factor, gradients));
    const results = planned.map(({ rule, scalars }, i) => {
      const buffers = [leaves[i]!, gradients[i]!, ...states.map((parts) => parts[i]!)].map(({ array }) => array);
      return launches.apply(rule, scalars, buffers);
    });
    launches.dispose();
    const treeOf = (arrays: readonly np.Array[]) => likeTree(params, arrays);
    const trees = keys.map((_, k) => treeOf(results.map((each) => each.state[k]!)));
    const next = stateOf(planned[0]?.counters ?? steps.next(counters, "", overrides).counters, trees);
    return [treeOf(results.map((each) => each.result)), next];
  };
  return {
    init(params) {
      const leaves = leavesOf(where, "params", params);
      checkOwned(where, leaves);
      const filled = (value: number | "param") => leaves.map((leaf) => filledLike(leaf, value));
      const trees = steps.first.map((value) => likeTree(params, filled(value)));
      tree.dispose(params);
      return stateOf(steps.initial, trees);
    },

    update: (grads, state, params, overrides) => run("update", grads, state, params, overrides),

    step: (grads, state, params, overrides) => run("param", grads, state, params, overrides),

    async stateDict(state, params) {
      const leaves = leavesOf(where, "params", params);
      const { counters, states } = partsOf(state, leaves);
      checkOwned(where, [...leaves, ...states.flat()]);
      tree.dispose(params);
      return stateDict(steps.options, counters, leaves, keys, states);
    },

    async loadStateDict(saved, params) {
      const leaves = leavesOf(where, "params", params);
      checkOwned(where, leaves);
      const { counters, trees } = await savedState(where, saved, steps, leaves);
      tree.dispose(params);
      return stateOf(
        counters,
        trees.map((arrays) => likeTree(params, arrays)),
      );
    },
  };
}

/** params + updates, leaf by leaf. Both are consumed. @throws OptError BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH, DISPOSED */
export function applyUpdates<Params extends Tree>(params: Params, updates: Params): Params {
  const where = "applyUpdates";
  const [leaves, parts] = [leavesOf(where, "params", params), leavesOf(where, "updates", updates)];
  checkAlike(where, "updates", "BAD_ARGUMENT", parts, leaves);
  checkOwned(where, [...leaves, ...parts]);
  const sums = leaves.map(({ array }, i) => sum(array, parts[i]!.array));
  return likeTree(params, sums);
}

/** Compiled once for each shape, where an op by itself is put together at each call. */
const sum = /* @__PURE__ */ jit((a: np.Array, b: np.Array): np.Array => np.add(a, b));

function likeTree<Params extends Tree>(params: Params, arrays: readonly np.Array[]): Params {
  return tree.unflatten(tree.structure(params), arrays) as unknown as Params;
}

/** @throws OptError BAD_STATE */
function countersOf(where: string, state: unknown, known: readonly string[], counters: readonly string[]): Counters {
  const advice = "Pass what init or update returned for the same options.";
  const isState = typeof state === "object" && state !== null && !Array.isArray(state);
  check(isState, "BAD_STATE", where, () => `state must be an object, got ${show(state)}.`, advice);
  const names = Object.keys(state);
  const fits = names.length === known.length && known.every((name) => names.includes(name));
  check(fits, "BAD_STATE", where, () => `state must have ${known.join(", ")}, got ${names.join(", ")}.`, advice);
  const record = state as Readonly<Record<string, unknown>>;
  for (const name of counters) {
    const value = record[name];
    const isCount = name === "step" ? Number.isSafeInteger(value) && (value as number) >= 0 : Number.isFinite(value);
    const kind = name === "step" ? "a whole number" : "a finite number";
    check(isCount, "BAD_STATE", where, () => `state.${name} must be ${kind}, got ${show(value)}.`, advice);
  }
  return Object.fromEntries(counters.map((name) => [name, record[name]])) as unknown as Counters;
}
