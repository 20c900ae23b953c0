/** A loop by hand that `opt-run --prove-resume` proves: `proven-loop.ts <device> <fault>`. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { AdamW } from "@opt/adam-amsgrad";
import { loadCheckpoint, optimizerContents, optimizerState, recordedRun, saveCheckpoint } from "@opt/checkpoint";
import {
  defaultGenerator,
  ExponentialMovingAverage,
  Generator,
  GradScaler,
  init,
  manualSeed,
  randn,
  tidy,
} from "@opt/core";
import { StepLR } from "@opt/core/schedules";
import { Dropout, Linear, mseLoss, ReLU, Sequential } from "@opt/nn";
import { connect, DataParallel } from "@opt/parallel";

const [device = "js", fault = ""] = process.argv.slice(2);
await init(device);
const communicator = await connect();
if (fault !== "unseeded") manualSeed(1 + communicator.rank);
const generator = new Generator(fault === "unseeded" ? Date.now() % 2 ** 31 : 5);
const model = new Sequential(
  new Linear(4, 8, { generator }),
  new ReLU(),
  new Dropout(0.2),
  new Linear(8, 2, { generator }),
);
const parallel = new DataParallel(model, communicator);
const optimizer = new AdamW(model.namedParameters(), { lr: 0.01 });
const schedule = new StepLR(optimizer, { stepSize: 4, gamma: 0.5 });
const scaler = new GradScaler({ initScale: 16, growthInterval: 5 });
const ema = new ExponentialMovingAverage(model.namedParameters(), { decay: 0.9 });

const run = await recordedRun("runs/proven-loop");
const folder = fault === "elsewhere" ? process.env.OPT_TEST_FOLDER! : run.folder;

const state = () => ({
  model: model.stateDict(),
  optimizer: optimizer.stateDict(),
  schedule: schedule.stateDict(),
  scaler: scaler.stateDict(),
  ema: ema.stateDict(),
  generators: [generator, defaultGenerator].map((each) => each.stateDict()),
});

async function save(step: number): Promise<void> {
  const { tensors, values } = optimizerContents(optimizer.stateDict());
  const { n_averaged, ...averages } = ema.stateDict();
  const { schedule: plan, scaler: scale, generators } = state();
  const contents = {
    step,
    tensors: { ...model.stateDict(), ...tensors, ...averages },
    values: { ...values, n_averaged, schedule: plan, scaler: scale },
    rankValues: { generators },
  };
  const layout = { mesh: { shape: [communicator.size], axes: ["rank"] }, tensors: { "*": "replicate" as const } };
  await saveCheckpoint(folder, contents as never, { communicator, layout, overwrite: true });
}

async function resume(): Promise<number> {
  // biome-ignore lint/suspicious/noExplicitAny: what save() has written
  const saved: any = await loadCheckpoint(folder).catch((error) => {
    if (error.code !== "MISSING") throw error;
  });
  if (!saved || fault === "anew") return 0;
  const named = Object.keys(model.stateDict()).map((name) => [name, saved.tensors[name]]);
  model.loadStateDict(Object.fromEntries(named));
  if (fault !== "cold") optimizer.loadStateDict(optimizerState(saved));
  schedule.loadStateDict(saved.values.schedule);
  scaler.loadStateDict(saved.values.scaler);
  ema.loadStateDict({ ...saved.tensors, n_averaged: saved.values.n_averaged });
  const states = saved.values.rankValues[communicator.rank].generators;
  generator.loadStateDict(states[0]);
  if (fault !== "draws" || communicator.rank === 0) defaultGenerator.loadStateDict(states[1]);
  return saved.step;
}

let step = await resume();
await run.record(step, state());
while (step < 15) {
  const x = randn([6, 4], { generator });
  tidy(() => scaler.scale(mseLoss(parallel.forward(x) as never, x.slice(0, 2, 1))).backward());
  await parallel.sync();
  tidy(() => scaler.step(optimizer));
  scaler.update();
  optimizer.zeroGrad();
  schedule.step();
  ema.update();
  step++;
  if (step === run.breakAt || step % 6 === 0) await save(step);
  if ((await run.record(step, { ...state(), samples: x })) && fault !== "endless") break;
}
await communicator.close();
