/** The program of the ranks: `ranks.ts <folder> <file of configurations> <program of a worker>` runs each, and the first rank prints a line of JSON for it. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { loadCheckpoint } from "@opt/checkpoint";
import { init, OptError } from "@opt/core";
import { connect, mesh } from "@opt/parallel";
import {
  amplified,
  type Configuration,
  difference,
  type Outcome,
  type Phase,
  promiseOf,
  type RankError,
  type Told,
} from "@opt/testkit/configurations";
import { start } from "@opt/train/worker";
import { observed, oracle } from "./oracle";
import type { Place } from "./parts";
import { KILLED, optimizers, train } from "./phases";
import { remove } from "./saves";

const [folder, file, thread] = process.argv.slice(2) as [string, string, string];
const world = await connect({ timeout: 90_000 });

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

let worker: Worker | undefined;

/** A phase in a worker of this rank. Returns its losses. */
async function trainInWorker(one: Configuration, index: number, where: string, stepped: () => void) {
  worker ??= new Worker(thread, { execArgv: [] });
  const run = start<string[][]>(worker, { one, index, folder: where });
  for await (const { losses } of run) for (const _ of losses) stepped();
  return run.result;
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
      const stepped = () => void steps++;
      const given = { one, index: i, place: phase.over === "alone" ? undefined : place, folder: where, callbacks: [] };
      if (place && phase.way === "worker") told = { losses: await trainInWorker(one, i, where, stepped) };
      else if (place) told = { losses: await train({ ...given, stepped }) };
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
    const promised = promiseOf(one);
    const found = difference(outcome, right, promised);
    if (found === null || typeof promised !== "number") return { difference: found };
    const nudged = await oracle(one, optimizers, `${where}/nudged`, true);
    return { difference: difference(outcome, right, amplified(promised, one, right, nudged)) };
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
/** Where the ranks begin again after one was killed. */
const at = `${folder}/at`;
let next = existsSync(at) ? Number(readFileSync(at, "utf8")) : 0;
while (next < list.length) {
  if (world.rank === 0) writeFileSync(at, String(next));
  // So many of them that each rank examines one, while the others examine theirs. One that kills is alone.
  const some = list.slice(next, next + (list[next]!.one.killed === undefined ? world.size : 1));
  next += some.length;
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
await worker?.terminate();
await world.close();
