/** What the tests of stored rows share: a row of the table, trained again. */
import { init, listDevices } from "@opt/core";
import { describe, expect, it } from "vitest";
import { cellsOf, firstRow } from "./cells";
import { entrants } from "./entrants";
import { readDigits } from "./files";
import { readRows } from "./rows";
import { type TaskName, tasks } from "./tasks";
import { train } from "./train";

const cells = cellsOf(readRows().values());

/** Why a device cannot give the stored checksums, or null. */
async function whyNot(name: string): Promise<string | null> {
  const found = (await listDevices()).find((device) => device.name === name);
  if (!found?.available) return found?.reason ?? "it is not registered";
  return (await init(name)).portable ? null : "its WebAssembly has no fused multiply-add";
}

/** Each of these rows has its stored checksum on a device. */
export async function repeats(
  device: string,
  rows: readonly (readonly [task: TaskName, optimizer: string])[],
): Promise<void> {
  const reason = await whyNot(device);
  describe.skipIf(reason !== null)(`on ${device}${reason === null ? "" : ` (skipped: ${reason})`}`, () => {
    it.each(rows)("%s by %s has the stored checksum", async (name, optimizer) => {
      const cell = cells.find(({ of }) => of.task === name && of.optimizer === optimizer)!;
      const row = firstRow(cell.rows);
      expect(row, "no row: run npm run leaderboard").toBeDefined();
      await init(device);
      const task = tasks[name];
      const entrant = entrants.find((each) => each.name === optimizer)!;
      const { checksum } = await train(task, await task.prepared(readDigits), entrant, row!);
      expect(checksum, "run npm run leaderboard again").toBe(row!.checksum);
    });
  });
}
