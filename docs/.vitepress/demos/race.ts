/** The worker of the optimizer race: one parameter of two numbers for each optimizer, a few steps every 33 ms. */
import { init, parameter, type Tensor, tensor, tidy } from "@opt/core";
import * as optim from "@opt/optim";
import {
  MAP,
  type Moves,
  type RaceMessage,
  type Racer,
  STEPS,
  SURFACES,
  type SurfaceName,
  type Wishes,
} from "./racers";

const TICK_MS = 33;
const STEPS_A_TICK = 3;
const FAR = 1e6;

/** Losses of points in rows [n, 2]; `step` counts from 0. */
const losses: Record<SurfaceName, (x: Tensor, y: Tensor, step: number) => Tensor> = {
  rosenbrock: (x, y) => x.sub(1).square().add(y.sub(x.square()).square().mul(100)),
  saddle: (x, y) => x.square().sub(y.square()).div(2).add(y.pow(4).div(4)),
  reddi: (x, _, step) => x.mul(step % 3 === 0 ? 3 : -1),
};
const column = (points: Tensor, axis: number) => points.slice(axis, axis + 1, 1);
const lossOf = (surface: SurfaceName, points: Tensor, step: number) =>
  losses[surface](column(points, 0), column(points, 1), step);

interface Optimizer {
  readonly groups: readonly { lr: number }[];
  step(): unknown;
}
type Make = (params: [string, Tensor][], surface: SurfaceName) => Optimizer | optim.LBFGS;
/** Reddi's example needs averages of two or three steps. */
const betasOf = (surface: SurfaceName) => (surface === "reddi" ? ([0, 0.1] as const) : ([0.9, 0.999] as const));

const makers: Record<Racer, Make> = {
  SGD: (params) => new optim.SGD(params),
  "SGD, momentum": (params) => new optim.SGD(params, { momentum: 0.9 }),
  Adam: (params, surface) => new optim.Adam(params, { betas: betasOf(surface) }),
  AdamW: (params, surface) => new optim.AdamW(params, { betas: betasOf(surface) }),
  AMSGrad: (params, surface) => new optim.Adam(params, { betas: betasOf(surface), amsgrad: true }),
  NAdam: (params, surface) => new optim.NAdam(params, { betas: betasOf(surface) }),
  RAdam: (params, surface) => new optim.RAdam(params, { betas: betasOf(surface) }),
  Adamax: (params) => new optim.Adamax(params),
  AdEMAMix: (params) => new optim.AdEMAMix(params),
  Adagrad: (params) => new optim.Adagrad(params),
  Adadelta: (params) => new optim.Adadelta(params),
  Adafactor: (params) => new optim.Adafactor(params),
  ASGD: (params) => new optim.ASGD(params),
  Lamb: (params) => new optim.Lamb(params),
  LBFGS: (params, surface) =>
    new optim.LBFGS(params, { maxIter: 1, maxEval: 25, lineSearch: surface === "reddi" ? null : "strongWolfe" }),
  Lion: (params) => new optim.Lion(params),
  Muon: (params) => new optim.Muon(params, { weightDecay: 0 }),
  RMSprop: (params) => new optim.RMSprop(params),
  Rprop: (params) => new optim.Rprop(params),
  "Schedule-free AdamW": (params) => new optim.ScheduleFreeAdamW(params),
  "AdamW, cautious": (params, surface) => new optim.AdamW(params, { betas: betasOf(surface), cautious: true }),
  ADOPT: (params, surface) => new optim.ADOPT(params, { betas: betasOf(surface) }),
  Adan: (params) => new optim.Adan(params),
  Yogi: (params, surface) => new optim.Yogi(params, { betas: betasOf(surface) }),
  LARS: (params) => new optim.LARS(params),
  Prodigy: (params) => new optim.Prodigy(params),
  SOAP: (params, surface) => new optim.SOAP(params, { betas: betasOf(surface) }),
  Shampoo: (params) => new optim.Shampoo(params),
  Kron: (params) => new optim.Kron(params),
};

class Run {
  steps = 0;
  isOut = false;
  loss = Number.NaN;
  readonly #surface: SurfaceName;
  readonly #point: Tensor;
  readonly #optimizer: ReturnType<Make>;

  constructor(racer: Racer, surface: SurfaceName) {
    const { start } = SURFACES[surface];
    this.#surface = surface;
    this.#point = parameter([surface === "reddi" ? [start[0], 0] : [...start]]);
    this.#optimizer = makers[racer]([["point", this.#point]], surface);
  }

  set rate(lr: number) {
    this.#optimizer.groups[0]!.lr = lr;
  }

  /** One step, and the point after it as the picture shows it. */
  async step(): Promise<[x: number, y: number]> {
    const point = this.#point;
    const closure = () => {
      point.grad = null;
      const loss = lossOf(this.#surface, point, this.steps).sum();
      loss.backward();
      return loss.dataSync()[0] as number;
    };
    if (this.#optimizer instanceof optim.LBFGS) this.loss = await this.#optimizer.step(() => tidy(closure));
    else {
      this.loss = tidy(closure);
      this.#optimizer.step();
    }
    this.steps++;
    let [x, y] = point.dataSync() as unknown as [number, number];
    if (this.#surface === "reddi") {
      if (Math.abs(x) > 1) {
        x = Math.sign(x);
        point.set([[x, y]]);
      }
      this.loss = x / 3;
      y = 1 - this.steps / STEPS;
    }
    this.isOut = !(Math.hypot(x, y) < FAR);
    return [x, y];
  }
}

let wishes: Wishes | undefined;
let runs = new Map<Racer, Run>();
const tell = (message: RaceMessage) => postMessage(message);

async function tick() {
  const { race, rates, surface } = wishes!;
  const moves: Moves[] = [];
  for (const [racer, rate] of Object.entries(rates) as [Racer, number][]) {
    if (!runs.has(racer)) runs.set(racer, new Run(racer, surface));
    const run = runs.get(racer)!;
    run.rate = rate;
    const points: number[] = [];
    for (let i = 0; i < STEPS_A_TICK && run.steps < STEPS && !run.isOut; i++) points.push(...(await run.step()));
    if (points.length > 0)
      moves.push({ racer, points, loss: run.isOut ? Number.POSITIVE_INFINITY : run.loss, steps: run.steps });
  }
  tell({ kind: "moves", race, moves, done: moves.length === 0 });
}

/** The surface on a grid of MAP x MAP points. Reddi's: its mean slope. */
function mapOf(surface: SurfaceName): Float32Array {
  const {
    x: [left, right],
    y: [bottom, top],
  } = SURFACES[surface];
  const at = (from: number, to: number, i: number) => from + ((to - from) * (i + 0.5)) / MAP;
  const points = Array.from({ length: MAP * MAP }, (_, i) => [
    at(left, right, i % MAP),
    at(top, bottom, Math.floor(i / MAP)),
  ]);
  return tidy(() => lossOf(surface, tensor(points), 0).dataSync()) as Float32Array;
}

addEventListener("message", ({ data }: MessageEvent<Wishes>) => {
  wishes = data;
});
await init("js");
for (let known = -1; ; ) {
  if (wishes !== undefined && wishes.race !== known) {
    known = wishes.race;
    runs = new Map();
    tell({ kind: "map", race: known, values: mapOf(wishes.surface) });
  }
  if (wishes?.running) await tick();
  await new Promise((resolve) => setTimeout(resolve, TICK_MS));
}
