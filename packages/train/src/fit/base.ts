/** What a run does not train, as the base of an adapter: checkpoints may leave it out, and know it by its checksums. */
import { check, OptError, type Tensor, versionOf } from "@opt/core";
import type { PlacedModel } from "./model";
import { WHERE } from "./options";

/** By name. */
export type Sums = Readonly<Record<string, string>>;

export class Base {
  readonly #known = new WeakMap<Tensor, { readonly version: number; readonly sum: string }>();
  /** As they were when the run began. */
  #first: Sums | undefined;

  constructor(private readonly placed: PlacedModel) {}

  async begin(): Promise<void> {
    this.#first = await this.#sums(([, x]) => !x.requiresGrad);
  }

  /**
   * What does not train and has the numbers of the beginning: on all ranks what has them on the first.
   *
   * @throws OptError BAD_STATE where nobody noted them
   */
  async unchanged(): Promise<Sums> {
    const first = this.#first;
    const problem = "contents({ trainable: true }) needs the numbers of the beginning, which no callback asked for.";
    const cure = "Give it saves: { folder, trainable: true }.";
    if (first === undefined) throw new OptError("BAD_STATE", WHERE, problem, cure);
    const now = await this.#sums(([name, x]) => !x.requiresGrad && name in first);
    const same = Object.fromEntries(Object.entries(now).filter(([name, sum]) => sum === first[name]));
    return this.placed.placing?.communicator.broadcast(same) ?? same;
  }

  /** @throws OptError BAD_STATE where the model has other numbers than a checkpoint needs */
  async check(needed: Sums): Promise<void> {
    const now = await this.#sums(([name]) => name in needed);
    const others = Object.keys(needed).filter((name) => now[name] !== needed[name]);
    const problem = () => `the base must be that of the saved run, got other numbers in ${others[0]}.`;
    check(others.length === 0, "BAD_STATE", WHERE, problem, "Load the same base before fit.");
  }

  /** What did not change since it was read is not read again. */
  async #sums(isMeant: (named: [string, Tensor]) => boolean): Promise<Sums> {
    const named = this.placed.weights.namedTensors().filter((each) => isMeant(each) && each[1].placement === null);
    const stale = named.filter(([, x]) => this.#known.get(x)?.version !== versionOf(x));
    const { ledger } = await import("@opt/checkpoint");
    const line = await (await ledger()).append(0, Object.fromEntries(stale));
    for (const [name, x] of stale) this.#known.set(x, { version: versionOf(x), sum: line.tensors[name]! });
    return Object.fromEntries(named.map(([name, x]) => [name, this.#known.get(x)!.sum]));
  }
}
