/** The program of the ranks: `ranks.ts <folder> <file of configurations>` runs each, and the first rank prints a line of JSON for it. */
import "@opt/kernels-cpu";
import { readFileSync } from "node:fs";
import { loadCheckpoint } from "@opt/checkpoint";
import { init, OptError } from "@opt/core";
import { enableQ8, enableStochasticRounding } from "@opt/kernels-wasm";
import * as optim from "@opt/optim";
import { connect, mesh } from "@opt/parallel";
import { type Configuration, difference, type Outcome, type Phase, promiseOf, stepsOf } from "@opt/testkit/configurations";
import { batchSizeOf, loaderOf } from "./batches";
import { ByHand } from "./by-hand";
import { observed, oracle } from "./oracle";
import { type Optimizers, type Place, partsOf } from "./parts";
import { load, remove, save } from "./saves";

enableStochasticRounding();
enableQ8();
const [folder, file] = process.argv.slice(2) as [string, string];
const world = await connect({ timeout: 30_000 });
const optimizers = optim as unknown as Optimizers;

/** The ranks of a phase; undefined on those that have no part in it. */
async function placeOf({ data, model, over }: Phase): Promise<Place | undefined> {
  if (model > 1) {
    const grid = mesh(world, { copies: world.size / (data * model), data, model });
    return { communicator: world, grid };
  }
  const ranks = over === "alone" ? 1 : data;
  const communicator = await world.split(world.rank < ranks ? 0 : 1);
  return world.rank < ranks ? { communicator, grid: undefined } : undefined;
}

/** A phase by hand. Returns the losses of this rank. */
async function trainByHand(one: Configuration, i: number, place: Place, where: string): Promise<string[][]> {
  const phase = one.phases[i]!;
  await init(phase.device);
  const parts = partsOf(one, phase, phase.over === "alone" ? undefined : place, optimizers);
  const { rank, size } = place.grid?.axis("data") ?? place.communicator;
  const loader = loaderOf(one, batchSizeOf(phase)).shard({ rank, size });
  const from = phase.over === "alone" ? undefined : place;
  if (i > 0) loader.loadStateDict((await load(where, parts, one.through, from))!);
  const hand = new ByHand(one, parts, phase.way === "compiled", phase.accumulate);
  const begin = i > 0 ? one.break! : 0;
  const end = i < one.phases.length - 1 ? one.break! : stepsOf(one);
  const losses: string[][] = [];
  let state: object = loader.stateDict();
  while (begin + losses.length < end) {
    const window: unknown[] = [];
    for (const batch of loader) {
      window.push(batch.map((each) => each.clone()));
      if (window.length < phase.accumulate) continue;
      losses.push(await hand.step(window.splice(0) as never, begin + losses.length, rank));
      state = loader.stateDict();
      if (begin + losses.length === end) break;
    }
  }
  const through = i < one.phases.length - 1 ? one.through : undefined;
  await save(where, parts, { step: end, loader: state, through }, from);
  if (parts.parallel) parts.parallel.dispose();
  return losses;
}

async function run(one: Configuration): Promise<object> {
  const where = `${folder}/${one.seed}`;
  const begun = performance.now();
  const losses: (readonly (readonly string[])[])[] = [];
  for (const [i, phase] of one.phases.entries()) {
    const place = await placeOf(phase);
    let told: { losses?: string[][]; error?: object } = {};
    try {
      if (place) told = { losses: await trainByHand(one, i, place, where) };
    } catch (error) {
      const { code, message, stack } = error as { code?: string; message: string; stack: string };
      told = { error: { code: error instanceof OptError ? code! : null, message, stack } };
    }
    const all = await world.broadcast(await world.gather(told));
    const failed = all.map(({ error }) => error).filter((error) => error !== undefined);
    if (failed.length > 0) {
      if (world.rank === 0) remove(where);
      return { phase: i, errors: failed };
    }
    const first = all.filter(({ losses }, rank) => losses && (place?.grid === undefined || rank % phase.model === 0));
    const size = stepsOf(one);
    for (let step = 0; step < size; step++) {
      const ofStep = first.slice(0, phase.data).map(({ losses }) => losses![step]!);
      if (ofStep[0] !== undefined) losses.push(ofStep);
    }
  }
  if (world.rank > 0) return {};
  await init("js");
  const { tensors } = await loadCheckpoint(`${where}/run`);
  const outcome: Outcome = { losses, tensors: await observed(tensors) };
  remove(where);
  const between = performance.now();
  const right = await oracle(one, optimizers, where);
  const times = { ms: Math.round(between - begun), oracle: Math.round(performance.now() - between) };
  return { difference: difference(outcome, right, promiseOf(one)), ...times };
}

const configurations: Configuration[] = JSON.parse(readFileSync(file, "utf8"));
for (const one of configurations) {
  const told = await run(one);
  if (world.rank === 0) process.stdout.write(`\n@${JSON.stringify({ seed: one.seed, ...told })}\n`);
  await init("js");
}
await world.close();
