/**
 * How ranks that share no communicator agree: they meet in a folder beside the step, and messages are files there.
 *
 * Names that users give (a job's id) come again in every restart, so a name never identifies a save. The first rank to come makes an
 * attempt, a name that occurs once in the world, and points at it with a file that only one can create; the others join it. A rank
 * that finds the attempt of a dead process, or its own place taken by one, points at a new attempt; whoever had joined the old one
 * follows. Nobody writes before every rank has answered that it is ready, after every rank had joined: so all ranks of an attempt
 * were alive at one moment, and no file of an earlier life can be among theirs.
 */

import { check, OptError } from "@opt/core";
import { stepName } from "../format/steps";
import { diskError, type FileSystem, isMissing } from "../stores/file-system";
import { join } from "../stores/path";
import { pulse, sleep } from "../stores/timers";
import type { Communicator } from "./communicator";
import { MEMBER, messagesOf, readText } from "./leftovers";
import { type Failure, failureOf, unwrap } from "./outcome";
import { type Attempt, describeOwner, endAttempt, lifeOf, newAttempt } from "./owner";

export interface Invitation {
  readonly fileSystem: FileSystem;
  /** The run's folder. */
  readonly folder: string;
  readonly step: number;
  /** Ranks that give the same name meet. */
  readonly name: string;
  readonly rank: number;
  readonly world: number;
  /** What all ranks must say alike, one line. */
  readonly terms: string;
  /** How long to wait for ranks that have not come, in milliseconds. */
  readonly patience: number;
  /** How long a rank of another machine has to show that it is alive, in milliseconds. */
  readonly answerWithin?: number;
}

/** Even a process that computes for long should have answered by then. */
const ANSWER_WITHIN = 60_000;
const LONGEST_SLEEP = 50;
const FAILED = "failed.json";
/** A message whose name says all. */
const MARK = "\n";

const numbered = (rank: number) => `rank-${String(rank).padStart(5, "0")}`;

/** Comes together with every other rank. Throws MISSING (a rank does not come), BAD_ARGUMENT (they disagree), IO (a rank has died). */
export async function meet(invitation: Invitation): Promise<Meeting> {
  const deadline = performance.now() + invitation.patience;
  const { unfinished } = invitation.fileSystem;
  check(
    (await unfinished?.isFenced(join(invitation.folder, pointerPrefix(invitation)))) ?? true,
    "UNSUPPORTED",
    "saveCheckpoint",
    () => "ranks meet where a file can be created once only, and this store does not keep that (If-None-Match: *).",
    "Give the ranks a communicator.",
  );
  for (;;) {
    const meeting = await enter(invitation);
    try {
      if (await meeting.assemble(deadline)) return meeting;
    } catch (error) {
      await meeting.leave();
      throw diskError(error, invitation.folder, "agreeing");
    }
    await meeting.leave();
  }
}

async function enter(invitation: Invitation): Promise<Meeting> {
  const { fileSystem, folder } = invitation;
  try {
    await fileSystem.makeFolder(folder);
    for (;;) {
      const generation = await newestGeneration(invitation);
      const meeting =
        (generation > 0 && (await joinLife(invitation, generation))) || (await beginLife(invitation, generation + 1));
      if (meeting) return meeting;
    }
  } catch (error) {
    throw diskError(error, folder, "agreeing");
  }
}

function pointerPrefix({ step, name }: Invitation): string {
  return `${stepName(step)}.tmp-${name}.life-`;
}

async function generations(invitation: Invitation): Promise<number[]> {
  const prefix = pointerPrefix(invitation);
  const names = (await invitation.fileSystem.list(invitation.folder)).map(({ name }) => name);
  return names.flatMap((name) =>
    name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)) ? [Number(name.slice(prefix.length))] : [],
  );
}

/** 0 where there is none yet. */
async function newestGeneration(invitation: Invitation): Promise<number> {
  return Math.max(0, ...(await generations(invitation)));
}

function attemptPath({ folder, step }: Invitation, attempt: Attempt): string {
  return join(folder, `${stepName(step)}.tmp-${attempt}`);
}

