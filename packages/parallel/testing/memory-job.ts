/** The bodies of jobs on ranks of this process: nothing is started, but none of them may block the thread. */
import * as core from "@opt/core";
import type { Communicator } from "../src/communicator/communicator";
import { mesh } from "../src/mesh/mesh";
import { memoryRanks } from "./memory-ranks";
import { named, renamed } from "./told";

type Body = (communicator: Communicator, tell: (value: unknown) => void, ...names: unknown[]) => Promise<void>;

const AsyncFunction = (async () => {}).constructor as new (...namesAndBody: string[]) => Body;

/**
 * As `runJob`: returns what each rank handed to `tell`.
 *
 * @param names what the body uses beside `communicator`, `core`, `mesh`, `tell` and `sleep`
 */
export async function runInMemory(
  size: number,
  body: string,
  names: Readonly<Record<string, unknown>> = {},
): Promise<unknown[]> {
  const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
  const given = { core, mesh, sleep, ...names };
  const run = new AsyncFunction("communicator", "tell", ...Object.keys(given), body);
  const told: unknown[] = [];
  await Promise.all(
    memoryRanks(size).map((communicator) => {
      const tell = (value: unknown) => {
        told[communicator.rank] = JSON.parse(JSON.stringify(value, named), renamed); // as from a process
      };
      return run(communicator, tell, ...Object.values(given));
    }),
  );
  return told;
}
