/** Recorded launches as lists of commands, each of which native code runs in one call. */
import type { Launch, RecordedLaunches, Scalar, Slice } from "@opt/core/backend";
import { slicesOf } from "@opt/core/backend";
import type { Addon } from "./addon";
import { CommandWriter } from "./command";
import type { CpuKernel } from "./kernel";
import { cpuMemory, ListedMemory } from "./memory";
import { OPCODE } from "./opcode";
import { writeLaunch } from "./write-launch";

/** What runs launches now. */
export interface Runner {
  readonly addon: Addon;
  readonly threads: number;
  /** @throws OptError where native code failed */
  run(command: CommandWriter): void;
  launch(launch: Launch): void;
}

/** Part of a recording, replayed with the scalars of launches, by their index in all of it. */
type Part = (renewed: ReadonlyMap<number, readonly Scalar[]>) => void;

/** Consecutive launches become one list. Those that ask for their tensors anew each time stand alone. */
export function recorded(runner: Runner, launches: readonly Launch[]): RecordedLaunches {
  const parts: Part[] = [];
  let first = 0;
  const listTo = (end: number) => {
    if (end > first) parts.push(listOf(runner, launches.slice(first, end), first));
  };
  launches.forEach((launch, index) => {
    if (launch.kind !== "rule" || !launch.asked) return;
    listTo(index);
    first = index + 1;
    parts.push((renewed) => runner.launch({ ...launch, scalars: renewed.get(index) ?? launch.scalars }));
  });
  listTo(launches.length);
  return {
    replay(scalars) {
      for (const part of parts) part(scalars);
    },
    dispose() {
      parts.length = 0;
    },
  };
}

function listOf(runner: Runner, launches: readonly Launch[], first: number): Part {
  const { addon, threads } = runner;
  const command = new CommandWriter(addon);
  command.begin(OPCODE.list, threads);
  command.number(launches.length);
  const places = launches.map((launch) => {
    const { opcode } = launch.kernel as CpuKernel;
    return command.entry(opcode, threads, () => writeLaunch(command, launch));
  });
  const memory = new ListedMemory(launches.flatMap((launch) => Array.from(slicesOf(launch), memoryOf)));
  return (renewed) => {
    memory.check();
    for (const [index, scalars] of renewed) {
      const at = places[index - first];
      if (at === undefined) continue;
      for (let i = 0; i < scalars.length; i++) {
        const scalar = scalars[i]!;
        if (typeof scalar === "number") command.set(at[i]!, scalar); // others are read where they lie
      }
    }
    runner.run(command);
  };
}

const memoryOf = ({ memory }: Slice) => cpuMemory(memory);
