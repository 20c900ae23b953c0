/** A process that trains what it is sent, one run after the other. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { cpus } from "node:os";
import { init, OptError } from "@opt/core";
import { entrants } from "./entrants";
import { readDigits } from "./files";
import type { Row, RunKey } from "./rows";
import { tasks } from "./tasks";
import type { Start, Training } from "./tasks/task";
import { train } from "./train";

export interface Order {
  readonly key: RunKey;
  readonly device: string;
}

const machine = `${cpus()[0]?.model.trim() ?? "unknown processor"}, Node ${process.versions.node}`;
const opened = new Map<string, Promise<(start: Start) => Training>>();
/** Data are drawn once for each task. */
function preparedOf(name: RunKey["task"]) {
  if (!opened.has(name)) opened.set(name, tasks[name].prepared(readDigits));
  return opened.get(name)!;
}

async function rowOf({ key, device }: Order): Promise<Row> {
  await init(device);
  const entrant = entrants.find(({ name }) => name === key.optimizer)!;
  try {
    const { losses, milliseconds, ...rest } = await train(tasks[key.task], await preparedOf(key.task), entrant, key);
    return { ...key, losses: losses.map(rounded), milliseconds: rounded(milliseconds), ...rest, machine };
  } catch (error) {
    if (!(error instanceof OptError)) throw error;
    return {
      ...key,
      losses: [],
      diverged: false,
      checksum: "",
      milliseconds: 0,
      stateBytes: 0,
      machine,
      error: error.message,
    };
  }
}

const rounded = (value: number) => Number(value.toPrecision(4));

process.on("message", (order: Order) => {
  rowOf(order).then(
    (row) => process.send!(row),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
process.on("disconnect", () => process.exit());
