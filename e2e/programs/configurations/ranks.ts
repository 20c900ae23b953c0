/** The program of the ranks: `ranks.ts <folder> <file of configurations>` runs each, and the first rank prints a line of JSON for it. */
import "@opt/kernels-cpu";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { loadCheckpoint } from "@opt/checkpoint";
import { init, OptError } from "@opt/core";
import { enableQ8, enableStochasticRounding } from "@opt/kernels-wasm";
import * as optim from "@opt/optim";
import { connect, mesh } from "@opt/parallel";
import {
  type Configuration,
  difference,
  type Outcome,
  type Phase,
  promiseOf,
  type RankError,
  ranksOf,
  stepsOf,
  type Told,
} from "@opt/testkit/configurations";
import { type Batch, batchSizeOf, loaderOf } from "./batches";
import { trainByFit } from "./by-fit";
import { ByHand } from "./by-hand";
import { observed, oracle } from "./oracle";
import { type Optimizers, type Parts, type Place, partsOf } from "./parts";
import { load, remove, save } from "./saves";

enableStochasticRounding();
enableQ8();
const [folder, file] = process.argv.slice(2) as [string, string];
const world = await connect({ timeout: 90_000 });
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

/** There after a kill. */
const KILLED = "killed";

const isFit = ({ way }: Phase) => way === "fit";

/** A phase. Returns the losses of this rank. */
async function train(
  one: Configuration,
  i: number,
  place: Place,
  where: string,
  stepped: () => void,
): Promise<string[][]> {
  const phase = one.phases[i]!;
  await init(phase.device);
  const own = phase.over === "alone" ? undefined : place;
  const data = own && (own.grid?.axis("data") ?? own.communicator);
  const resumes = i > 0 && one.phases.every(isFit) && (one.through ?? "checkpoint") === "checkpoint";
  // `fit` divides a loader that stands at its start, and makes a replica of its own.
  const isDivided = !isFit(phase) || (i > 0 && !resumes) || one.uneven || one.seed % 2 === 0;
  const parts = partsOf(one, phase, own, optimizers, isDivided);
  const whole = loaderOf(one, batchSizeOf(phase));
  const loader = data && isDivided ? whole.shard(data, { even: !one.uneven }) : whole;
  if (i > 0 && !resumes) loader.loadStateDict((await load(where, parts, one.through, own))!);
  const trained = isFit(phase)
    ? await trainByFit({
        one,
        index: i,
        parts,
        loader,
        communicator: data,
        folder: `${where}/fit`,
        resumes,
        stepped,
        kill: () => {
          if (world.rank !== one.killed! % ranksOf(phase)) return;
          writeFileSync(`${where}/${KILLED}`, "");
          process.kill(process.pid, "SIGKILL");
        },
        isWhole: !isDivided,
      })
    : await trainByHand(one, i, parts, loader, data?.rank ?? 0, stepped);
  const isLast = i === one.phases.length - 1;
  const at = {
    step: isLast ? stepsOf(one) : one.break!,
    loader: trained.state,
    through: isLast ? undefined : one.through,
  };
  await save(where, parts, at, own);
  parts.parallel?.dispose();
  return trained.losses;
}

async function trainByHand(
  one: Configuration,
  i: number,
  parts: Parts,
  loader: Iterable<Batch> & Stateful,
  rank: number,
  stepped: () => void,
) {
  const { way, accumulate } = one.phases[i]!;
  const hand = new ByHand(one, parts, way === "compiled", accumulate);
  const begin = i > 0 ? one.break! : 0;
  const end = i < one.phases.length - 1 ? one.break! : stepsOf(one);
  const losses: string[][] = [];
  let state = loader.stateDict();
  while (begin + losses.length < end) {
    const window: Batch[] = [];
    let isInEpoch = false;
    for (const batch of loader) {
      isInEpoch = begin + losses.length === end;
      if (isInEpoch) break;
      window.push(batch.map((each) => each.clone()) as unknown as Batch);
      if (window.length < accumulate) continue;
      losses.push(await hand.step(window.splice(0), begin + losses.length, rank));
      stepped();
      state = loader.stateDict();
    }
    if (!isInEpoch) state = loader.stateDict();
  }
  return { losses, state };
}

interface Stateful {
  stateDict(): object;
}

/** What the ranks of a configuration left: errors of a phase, or losses by step. The rest is in its folder. */
type Left = { steps: number; errors: readonly RankError[] } | { losses: Outcome["losses"] };

async function run(one: Configuration, where: string): Promise<Left> {
  const losses: (readonly (readonly string[])[])[] = [];
  const isSecondLife = existsSync(`${where}/${KILLED}`);
  for (const [i, phase] of one.phases.entries()) {
    if (isSecondLife && i === 0) continue;
    const place = await placeOf(phase);
    let steps = 0;
    let told: { losses?: string[][]; error?: RankError } = {};
    try {
      if (place) told = { losses: await train(one, i, place, where, () => steps++) };
    } catch (error) {
      told = { error: errorOf(error) };
    }
    const all = await world.broadcast(await world.gather(told));
    const errors = all.map(({ error }) => error).filter((error) => error !== undefined);
    if (errors.length > 0) return { steps, errors };
    const ofRanks = all.filter((_, rank) => rank % phase.model === 0).slice(0, phase.data);
    if (one.killed !== undefined && i === 0)
      return { steps, errors: [{ code: null, message: "not killed", stack: "" }] };
    for (const step of ofRanks[0]!.losses!.keys()) losses.push(ofRanks.map((rank) => rank.losses![step]!));
  }
  return { losses };
}

/** What is not as one process has it. */
async function examine(one: Configuration, losses: Outcome["losses"], where: string): Promise<Told> {
  try {
    await init("js");
    const { tensors } = await loadCheckpoint(`${where}/run`);
    const right = await oracle(one, optimizers, `${where}/alone`);
    // What a killed process had not told is as it must be.
    const untold = one.killed === undefined ? [] : right.losses.slice(0, one.break);
    const outcome: Outcome = { losses: [...untold, ...losses], tensors: await observed(tensors) };
    return { difference: difference(outcome, right, promiseOf(one)) };
  } catch (error) {
    return { errors: [errorOf(error)] };
  }
}

function errorOf(error: unknown): RankError {
  const { code, message, stack } = error as { code?: string; message: string; stack: string };
  return { code: error instanceof OptError ? code! : null, message, stack };
}

const list: { index: number; one: Configuration }[] = JSON.parse(readFileSync(file, "utf8"));
if (list.some(({ one }) => one.phases.some(({ device }) => device === "webgpu"))) {
  await import("@opt/kernels-webgpu");
  const { create } = await import("webgpu"); // named here, because a bundle lies where no packages are
  Object.defineProperty(globalThis, "navigator", { value: { gpu: create([]) }, configurable: true });
}
const folderOf = ({ index }: { index: number }) => `${folder}/${index}`;
// So many of them that each rank examines one, while the others examine theirs.
for (let i = 0; i < list.length; i += world.size) {
  const some = list.slice(i, i + world.size);
  const left: Left[] = [];
  for (const each of some) left.push(await run(each.one, folderOf(each)));
  const [own, its] = [some[world.rank], left[world.rank]];
  if (own && its) {
    const told: Told = "losses" in its ? await examine(own.one, its.losses, folderOf(own)) : its;
    process.stdout.write(`\n@${JSON.stringify({ index: own.index, ...told })}\n`);
    remove(folderOf(own));
  }
  await init("js");
}
await world.close();
