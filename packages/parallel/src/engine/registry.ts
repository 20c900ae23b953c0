/** The registry through which engines meet `connect`: importing an engine's package registers it. */
import { check, OptError, show } from "@opt/core";
import type { Engine, EngineRegistration } from "./engine";

class Engines {
  readonly #registrations = new Map<string, EngineRegistration>();
  readonly #open = new Map<string, Promise<Engine>>();

  register(registration: EngineRegistration): void {
    const { name, rank, open, isPresent } = registration;
    const isWhole =
      /^[a-z][a-z0-9]*$/.test(name) &&
      typeof rank === "number" &&
      typeof open === "function" &&
      typeof isPresent === "function";
    check(
      isWhole,
      "BAD_ARGUMENT",
      "registerEngine",
      () => `needs { name, rank, command, isPresent, open }, got ${show(registration)}.`,
    );
    this.#registrations.set(name, registration);
  }

  has(name: string): boolean {
    return this.#registrations.has(name);
  }

  /** The one that is asked for, or the best whose launcher started this process. @throws OptError BAD_ARGUMENT, DEVICE_UNAVAILABLE */
  choose(name: string | undefined): EngineRegistration {
    const byRank = [...this.#registrations.values()].sort((a, b) => b.rank - a.rank);
    if (name === undefined) return byRank.find((registration) => registration.isPresent())!;
    const chosen = this.#registrations.get(name);
    const known = byRank.map((registration) => registration.name).join(", ");
    check(
      chosen,
      "BAD_ARGUMENT",
      "connect",
      () => `engine must be one of ${known}, got "${name}".`,
      `Import its package first, as @opt/collectives-mpi for "mpi".`,
    );
    check(
      chosen.isPresent(),
      "DEVICE_UNAVAILABLE",
      "connect",
      () => `no launcher of the engine "${name}" started this process.`,
      `Run it with: ${chosen.command}.`,
    );
    return chosen;
  }

  /** A process is one rank of a job: who asks again gets the same engine. */
  async open(registration: EngineRegistration, timeout: number): Promise<Engine> {
    const known = this.#open.get(registration.name);
    if (known !== undefined) return known;
    const opening = registration.open(timeout);
    this.#open.set(registration.name, opening);
    try {
      return await opening;
    } catch (error) {
      this.#open.delete(registration.name);
      if (error instanceof OptError) throw error;
      const problem = `the engine "${registration.name}" does not open: ${(error as Error).message}.`;
      throw new OptError("DEVICE_UNAVAILABLE", "connect", problem, "", { cause: error });
    }
  }
}

/** One registry per process, shared by every copy of this package that is loaded. */
const shared = globalThis as { [key: symbol]: Engines | undefined };
const key = Symbol.for("@opt/parallel.engines");
shared[key] ??= new Engines();
export const engines: Engines = shared[key];

/** Makes an engine known to `connect`. Engines' packages call it when they are imported. @throws OptError BAD_ARGUMENT */
export function registerEngine(registration: EngineRegistration): void {
  engines.register(registration);
}
