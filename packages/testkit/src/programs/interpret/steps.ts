/** Steps of SGD and Adam in float64, from their papers. */
import type { OptimizerUse, Options } from "../program";
import type { Node } from "./node";

interface State {
  steps: number;
  first: Float64Array | null;
  second: Float64Array | null;
}

/** Options that these formulas know. */
const KNOWN: Readonly<Record<string, readonly string[]>> = {
  SGD: ["lr", "momentum", "dampening", "nesterov", "weightDecay", "maximize"],
  Adam: ["lr", "betas", "eps", "weightDecay", "maximize"],
};

/** True if the steps of an optimizer can be interpreted. */
export function canStep({ kind, options, groups, schedule }: OptimizerUse): boolean {
  const given = Object.keys(Object.assign({}, options, ...groups.map((group) => group.options)));
  return KNOWN[kind] !== undefined && given.every((key) => KNOWN[kind]!.includes(key)) && !schedule;
}

export class Stepper {
  readonly #states = new Map<Node, State>();

  constructor(readonly use: OptimizerUse) {}

  /** Steps each parameter that has a gradient. */
  step(value: (id: string) => Node, gradientOf: (node: Node) => Node | undefined): void {
    for (const { params, options } of this.use.groups) {
      for (const id of params) {
        const node = value(id);
        const gradient = gradientOf(node);
        if (gradient === undefined) continue;
        const state = this.#states.get(node) ?? { steps: 0, first: null, second: null };
        this.#states.set(node, state);
        RULES[this.use.kind]!(node.data, gradient.data, { ...this.use.options, ...options }, state);
      }
    }
  }
}

type Rule = (w: Float64Array, gradient: Float64Array, options: Options, state: State) => void;

const RULES: Readonly<Record<string, Rule>> = {
  SGD(w, gradient, options, state) {
    const { lr = 1e-3, momentum = 0, dampening = 0, weightDecay = 0 } = options as Record<string, number>;
    const sign = options.maximize ? -1 : 1;
    const g = gradient.map((v, i) => sign * v + weightDecay * w[i]!);
    const before = state.first;
    state.first = momentum === 0 ? g : g.map((v, i) => (before ? momentum * before[i]! + (1 - dampening) * v : v));
    const { first } = state;
    for (let i = 0; i < w.length; i++) {
      w[i]! -= lr * (options.nesterov ? g[i]! + momentum * first[i]! : first[i]!);
    }
  },
  Adam(w, gradient, options, state) {
    const { lr = 1e-3, eps = 1e-8, weightDecay = 0 } = options as Record<string, number>;
    const [beta1, beta2] = (options.betas ?? [0.9, 0.999]) as [number, number];
    const sign = options.maximize ? -1 : 1;
    state.steps++;
    state.first ??= new Float64Array(w.length);
    state.second ??= new Float64Array(w.length);
    for (let i = 0; i < w.length; i++) {
      const g = sign * gradient[i]! + weightDecay * w[i]!;
      state.first[i] = beta1 * state.first[i]! + (1 - beta1) * g;
      state.second[i] = beta2 * state.second[i]! + (1 - beta2) * g * g;
      const m = state.first[i]! / (1 - beta1 ** state.steps);
      w[i]! -= (lr * m) / (Math.sqrt(state.second[i]! / (1 - beta2 ** state.steps)) + eps);
    }
  },
};
