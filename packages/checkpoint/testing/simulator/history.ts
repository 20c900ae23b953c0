/** One history: lives of a job of ranks that resume, save, overwrite and die, on a disk that forgets what is not synced, or in a bucket. */

import { defaultLayout } from "../../src/layout/layout";
import { boxesOfRank } from "../../src/layout/placements";
import type { Communicator } from "../../src/save/ranks/communicator";
import { type SaveOptions, saveCheckpoint } from "../../src/save/save";
import { endAttempt } from "../../src/save/step/owner";
import type { FileSystem } from "../../src/stores/file-system";
import { random } from "../random";
import { Bucket } from "./bucket";
import { Disk } from "./disk";
import { atOnce, type Call, callsOf, diskFileSystem } from "./file-system";
import { Network } from "./network";
import { hasCode, leftOver, loadLatest, Oracle, ROWS, RUN, type Save, Violation } from "./oracle";
import { Actor, Scheduler } from "./scheduler";

/** What stands between the package and the simulated world, to plant faults. */
export interface PlantedFaults {
  /** Where histories save; without it the seed chooses. */
  readonly store?: "disk" | "bucket";
  fileSystem?(inner: FileSystem): FileSystem;
  communicator?(inner: Communicator): Communicator;
}

export interface History {
  readonly seed: number;
  /** What went wrong. */
  readonly violation: string | undefined;
  readonly log: readonly string[];
  readonly events: number;
}

let loaded: Promise<void> | undefined;

/** What a seed leads to, the same each time. */
export async function runHistory(seed: number, planted: PlantedFaults = {}): Promise<History> {
  loaded ??= loadModules();
  await loaded;
  return play(seed, planted);
}

