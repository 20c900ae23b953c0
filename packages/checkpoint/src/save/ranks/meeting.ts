/** The ranks of one attempt: messages are files in a folder of theirs, and each rank tells whether the others live. */
import { OptError } from "@opt/core";
import { type FileSystem, isMissing } from "../../stores/file-system";
import { join } from "../../stores/path";
import { pulse, sleep } from "../../stores/timers";
import { MEMBER, messagesOf, readText } from "../step/leftovers";
import { type Attempt, describeOwner, endAttempt, lifeOf } from "../step/owner";
import type { Communicator } from "./communicator";
import { attemptPath, generations, type Invitation, newestGeneration, numbered, pointerPrefix } from "./invitation";
import { type Failure, failureOf, unwrap } from "./outcome";

/** Even a process that computes for long should have answered by then. */
const ANSWER_WITHIN = 60_000;
const LONGEST_SLEEP = 50;
const FAILED = "failed.json";
/** A message whose name says all. */
const MARK = "\n";

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

  get folder(): string {
    return this.#invitation.folder;
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
        const missing = this.#missing(names, state);
        if (missing.length === 0) return true;
        if ((await newestGeneration(this.#invitation)) > this.#generation) return false;
        for (const rank of missing) await this.#refuseLeft(rank, `${numbered(rank)}.${state}`, names);
        if (performance.now() > deadline) throw await this.fail(this.#tooLate(missing));
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
  async fail<E extends Error>(error: E): Promise<E> {
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
      const left = this.#file(`${numbered(this.rank)}.left`);
      // A full disk has room for a name still.
      await fileSystem.createOnce(left, MARK).catch(() => fileSystem.createOnce(left, ""));
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

  /** Throws where a rank has left without having said what is waited for: its disk was full. */
  async #refuseLeft(rank: number, name: string, names: ReadonlySet<string>): Promise<void> {
    if (!names.has(`${numbered(rank)}.left`)) return;
    // What it said before may have come while these names were listed.
    const now = await this.#names();
    if (now.has(name) || now.has(FAILED) || now.size === 0) return;
    throw await this.fail(died(`rank ${rank} has given up`));
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
      await this.#refuseLeft(from, name, names);
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
