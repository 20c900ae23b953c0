/** The optimizers and surfaces of the race, as the page and its worker name them. */

export const SURFACES = {
  rosenbrock: {
    title: "Rosenbrock's valley",
    formula: "(1 - x)² + 100 (y - x²)²",
    about: "The curved valley is easy to find. Its floor is almost flat, so the way to the ring is long.",
    x: [-1.8, 1.8],
    y: [-0.6, 2],
    start: [-1.2, 1],
    goals: [[1, 1]],
  },
  saddle: {
    title: "Saddle",
    formula: "x²/2 - y²/2 + y⁴/4",
    about: "All start beside the ridge, where the slope is almost zero. Plain SGD waits there for a long time.",
    x: [-2, 2],
    y: [-1.5, 1.5],
    start: [-1.5, 0.001],
    goals: [
      [0, 1],
      [0, -1],
    ],
  },
  reddi: {
    title: "Reddi's counterexample",
    formula: "3x at every third step, else -x; x in [-1, 1]",
    about:
      "The mean slope is x/3, so the lowest point is on the left. Time runs down. With betas of 0 and 0.1, Adam walks to the right; AMSGrad does not.",
    x: [-1.1, 1.1],
    y: [-0.05, 1.05],
    start: [0, 1],
    goals: [[-1, 0]],
  },
} as const;

export type SurfaceName = keyof typeof SURFACES;

/** The learning rate that each begins with. Those of plain gradients depend on the surface. */
const PLAIN = { rosenbrock: 1e-3, saddle: 0.05, reddi: 0.01 };
const SLOW = { rosenbrock: 5e-4, saddle: 0.02, reddi: 0.005 };
const SEARCHING = { rosenbrock: 1, saddle: 1, reddi: 0.01 };
export const RATES = {
  "SGD, momentum": SLOW,
  Adam: 0.02,
  AMSGrad: 0.02,
  NAdam: 0.02,
  LBFGS: SEARCHING,
  RMSprop: 0.005,
  SGD: PLAIN,
  AdamW: 0.02,
  RAdam: { rosenbrock: 0.001, saddle: 0.02, reddi: 0.02 },
  Adamax: 0.05,
  AdEMAMix: 0.005,
  Adagrad: 0.3,
  Adadelta: 1,
  Adafactor: 0.02,
  ASGD: PLAIN,
  Lamb: 0.02,
  Lion: 0.005,
  Muon: 0.01,
  Rprop: 0.01,
  "Schedule-free AdamW": 0.05,
  "AdamW, cautious": 0.05,
  ADOPT: { rosenbrock: 1, saddle: 0.05, reddi: 0.02 },
  Adan: 0.02,
  Yogi: 0.05,
  LARS: { rosenbrock: 3, saddle: 1, reddi: 0.05 },
  Prodigy: 1,
  SOAP: 0.05,
  Shampoo: 0.05,
  Kron: 0.01,
} as const;

export type Racer = keyof typeof RATES;
export const RACERS = Object.keys(RATES) as Racer[];
/** Those that race at first; neighbours in the list have unlike colours. */
export const FIRST: readonly Racer[] = RACERS.slice(0, 6);

export function rateOf(racer: Racer, surface: SurfaceName): number {
  const rate = RATES[racer];
  return typeof rate === "number" ? rate : rate[surface];
}

/** A race ends after so many steps. */
export const STEPS = 1500;
export const MAP = 96;

/** The page's wishes. A new `race` starts all of them again. */
export interface Wishes {
  readonly race: number;
  readonly surface: SurfaceName;
  readonly running: boolean;
  /** The learning rate of each that races. */
  readonly rates: Readonly<Partial<Record<Racer, number>>>;
}

export type RaceMessage =
  /** Losses on a grid, row 0 at the top. */
  | { readonly kind: "map"; readonly race: number; readonly values: Float32Array }
  | { readonly kind: "moves"; readonly race: number; readonly moves: readonly Moves[]; readonly done: boolean };

export interface Moves {
  readonly racer: Racer;
  /** x, y of the new steps. */
  readonly points: readonly number[];
  readonly loss: number;
  readonly steps: number;
}
