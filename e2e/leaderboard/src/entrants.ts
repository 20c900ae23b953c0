/** Who enters: every optimizer of `@opt/optim` with its default options, and some with an option or in a wrapper. */
import {
  BaseOptimizer,
  type CombineRouting,
  combine,
  Lookahead,
  OptError,
  Optimizer,
  type OptimizerClass,
  parameter,
  SAM,
  scheduleFree,
  type Tensor,
  tensor,
} from "@opt/core";
import * as optim from "@opt/optim";

/** An optimizer of a run. */
export interface Stepper {
  step(closure?: () => Tensor): unknown;
  zeroGrad(): void;
  /** Averages of weights, where it has them. */
  eval?(): void;
  train?(): void;
  /** Sophia's. */
  updateHessian?(): void;
  stateDict(): { readonly state: Readonly<Record<string, Readonly<Record<string, unknown>>>> };
  dispose(): void;
}

type Named = readonly (readonly [name: string, parameter: Tensor])[];
type Wrap = (optimizer: Optimizer<never>) => Stepper;
// biome-ignore lint/suspicious/noExplicitAny: each class has options of its own
type AnyClass = OptimizerClass<any>;

export interface Entrant {
  readonly name: string;
  readonly Class: AnyClass;
  /** Beside the learning rate. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly wrap?: Wrap;
}

/** How a task's parameters are divided where a class takes only some of them. */
export interface Division {
  readonly named: Named;
  /** Matrices inside of the model. Default: that of `combine`. */
  readonly isMatrix: CombineRouting["isMatrix"] | undefined;
  /** Tables whose gradients may be row-sparse. */
  readonly isTable: ((name: string) => boolean) | undefined;
  /** The learning rate of AdamW, which steps the rest. */
  readonly restLr: number;
}

/** Classes with a `step`, in the order of their names. */
const classes = Object.entries(optim as unknown as Record<string, { readonly prototype?: object } | undefined>)
  .filter(([, value]) => value?.prototype !== undefined && "step" in value.prototype)
  .sort(([a], [b]) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1)) as unknown as readonly [string, AnyClass][];

/** Options and wrappers that are worth a row. */
const FURTHER: readonly Entrant[] = [
  { name: "SGD, momentum", Class: optim.SGD, options: { momentum: 0.9 } },
  { name: "AdamW, cautious", Class: optim.AdamW, options: { cautious: true } },
  { name: "AdamW, MARS", Class: optim.AdamW, options: { mars: { gamma: 0.025 } } },
  { name: "AdamW, schedule-free", Class: optim.AdamW, options: {}, wrap: (inner) => scheduleFree(inner) },
  { name: "AdamW, Lookahead", Class: optim.AdamW, options: {}, wrap: (inner) => new Lookahead(inner) },
  { name: "AdamW, SAM", Class: optim.AdamW, options: {}, wrap: (inner) => new SAM(inner) },
];

export const entrants: readonly Entrant[] = [
  ...classes.map(([name, Class]): Entrant => ({ name, Class, options: {} })),
  ...FURTHER,
];

/** Which parameters a class takes: found by asking it, so that no class is named. */
export type Takes = "all" | "matrices" | "tables";

export function takenBy({ Class }: Entrant): Takes {
  if (!(Class.prototype instanceof Optimizer)) return "all";
  const [matrix, vector] = [parameter([[1]]), parameter([1])];
  try {
    if (isRejected("BAD_SHAPE", () => new Class([vector]))) return "matrices";
    const optimizer = new Class([matrix]);
    matrix.grad = tensor([[1]]);
    return isRejected("UNSUPPORTED", () => optimizer.step()) ? "tables" : "all";
  } finally {
    for (const each of [matrix.grad, matrix, vector]) each?.dispose();
  }
}

function isRejected(code: string, body: () => unknown): boolean {
  try {
    body();
    return false;
  } catch (error) {
    if (error instanceof OptError && error.code === code) return true;
    throw error;
  }
}

/** @throws OptError UNSUPPORTED where the task has nothing that the class takes */
export function made({ name, Class, options, wrap }: Entrant, takes: Takes, lr: number, division: Division): Stepper {
  const { named, isMatrix, isTable, restLr } = division;
  const own = { lr, ...options };
  if (takes === "all") {
    const optimizer = new Class(named as never, own as never) as unknown as Optimizer<never>;
    return wrap?.(optimizer) ?? optimizer;
  }
  if (takes === "tables" && isTable === undefined)
    throw new OptError("UNSUPPORTED", name, "it needs row-sparse gradients, got a task without them.", "Take another.");
  const routing = takes === "tables" ? { isMatrix: isTable! } : isMatrix && { isMatrix };
  return combine(named, { matrices: Class, rest: optim.AdamW }, { matrices: own, rest: { lr: restLr } }, routing);
}

/** LBFGS and SAM compute gradients inside of their steps. */
export const computesGradients = (optimizer: Stepper): boolean =>
  !(optimizer instanceof BaseOptimizer) || optimizer instanceof SAM;
