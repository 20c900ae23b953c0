/** What an update computes: the rule of each leaf, and before them the norm of all gradients where it is limited. */
import { jit, numpy as np } from "@jax-js/jax";
import { check, type Rule } from "@opt/core";
import type { RuleStep } from "@opt/core/backend";
import type { Leaf } from "./leaves";
import { type Form, type Result, RuleFunction } from "./rule-function";
import { Uniforms } from "./uniforms";

const functions = new WeakMap<Rule, Map<string, RuleFunction>>();

function functionOf(rule: Rule, form: Form): RuleFunction {
  const known = functions.get(rule) ?? new Map<string, RuleFunction>();
  functions.set(rule, known);
  const key = `${form.result} ${form.inversesApart}`;
  const made = known.get(key) ?? new RuleFunction(rule, form);
  known.set(key, made);
  return made;
}

/** From so many elements on two kernels more cost less than divisions that keep all others waiting. */
const LONG = 2 ** 14;

/** By which all gradients are scaled. */
export interface Factor {
  readonly slot: number;
  readonly array: np.Array;
}

const normFactor = /* @__PURE__ */ jit((grads: np.Array[], limit: np.Array): np.Array => {
  const squares = grads.map((grad) => np.sum(np.square(grad)));
  const norm = np.sqrt(squares.reduce((sum, square) => np.add(sum, square)));
  return np.minimum(np.divide(limit, np.add(norm, 1e-6)), 1);
});

/** The factor of a limit of the norm. @throws OptError DEVICE_MISMATCH, BAD_DTYPE */
export function factorOf(where: string, clip: RuleStep["factor"], gradients: readonly Leaf[]): Factor | undefined {
  if (clip === undefined) return undefined;
  const [{ dtype, device }] = gradients.map(({ array }) => array) as [np.Array];
  const areHere = gradients.every(({ array }) => array.device === device);
  check(
    areHere,
    "DEVICE_MISMATCH",
    where,
    () => "the norm of all gradients asks for one device, got several.",
    "Move the tree with devicePut.",
  );
  const areAlike = gradients.every(({ array }) => array.dtype === dtype);
  check(
    areAlike,
    "BAD_DTYPE",
    where,
    () => "the norm of all gradients asks for one dtype, got several.",
    "Cast them with astype.",
  );
  const limit = np.array(clip.limit, { dtype });
  return {
    slot: clip.slot,
    array: normFactor(
      gradients.map(({ array }) => array.ref),
      limit,
    ),
  };
}

/** The launches of a step. Leaves with the same scalars share their arrays. */
export class Launches {
  constructor(
    private readonly result: Result,
    private readonly factor: Factor | undefined,
  ) {}

  readonly #known: {
    rule: Rule;
    scalars: readonly number[];
    dtype: string;
    device: string;
    uniforms: Uniforms;
  }[] = [];

  apply(rule: Rule, scalars: readonly number[], buffers: np.Array[]): { result: np.Array; state: np.Array[] } {
    const { dtype, device, size } = buffers[0]!;
    const isSame = (values: readonly number[]) => values.every((value, i) => Object.is(value, scalars[i]));
    let found = this.#known.find(
      (each) => each.rule === rule && each.dtype === dtype && each.device === device && isSame(each.scalars),
    );
    if (found === undefined) {
      const given = this.factor && { ...this.factor, array: this.factor.array.ref };
      const uniforms = new Uniforms(rule, scalars, dtype === "float64" ? "f64" : "f32", given);
      found = { rule, scalars, dtype, device, uniforms };
      this.#known.push(found);
    }
    const inversesApart = device === "wasm" && dtype === "float32" && size >= LONG;
    return functionOf(rule, { result: this.result, inversesApart }).apply(buffers, found.uniforms);
  }

  dispose(): void {
    for (const { uniforms } of this.#known) uniforms.dispose();
    this.factor?.array.dispose();
  }
}