/** Undefined where another rank was quicker. */
async function beginLife(invitation: Invitation, generation: number): Promise<Meeting | undefined> {
  const { fileSystem, folder, terms } = invitation;
  const attempt = newAttempt();
  const meeting = new Meeting(invitation, attempt, generation, attempt);
  // The place comes before what points at it: a pointer to nothing then means that the attempt is over.
  await fileSystem.makeFolder(meeting.messages);
  await fileSystem.createOnce(join(meeting.messages, `${numbered(invitation.rank)}.here`), attempt);
  const pointer = join(folder, pointerPrefix(invitation) + generation);
  if (await fileSystem.createOnce(pointer, `${attempt} ${terms}\n`)) return meeting;
  await meeting.giveWay();
  return undefined;
}

/** Undefined where that attempt is over: it failed, ended, or one of its processes has died. */
async function joinLife(invitation: Invitation, generation: number): Promise<Meeting | undefined> {
  const { fileSystem, folder, rank, terms } = invitation;
  const pointer = await readPointer(fileSystem, join(folder, pointerPrefix(invitation) + generation));
  if (!pointer) return undefined;
  const self = newAttempt();
  const meeting = new Meeting(invitation, pointer.attempt, generation, self);
  try {
    if (await meeting.isOver()) return undefined;
    if (pointer.terms !== terms) {
      if (!(await meeting.answers(await meeting.firstMember()))) return undefined;
      const problem = `all ranks must say the same, but rank ${rank} says ${terms}; another says ${pointer.terms}.`;
      throw await meeting.fail(new OptError("BAD_ARGUMENT", "saveCheckpoint", problem, "Start all ranks alike."));
    }
    if (!(await fileSystem.createOnce(join(meeting.messages, `${numbered(rank)}.here`), self))) {
      if (!(await meeting.answers(rank))) return undefined;
      const other = describeOwner(await readText(fileSystem, join(meeting.messages, `${numbered(rank)}.here`)));
      const problem = `two processes save as rank ${rank}: this one, ${describeOwner(self)}, and ${other}.`;
      throw await meeting.fail(new OptError("BAD_ARGUMENT", "saveCheckpoint", problem, "Give each its own rank."));
    }
    return meeting.entered();
  } catch (error) {
    // A place that is gone was an attempt that has ended.
    if (isMissing(error)) return undefined;
    throw error;
  } finally {
    if (!meeting.isMember) endAttempt(self);
  }
}

async function readPointer(
  fileSystem: FileSystem,
  path: string,
): Promise<{ attempt: Attempt; terms: string } | undefined> {
  // Whoever creates it writes it at once, unless it dies in between.
  for (let tries = 0; tries < 100; tries++) {
    const [, attempt, terms] = /^(\S+) (.*)\n$/.exec(await readText(fileSystem, path)) ?? [];
    if (attempt !== undefined) return { attempt, terms: terms! };
    if ((await fileSystem.kind(path)) === undefined) return undefined;
    await sleep(20);
  }
  return undefined;
}

/** The ranks of one attempt, gathered. Each `leave`s once it knows the outcome. */
export class Meeting implements Communicator {
  readonly attempt: Attempt;
  readonly messages: string;
  readonly rank: number;
  readonly size: number;
  readonly #invitation: Invitation;
  readonly #generation: number;
  /** Under which name this rank is here. */
  readonly #self: Attempt;
  readonly #members = new Map<string, Attempt>();
  #round = 0;
  #endPulse: (() => Promise<void>) | undefined;

  constructor(invitation: Invitation, attempt: Attempt, generation: number, self: Attempt) {
    this.#invitation = invitation;
    this.#generation = generation;
    this.#self = self;
    this.attempt = attempt;
    this.messages = messagesOf(attemptPath(invitation, attempt));
    this.rank = invitation.rank;
    this.size = invitation.world;
    if (attempt === self) this.entered();
  }

  get isMember(): boolean {
    return this.#endPulse !== undefined;
  }

  /** From now on this rank answers those who ask whether it lives, also while it writes. */
  entered(): this {
    this.#endPulse = pulse(async () => this.#answer(await this.#names()), 1000);
    return this;
  }