/** The modules that histories load when they need them. That takes turns of the event loop, in which a rank seems to wait forever. */
async function loadModules(): Promise<void> {
  const [histories, tries] = [20, 20];
  for (let seed = 1; seed <= histories; seed++) {
    for (let i = 0; i < tries && (await play(seed)).violation !== undefined; i++)
      await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function play(seed: number, planted: PlantedFaults = {}): Promise<History> {
  const job = new Job(seed, planted);
  let violation: string | undefined;
  const { setInterval, clearInterval } = globalThis;
  const { timers } = job.scheduler;
  const next = random(seed);
  // Readers compare the names of attempts, so that these come from the seed, too.
  const value = (bytes: Uint8Array) => {
    for (let i = 0; i < bytes.length; i++) bytes[i] = next();
    return bytes;
  };
  Object.defineProperty(crypto, "getRandomValues", { value, configurable: true });
  Object.assign(globalThis, {
    setInterval: (body: () => void) => timers.add(body) && body,
    clearInterval: (body: () => void) => timers.delete(body),
  });
  try {
    await job.run();
  } catch (error) {
    if (!(error instanceof Violation)) throw error;
    violation = error.message;
  } finally {
    Object.assign(globalThis, { setInterval, clearInterval });
    Reflect.deleteProperty(crypto, "getRandomValues"); // the prototype's again
  }
  const { log, events } = job.scheduler;
  return { seed, violation, log, events };
}

interface PlannedSave extends Save {
  readonly options: SaveOptions;
  readonly isWhole: boolean;
  /** How many ranks have not ended it. */
  left: number;
  readonly told: Set<string>;
}

interface Ranks {
  readonly run: string;
  readonly ranks: readonly Actor[];
  readonly network: Network;
  readonly saves: readonly PlannedSave[];
}

/** Written otherwise, so that saves of two simulated processes do not wait for each other, as those of one process do. */
const SAME_RUN = "//runs/a";

type Disaster = "none" | "rank" | "job" | "power" | "full" | "call";

class Job {
  readonly scheduler: Scheduler;
  readonly #planted: PlantedFaults;
  readonly #store: Disk | Bucket;
  readonly #oracle = new Oracle();
  #ids = 0;
  #open = new Set<string>();
  #violation: Violation | undefined;

  constructor(seed: number, planted: PlantedFaults) {
    this.scheduler = new Scheduler(seed);
    this.#planted = planted;
    const isBucket = planted.store ? planted.store === "bucket" : this.scheduler.chance(0.3);
    this.#store = isBucket ? new Bucket(this.scheduler) : new Disk(this.scheduler);
  }

  async run(): Promise<void> {
    const { scheduler } = this;
    const lives = 1 + scheduler.below(4);
    for (let life = 1; life <= lives; life++) {
      const disaster = scheduler.pick<Disaster>(["none", "rank", "job", "power", "power", "full", "call", "call"]);
      await this.#live(`life ${life}`, disaster);
    }
    // At the end all goes well, and nothing that has died is left over.
    await this.#live("the last life", "none", true);
  }

  async #live(life: string, disaster: Disaster, isLast = false): Promise<void> {
    const { scheduler } = this;
    forget();
    scheduler.isUnfair = scheduler.chance(0.4);
    const jobs = [this.#job(`${life}, rank`, RUN, 1 + scheduler.below(3))];
    if (!isLast && scheduler.chance(0.3)) jobs.push(this.#job(`${life}, other`, SAME_RUN, 1));
    this.#oracle.isShared ||= jobs.length > 1;
    scheduler.say(`${life}: ${disaster}; ${jobs.map(({ saves }) => saves.map(describe).join("; ")).join(" | ")}`);
    const ranks = jobs.flatMap((job) => job.ranks);
    const saves = jobs.flatMap((job) => job.saves);
    const isAimed = scheduler.chance(0.4);
    const renames = scheduler.renames + 1 + scheduler.below(2 * saves.length);
    let at = isAimed ? Infinity : scheduler.events + scheduler.below(40 * ranks.length * saves.length);
    let isOver = disaster === "none";
    const victim = scheduler.pick(ranks);
    if (disaster === "call") {
      victim.failing = scheduler.pick(["", "write", "finish", "finish", "syncFolder", "rename"]);
      victim.succeed = scheduler.below((victim.failing ? 3 : 30) * saves.length);
      victim.code = scheduler.pick(["EIO", "ENOSPC", "EACCES"]);
    }
    const happens = () => {
      this.#rethrow();
      if (isAimed && scheduler.renames === renames) at = Math.min(at, scheduler.events + scheduler.below(4));
      if (isOver || scheduler.events < at) return false;
      isOver = true;
      if (disaster === "full") this.#store.isFull = true;
      const dying = disaster === "rank" ? [victim] : disaster === "job" || disaster === "power" ? ranks : [];
      for (const actor of dying) this.#kill(actor);
      if (disaster === "rank") jobs.find((job) => job.ranks.includes(victim))!.network.break();
      if (disaster === "power") this.#store.losePower();
      return true;
    };
    for (const job of jobs) for (const rank of job.ranks.keys()) this.#start(rank, job, disaster);
    await scheduler.drain(happens);
    this.#rethrow();
    const hanging = ranks.find(({ isAlive, name }) => isAlive && this.#open.has(name));
    if (hanging) throw new Violation(`${hanging.name} waits forever`);
    const seen = this.#seen(atOnce);
    // What one job removes from a bucket while another replaces it may stay: see "Several jobs in one run".
    const mayLeave = this.#store instanceof Bucket && this.#oracle.isShared;
    const left = isLast && !mayLeave ? await leftOver(seen) : [];
    if (left.length > 0) throw new Violation(`left over: ${left}`);
    for (const actor of ranks) this.#kill(actor);
    scheduler.timers.clear();
    for (const save of saves) this.#oracle.ended(save);
    this.#store.isFull = false;
    const isLost =
      this.#store instanceof Bucket || disaster === "power" || scheduler.chance(disaster === "call" ? 0.75 : 0.25);
    if (isLost) this.#store.losePower();
    await this.#oracle.check(seen, isLost, isLast);
  }

  /** The store as one process sees it. */
  #seen(call: Call): FileSystem {
    return this.#store instanceof Bucket ? this.#store.fileSystem(call) : diskFileSystem(this.#store, call);
  }

  /** Processes that save together. */
  #job(name: string, run: string, size: number): Ranks {
    const { scheduler } = this;
    const ranks = Array.from({ length: size }, (_, rank) => new Actor(`${name} ${rank}`));
    for (const actor of ranks) actor.weight = scheduler.pick([1, 1, 4, 16]);
    return { run, ranks, network: new Network(scheduler, ranks), saves: this.#plan(size) };
  }

  #rethrow(): void {
    if (this.#violation) throw this.#violation;
  }

  #kill(actor: Actor): void {
    this.scheduler.kill(actor);
    for (const attempt of actor.attempts) endAttempt(attempt);
  }

  #plan(size: number): PlannedSave[] {
    const { scheduler } = this;
    let last = this.#oracle.steps.at(-1) ?? 0;
    return Array.from({ length: 1 + scheduler.below(3) }, () => {
      const overwrite = scheduler.chance(0.4);
      // Two jobs choose the same step now and then.
      const isAgain = last > 0 && scheduler.chance(overwrite ? 0.7 : 0.1);
      const step = isAgain ? last : ++last;
      const keep = scheduler.chance(0.4) ? 1 + scheduler.below(2) : undefined;
      const async = scheduler.chance(0.3);
      const checkReplicas = scheduler.chance(0.2);
      const isWhole = scheduler.chance(0.5);
      const options = { overwrite, async, checkReplicas, whole: isWhole, ...(keep === undefined ? {} : { keep }) };
      return { id: ++this.#ids, step, keep, overwrite, options, isWhole, left: size, told: new Set<string>() };
    });
  }

  /** The program of a rank. */
  #start(rank: number, { run, ranks, network, saves }: Ranks, disaster: Disaster): void {
    const actor = ranks[rank]!;
    const { fileSystem: plant = (inner) => inner, communicator: plantBetween = (inner) => inner } = this.#planted;
    const fileSystem = plant(this.#seen(callsOf(this.scheduler, actor)));
    const communicator = plantBetween(network.communicator(rank));
    const program = async () => {
      if (rank === 0 && this.scheduler.chance(0.5)) await this.#resume(run, actor, fileSystem, disaster !== "call");
      const running: Promise<void>[] = [];
      for (const save of saves) {
        const ended = this.#save(run, rank, actor, save, { communicator, fileSystem }, disaster === "none");
        ended.catch(() => {}); // awaited below, unless another one fails first
        running.push(ended);
        if (!save.options.async) await ended;
        if (network.isBroken) break;
      }
      await Promise.all(running);
    };
    this.#open.add(actor.name);
    program()
      .catch((error: Error) => {
        this.#violation ??= error instanceof Violation ? error : new Violation(`${actor.name}: ${error.stack}`);
      })
      .finally(() => this.#open.delete(actor.name));
  }

  async #resume(run: string, actor: Actor, fileSystem: FileSystem, isReadable: boolean): Promise<void> {
    try {
      const { id, step } = await loadLatest(fileSystem, run);
      if (actor.isAlive) this.#oracle.read(step, id);
    } catch (error) {
      if (error instanceof Violation || (isReadable && !hasCode(error, "MISSING"))) throw error;
    }
  }

  async #save(
    run: string,
    rank: number,
    actor: Actor,
    save: PlannedSave,
    places: SaveOptions,
    isCalm: boolean,
  ): Promise<void> {
    const { id, step, isWhole, options } = save;
    const { size } = places.communicator!;
    const whole = [ROWS, 2];
    const layout = defaultLayout(size);
    const [box] = boxesOfRank(layout, { name: "rows", shape: whole }, rank);
    const shape = isWhole ? whole : box!.size;
    const rows = { dtype: "U8", shape, data: new Uint8Array(shape[0]! * 2).fill(id) };
    const same = { dtype: "U8", shape: [], data: Uint8Array.of(id) };
    this.#oracle.begins(save);
    try {
      await saveCheckpoint(run, { step, tensors: { rows, same }, values: { id } }, { ...options, ...places });
      if (!actor.isAlive) return;
      this.scheduler.say(`${actor.name} is told: save ${id} is there`);
      save.told.add("saved");
      this.#oracle.succeeded(save);
    } catch (error) {
      if (error instanceof Violation) throw error;
      if (!actor.isAlive) return;
      this.scheduler.say(`${actor.name} is told: save ${id} has failed: ${(error as Error).message}`);
      save.told.add("failed");
      if (isCalm && !hasCode(error, "DUPLICATE")) throw error;
    }
    if (isCalm && save.told.size > 1) throw new Violation(`ranks were told different ends of save ${id}`);
    if (--save.left === 0) this.#oracle.ended(save);
  }
}

function describe({ id, step, options }: PlannedSave): string {
  return `save ${id} of step ${step} ${JSON.stringify(options)}`;
}

/** What the package knows of saves of this process: those of other histories and lives have died. */
function forget(): void {
  const shared = globalThis as { [key: symbol]: unknown };
  shared[Symbol.for("@opt/checkpoint.saves")] = new Map();
  shared[Symbol.for("@opt/checkpoint.attempts")] = new Set();
}
