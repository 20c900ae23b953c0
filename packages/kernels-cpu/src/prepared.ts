/** Prepared launches: one list of commands, which native code runs in one call. */
import type { Launch, Memory, Place, PreparedLaunches } from "@opt/core/backend";
import { memoriesOf } from "@opt/core/backend";
import type { Addon } from "./addon";
import { CommandWriter } from "./command";
import { OPCODE, writeLaunch } from "./commands";
import type { CpuKernel } from "./launch";
import { bug, cpuMemory, ListedMemory } from "./memory";

/** What runs commands. */
export interface Runner {
  readonly addon: Addon;
  readonly threads: number;
  /** @throws OptError where native code failed */
  run(command: CommandWriter): void;
}

/** An address in the list that is another one in each run. */
interface OpenAddress {
  readonly at: number;
  /** The number of its open memory. */
  readonly index: number;
  readonly byteOffset: number;
}

export function prepared(
  { addon, threads, run }: Runner,
  launches: readonly Launch[],
  open: readonly Memory[],
): PreparedLaunches {
  const command = new CommandWriter(addon);
  const numbers = new Map(open.map((memory, index) => [memory, index]));
  const addresses: OpenAddress[] = [];
  command.onAddress = (at, memory, byteOffset) => {
    const index = numbers.get(memory);
    if (index !== undefined) addresses.push({ at, index, byteOffset });
    return index !== undefined;
  };
  command.begin(OPCODE.list, threads);
  command.number(launches.length);
  const places = launches.map((launch) => {
    const { opcode } = launch.kernel as CpuKernel;
    return command.entry(opcode, threads, () => writeLaunch(command, launch));
  });
  const fixed = launches.flatMap((launch) => [...memoriesOf(launch)]).filter((memory) => !numbers.has(memory));
  const memory = new ListedMemory(fixed.map(cpuMemory));
  const bytesOf = open.map(({ bytes }) => bytes);
  let last: readonly Place[] | undefined;
  return {
    run(scalars, now) {
      memory.check();
      for (const { at, index, byteOffset } of now === last ? [] : addresses) {
        const { memory, byteOffset: moved } = now[index]!;
        const { address, bytes } = cpuMemory(memory);
        if (byteOffset + moved < 0 || byteOffset + moved > bytes)
          throw bug(`open memory of ${bytesOf[index]} bytes was given ${bytes} bytes.`);
        command.set(at, address + byteOffset + moved);
      }
      last = now;
      for (const [index, values] of scalars) {
        const at = places[index]!;
        for (let i = 0; i < values.length; i++) {
          const scalar = values[i]!;
          if (typeof scalar === "number") command.set(at[i]!, scalar); // others are read where they are
        }
      }
      run(command);
    },
    dispose() {},
  };
}
