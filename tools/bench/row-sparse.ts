/** Steps of AdamW on a large table by gradients of some of its rows: of these alone, and of all. */
import { AdamW } from "@opt/adam-amsgrad";
import { init, parameter, rowSparse, tensor, tidy } from "@opt/core";
import { type Benchmark, type Contender, timed } from "./contender";
import { gradients as values } from "./optimizer-work";

/** A table [rows, width]; each gradient has `present` rows. */
export interface RowsWork {
  readonly rows: number;
  readonly width: number;
  readonly present: number;
}

/** Gradients that take turns, so that their rows are not in the caches. */
const GRADIENTS = 16;

/** The first row is in every gradient, the others in one. */
function rowsOf(k: number, { rows, present }: RowsWork): Int32Array {
  return Int32Array.from({ length: present }, (_, i) => (i === 0 ? 0 : (1 + (k * present + i) * 7919) % rows));
}

function opt(deviceName: string, lazyMode: boolean): Contender<RowsWork> {
  return {
    name: `opt ${deviceName} ${lazyMode ? "lazyMode" : "all rows"}`,
    tolerance: 0,
    async open(work) {
      const device = await init(deviceName).catch((error: Error) => error.message);
      if (typeof device === "string") return device;
      const shape = [work.rows, work.width];
      const table = parameter(new Float32Array(work.rows * work.width).fill(0.5), { shape, device });
      const given = tensor(values(work.present * work.width), { shape: [work.present, work.width], device });
      const sparse = Array.from({ length: GRADIENTS }, (_, k) =>
        rowSparse(tensor(rowsOf(k, work), { device }), given, shape),
      );
      if (lazyMode)
        for (const gradient of sparse) gradient.merged(); // as backward leaves them
      else table.grad = tidy(() => sparse[0]!.toDense());
      const optimizer = new AdamW([table], { lazyMode });
      let next = 0;
      const step = () => {
        if (lazyMode) table.grad = sparse[next++ % GRADIENTS]!;
        optimizer.step();
      };
      return {
        run: (steps) => timed(steps, step, () => device.sync()),
        result: async (count) => [...(await table.slice(0, 1).data()).subarray(0, count)],
        async close() {
          optimizer.dispose();
          for (const made of [table, given, ...sparse]) made.dispose();
        },
      };
    },
  };
}

/** One table for each device: each takes gigabytes. */
export function rowSteps(devices: readonly string[]): Benchmark<RowsWork>[] {
  const work = { rows: 1_000_000, width: 64, present: 512 };
  return devices
    .filter((device) => device !== "js")
    .map((device) => ({
      title: `AdamW, ${work.present} rows of a table ${work.rows.toLocaleString("en-US")} x ${work.width}, ${device}`,
      words: ["rows", device],
      work,
      contenders: [opt(device, false), opt(device, true)],
    }));
}