  async isOver(): Promise<boolean> {
    const names = await this.#names();
    if (names.size === 0 || names.has(FAILED) || [...names].some((name) => name.endsWith(".left"))) return true;
    return (await this.#deadMember(names)) !== undefined;
  }

  /** True when every rank is here and alive; false where a newer attempt has taken this one's place. */
  async assemble(deadline: number): Promise<boolean> {
    for (const [state, next] of [
      ["here", "ready"],
      ["ready", undefined],
    ] as const) {
      const together = await this.#until(async (names) => {
        if (this.#missing(names, state).length === 0) return true;
        if ((await newestGeneration(this.#invitation)) > this.#generation) return false;
        if (performance.now() > deadline) throw await this.fail(this.#tooLate(this.#missing(names, state)));
        return undefined;
      });
      if (!together) return false;
      if (next) await this.#fileSystem.createOnce(this.#file(`${numbered(this.rank)}.${next}`), MARK);
    }
    return true;
  }

  async barrier(): Promise<void> {
    await this.gather(null);
    await this.broadcast(null);
  }

  async gather<T>(value: T): Promise<T[] | undefined> {
    const round = this.#round++;
    await this.#leaveMessage(`${round}.${numbered(this.rank)}.json`, value);
    if (this.rank !== 0) return undefined;
    const values: T[] = [];
    for (let rank = 0; rank < this.size; rank++) {
      values.push(await this.#message<T>(`${round}.${numbered(rank)}.json`, rank));
    }
    return values;
  }

  async broadcast<T>(value: T | undefined): Promise<T> {
    const name = `${this.#round++}.all.json`;
    if (this.rank !== 0) return this.#message<T>(name, 0);
    await this.#leaveMessage(name, value);
    return value!;
  }

  /** Tells every rank that the attempt has failed. Returns the error. */
  async fail(error: OptError): Promise<OptError> {
    await this.#leaveMessage(FAILED, failureOf(error)).catch(() => {}); // they find out by themselves, later
    return error;
  }

  /** Another rank's attempt is the one that all join. */
  async giveWay(): Promise<void> {
    await this.#endPulse?.();
    await this.#fileSystem.remove(this.messages);
    endAttempt(this.#self);
  }

  /** Called once the outcome is known; the last one tidies up. */
  async leave(): Promise<void> {
    await this.#endPulse?.();
    endAttempt(this.#self);
    const fileSystem = this.#fileSystem;
    const tidy = async () => {
      await fileSystem.createOnce(this.#file(`${numbered(this.rank)}.left`), MARK);
      const names = await this.#names();
      const members = [...names].filter((name) => MEMBER.test(name));
      if (!members.every((name) => names.has(name.replace(/here$/, "left")))) return;
      const pointer = (generation: number) =>
        join(this.#invitation.folder, pointerPrefix(this.#invitation) + generation);
      for (const generation of await generations(this.#invitation)) {
        if (generation <= this.#generation) await fileSystem.remove(pointer(generation));
      }
      await fileSystem.remove(this.messages);
    };
    await tidy().catch(() => {}); // the next save sweeps it
  }

  /** Whether the process that is here as `rank` lives. Where its process cannot be seen from here, it is asked. */
  async answers(rank: number): Promise<boolean> {
    const life = lifeOf(await readText(this.#fileSystem, this.#file(`${numbered(rank)}.here`)));
    if (life !== "unknown") return life === "alive";
    const token = this.#self.slice(-12);
    await this.#fileSystem.createOnce(this.#file(`ask.${token}.${numbered(rank)}`), MARK);
    const deadline = performance.now() + (this.#invitation.answerWithin ?? ANSWER_WITHIN);
    while (performance.now() < deadline) {
      const names = await this.#names();
      if (names.size === 0) return false;
      if (names.has(`answer.${token}.${numbered(rank)}`)) return true;
      await sleep(LONGEST_SLEEP);
    }
    return false;
  }

  async firstMember(): Promise<number> {
    const first = [...(await this.#names())].find((name) => MEMBER.test(name));
    return first === undefined ? 0 : Number(/\d+/.exec(first)![0]);
  }

  get #fileSystem(): FileSystem {
    return this.#invitation.fileSystem;
  }

  #file(name: string): string {
    return join(this.messages, name);
  }

  /** Empty where the place is gone. */
  async #names(): Promise<Set<string>> {
    try {
      return new Set((await this.#fileSystem.list(this.messages)).map(({ name }) => name));
    } catch (error) {
      if (isMissing(error)) return new Set();
      throw error;
    }
  }

  #missing(names: ReadonlySet<string>, state: string): number[] {
    const ranks = Array.from({ length: this.size }, (_, rank) => rank);
    return ranks.filter((rank) => !names.has(`${numbered(rank)}.${state}`));
  }

  async #answer(names: ReadonlySet<string>): Promise<void> {
    for (const name of names) {
      if (!name.startsWith("ask.") || !name.endsWith(numbered(this.rank))) continue;
      const answer = name.replace("ask.", "answer.");
      if (!names.has(answer)) await this.#fileSystem.createOnce(this.#file(answer), MARK);
    }
  }

  async #deadMember(names: ReadonlySet<string>): Promise<string | undefined> {
    for (const name of names) {
      if (!MEMBER.test(name) || names.has(name.replace(/here$/, "left"))) continue;
      if (!this.#members.has(name)) this.#members.set(name, await readText(this.#fileSystem, this.#file(name)));
      const member = this.#members.get(name)!;
      if (member === "") this.#members.delete(name); // being written
      if (lifeOf(member) === "dead") return `rank ${Number(/\d+/.exec(name)![0])}, ${describeOwner(member)},`;
    }
    return undefined;
  }

  #tooLate(missing: readonly number[]): OptError {
    const { world, patience, name } = this.#invitation;
    const who = `rank${missing.length > 1 ? "s" : ""} ${missing.slice(0, 8).join(", ")}${missing.length > 8 ? " ..." : ""}`;
    return new OptError(
      "MISSING",
      "saveCheckpoint",
      `all ${world} ranks must save at the same time, ${who} did not come to ${JSON.stringify(name)} within ${patience / 1000} s.`,
      "Start the others too; ranks of one process save together, with Promise.all. See patience.",
    );
  }

  async #leaveMessage(name: string, value: unknown): Promise<void> {
    await this.#fileSystem.createOnce(this.#file(name), `${JSON.stringify(value ?? null)}\n`);
  }

  async #message<T>(name: string, from: number): Promise<T> {
    let askAt = performance.now() + this.#invitation.patience;
    const { value } = await this.#until(async (names) => {
      if (names.has(name)) return parsed<T>(await readText(this.#fileSystem, this.#file(name)));
      if (performance.now() < askAt) return undefined;
      askAt = performance.now() + this.#invitation.patience;
      if (await this.answers(from)) return undefined;
      throw await this.fail(died(`rank ${from} no longer answers`));
    });
    return value;
  }

  /** Looks again and again until `look` has an answer, or the attempt cannot succeed any more. */
  async #until<T>(look: (names: ReadonlySet<string>) => Promise<T | undefined>): Promise<T> {
    for (let delay = 1; ; delay = Math.min(delay * 1.5, LONGEST_SLEEP)) {
      const names = await this.#names();
      const found = await look(names);
      if (found !== undefined) return found;
      const failure = names.has(FAILED) && parsed<Failure>(await readText(this.#fileSystem, this.#file(FAILED)));
      if (failure) return unwrap<T>(failure.value);
      if (names.size === 0) throw died("the folder in which the ranks agree is gone");
      const dead = await this.#deadMember(names);
      // What it said before it died still counts.
      if (dead !== undefined) {
        const last = await look(await this.#names());
        if (last !== undefined) return last;
        throw await this.fail(died(`${dead} has died`));
      }
      await this.#answer(names);
      await sleep(delay);
    }
  }
}

function died(problem: string): OptError {
  return new OptError(
    "IO",
    "saveCheckpoint",
    `${problem}: there is no step.`,
    "Older steps are untouched: start again.",
  );
}

/** A message may be read while it is being written: what is no JSON yet will be. */
function parsed<T>(text: string): { value: T } | undefined {
  if (!text.endsWith("\n")) return undefined;
  return { value: JSON.parse(text) };
}
