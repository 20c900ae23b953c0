/** Runs a program on a device: as it stands, recorded and replayed, or saved and built anew on the way. */
import { type ErrorCode, OptError, type Recording, type Tensor, tidy } from "@opt/core";
import { execute } from "./execute";
import { type Observation, observe } from "./observe";
import type { Id, Program, Round, Statement } from "./program";
import { type Contents, free } from "./store";
import { type Mode, World, WrongResult } from "./world";

export interface Refusal {
  readonly code: ErrorCode;
  readonly at: string;
  readonly message: string;
}

export interface Outcome {
  /** After each round; after a refusal, once more. */
  readonly rounds: readonly Observation[];
  readonly refused: Refusal | null;
  /** What must never happen: an error that is no OptError, a result of another shape, memory that is not given back. */
  readonly broken: { readonly what: string; readonly detail: string } | null;
}

export async function run(program: Program, mode: Mode): Promise<Outcome> {
  const devices = [...new Set([mode.device, mode.onto ?? mode.device])];
  const held = () => devices.map((device) => device.memory());
  const before = held();
  const rounds: Observation[] = [];
  let refused: Refusal | null = null;
  let broken: Outcome["broken"] = null;
  let run = new Run(new World(program, mode));
  try {
    run.open();
    for (const [i, round] of program.rounds.entries()) {
      if (mode.resumed && i === program.resume.round) {
        const saved = await mode.resumed(run.saved(), program.seed);
        run.close();
        run = new Run(new World(program, { ...mode, device: mode.onto ?? mode.device }));
        run.open();
        const contents = await saved(run.world.mode.device);
        try {
          run.world.load(contents);
        } finally {
          free(contents);
        }
      }
      rounds.push(await run.round(round));
    }
  } catch (error) {
    if (error instanceof OptError && error.code !== "INTERNAL") {
      refused = { code: error.code, at: run.world.at, message: error.message };
    } else broken = { what: whatIs(error), detail: `at ${run.world.at}: ${(error as Error).stack}` };
  }
  try {
    if (refused !== null) rounds.push(await lastSight(run.world));
    run.close();
    for (const device of devices) await device.sync();
  } catch (error) {
    broken ??= { what: whatIs(error), detail: `at the end: ${(error as Error).stack}` };
  }
  for (const [i, after] of held().entries()) {
    const [tensors, bytes] = [after.tensors - before[i]!.tensors, after.bytes - before[i]!.bytes];
    if (tensors === 0 && bytes === 0) continue;
    broken ??= { what: "keeps memory", detail: `${tensors} tensors and ${bytes} bytes are not given back` };
  }
  return { rounds, refused, broken };
}

/** After a refusal; what is disposed cannot be looked at. */
async function lastSight(world: World): Promise<Observation> {
  try {
    return await observe(world, new Map());
  } catch (error) {
    if (error instanceof OptError && error.code === "DISPOSED") return new Map();
    throw error;
  }
}

const whatIs = (error: unknown): string => (error instanceof WrongResult ? error.what : "throws a raw error");

type Results = readonly (readonly [Id, Tensor])[];

class Run {
  private readonly recordings = new Map<number, Recording<Results>>();

  constructor(readonly world: World) {}

  open(): void {
    const { world } = this;
    world.open();
    for (const { id, hooks = [] } of world.program.optimizers) {
      for (const { event, body } of hooks) world.trainer(id).optimizer.on(event, () => this.hook(body));
    }
    for (const statement of world.program.prelude) execute(world, statement);
    world.endPrelude();
  }

  private hook(body: readonly Statement[]): void {
    const { world } = this;
    const outer = new Set(world.values.keys());
    world.inTidy(() =>
      tidy(() => {
        for (const statement of body) execute(world, statement);
      }),
    );
    for (const id of [...world.values.keys()]) if (!outer.has(id)) world.values.delete(id);
  }

  async round({ before, body, eager }: Round): Promise<Observation> {
    const { world } = this;
    for (const statement of before) execute(world, statement);
    const results = new Map(world.mode.recorded && !eager ? this.replayed(body) : tidy(() => this.body(body)));
    const seen = await observe(world, results);
    if (!world.mode.recorded || eager) for (const result of results.values()) result.dispose();
    world.endRound();
    return seen;
  }

  private replayed(body: number): Results {
    const known = this.recordings.get(body);
    if (known !== undefined) {
      this.world.at = "replay";
      known.replay();
      return known.result;
    }
    const made = this.world.mode.device.record(() => this.body(body));
    this.recordings.set(body, made);
    return made.result;
  }

  private body(index: number): Results {
    const { world } = this;
    const outer = new Map(world.values);
    const { statements, results } = world.program.bodies[index]!;
    try {
      return world.inTidy(() => {
        for (const statement of statements) execute(world, statement);
        return results.map((id) => [id, world.value(id)] as const);
      });
    } finally {
      for (const id of [...world.values.keys()]) if (!outer.has(id)) world.values.delete(id);
    }
  }

  saved(): Contents {
    return this.world.saved();
  }

  close(): void {
    this.closeRecordings();
    this.world.close();
  }

  private closeRecordings(): void {
    for (const recording of this.recordings.values()) {
      for (const [, result] of recording.result) result.dispose();
      recording.dispose();
    }
    this.recordings.clear();
  }
}
