/** Runs a program on a device: eagerly, compiled, or saved and built anew on the way. */
import { compile, type ErrorCode, OptError, type Tensor, tidy } from "@opt/core";
import { execute, executeHook } from "./execute";
import { type Observation, type ObservedValue, observe } from "./observe";
import type { Id, Program, Round, Statement } from "./program";
import { free } from "./store";
import { type Mode, World, WrongResult } from "./world";

interface Rejection {
  readonly code: ErrorCode;
  readonly at: string;
  readonly message: string;
}

export interface Outcome {
  /** After each round; after a rejection, once more. */
  readonly rounds: readonly Observation[];
  readonly rejected: Rejection | null;
  /** What must never happen: an error that is no OptError, a result of another shape, memory that is not given back. */
  readonly broken: { readonly what: string; readonly detail: string } | null;
  /** Calls of compiled bodies that did not run the function. */
  readonly replays: number;
}

export async function run(program: Program, mode: Mode): Promise<Outcome> {
  const devices = [...new Set([mode.device, mode.onto ?? mode.device])];
  const held = () => devices.map((device) => device.memory());
  const before = held();
  const rounds: Observation[] = [];
  let rejected: Rejection | null = null;
  let broken: Outcome["broken"] = null;
  let replays = 0;
  let run = new Run(new World(program, mode));
  try {
    run.open();
    for (const [i, round] of program.rounds.entries()) {
      if (mode.resumed && i === program.resume.round) {
        const saved = await mode.resumed(run.world.saved(), program.seed);
        await run.close();
        replays += run.replays;
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
      rejected = { code: error.code, at: run.world.at, message: error.message };
    } else broken = { what: whatIs(error), detail: `at ${run.world.at}: ${(error as Error).stack}` };
  }
  try {
    if (rejected !== null) rounds.push(await lastSight(run.world));
    await run.close();
    for (const device of devices) await device.sync();
  } catch (error) {
    broken ??= { what: whatIs(error), detail: `at the end: ${(error as Error).stack}` };
  }
  for (const [i, after] of held().entries()) {
    const [tensors, bytes] = [after.tensors - before[i]!.tensors, after.bytes - before[i]!.bytes];
    if (tensors <= 0 && bytes <= 0) continue; // what a failing run left may be collected now
    broken ??= { what: "keeps memory", detail: `${tensors} tensors and ${bytes} bytes are not given back` };
  }
  return { rounds, rejected, broken, replays: replays + run.replays };
}

/** After a rejection; what is disposed cannot be looked at. */
async function lastSight(world: World): Promise<Observation> {
  try {
    return await observe(world, new Map());
  } catch (error) {
    if (error instanceof OptError && error.code === "DISPOSED") return new Map();
    throw error;
  }
}

const whatIs = (error: unknown): string => (error instanceof WrongResult ? error.what : "throws a raw error");

/** Tensors, and by their names numbers and booleans: what a body is called with. */
type BodyFunction = (tensors: readonly Tensor[], plain: World["plain"]) => Readonly<Record<Id, Tensor>>;

class Run {
  replays = 0;
  #isReplayed = false;
  readonly #compiled = new Map<
    number,
    ReturnType<typeof compile<Parameters<BodyFunction>, ReturnType<BodyFunction>>>
  >();
  /** Results that nothing may change later. */
  readonly #kept: { readonly id: Id; readonly result: Tensor; readonly seen: ObservedValue }[] = [];
  readonly #ownResults: ReadonlySet<Id>;

  constructor(readonly world: World) {
    const made = world.program.bodies.flatMap(({ statements }) => statements);
    const isOwn = (one: Statement) => one.do === "op" && /^(sum|mean)$/.test(one.op);
    this.#ownResults = new Set(
      world.program.seed % 3 > 0 ? [] : made.filter(isOwn).map((one) => (one as { id: Id }).id),
    );
  }

  open(): void {
    const { world } = this;
    world.open();
    for (const { id, hooks = [] } of world.program.optimizers) {
      for (const { event, body } of hooks) world.trainer(id).optimizer.on(event, () => executeHook(world, body));
    }
    for (const statement of world.program.prelude) execute(world, statement);
    world.endPrelude();
  }

  async round({ before, body, args, eager }: Round): Promise<Observation> {
    const { world } = this;
    for (const statement of before) execute(world, statement);
    const names = this.#tensorsOf(body);
    const tensors = world.passed(names, args);
    const others = world.program.bodies[body]!.args.filter((id) => typeof args[id] !== "object" && id in args);
    const plain = Object.fromEntries(others.map((id) => [id, args[id] as number | boolean]));
    world.outside = Object.fromEntries(
      Object.entries(args).filter(([id, given]) => typeof given !== "object" && !(id in plain)),
    ) as World["outside"];
    const call = eager || !world.mode.compile ? this.#eager(body) : this.#replaying(body);
    const results = new Map(Object.entries(call(tensors, plain)));
    const seen = await observe(world, results, new Map(names.map((id, i) => [id, tensors[i]!])));
    this.#take(results, tensors, seen);
    world.endRound();
    return seen;
  }

  /** The arguments of a body that are tensors. */
  #tensorsOf(body: number): Id[] {
    return this.world.program.bodies[body]!.args.filter((id) => this.world.values.has(id));
  }

  #eager(body: number): BodyFunction {
    return (tensors, plain) => tidy(() => this.#body(body, tensors, plain));
  }

  #replaying(body: number): BodyFunction {
    let known = this.#compiled.get(body);
    if (known === undefined) {
      known = compile<Parameters<BodyFunction>, ReturnType<BodyFunction>>((tensors, plain) => {
        this.#isReplayed = false;
        return this.#body(body, tensors, plain);
      }, this.world.mode.compile);
      this.#compiled.set(body, known);
    }
    const call = known;
    return (...args) => {
      this.world.at = "a compiled body";
      this.#isReplayed = true;
      const results = call(...args);
      if (this.#isReplayed) this.replays++;
      return results;
    };
  }

  #body(index: number, tensors: readonly Tensor[], plain: World["plain"]): Record<Id, Tensor> {
    const { world } = this;
    const outer = new Map(world.values);
    const { statements, results } = world.program.bodies[index]!;
    this.#tensorsOf(index).forEach((id, i) => {
      world.values.set(id, tensors[i]!);
    });
    world.plain = plain;
    try {
      return world.inTidy(() => {
        for (const statement of statements) execute(world, statement);
        return Object.fromEntries(results.map((id) => [id, world.value(id)]));
      });
    } finally {
      for (const id of [...world.values.keys()]) if (!outer.has(id)) world.values.delete(id);
      for (const [id, value] of outer) world.values.set(id, value);
      world.plain = {};
    }
  }

  /** The results of a round stay until the next one has ended, or the program. */
  #take(results: ReadonlyMap<Id, Tensor>, args: readonly Tensor[], seen: Observation): void {
    const { world } = this;
    const before = new Set(world.results.values());
    const others = new Set([...world.values.values(), ...args.filter((one) => !before.has(one))]);
    for (const [id, result] of results) {
      if (this.#ownResults.has(id)) this.#kept.push({ id, result, seen: seen.get(`result ${id}`)! });
    }
    world.results = new Map([...results].filter(([id, one]) => !others.has(one) && !this.#ownResults.has(id)));
    for (const one of world.results.values()) before.delete(one);
    for (const one of before) one.dispose();
  }

  async close(): Promise<void> {
    for (const { id, result, seen } of this.#kept.splice(0)) {
      const now = await result.data();
      result.dispose();
      const then = (seen as Exclude<ObservedValue, string>).data;
      if (now.some((value, i) => !Object.is(value, then[i]))) {
        throw new WrongResult("overwrites a result", `${id} was [${then}] and is [${now}]`);
      }
    }
    for (const one of this.#compiled.values()) one.dispose();
    this.world.close();
  }
}
