/** Both ways into the memory that ranks share hold the same bytes. */
import { closeSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { init } from "@opt/core";
import { expect, it } from "vitest";
import "@opt/kernels-cpu";
import { Arena } from "./arena";
import { SharedFile } from "./shared-file";

const MiB = 1 << 20;
const drawn = (length: number, seed: number) => Buffer.alloc(length, `what is sent in round ${seed}`);

it.each(["js", "cpu"])("what one writes the other reads, on %s", async (device) => {
  await init(device);
  const folder = mkdtempSync(join(tmpdir(), "opt-shared-"));
  const path = join(folder, "memory");
  const files = [openSync(path, "wx+"), openSync(path, "r+")] as const;
  const arena = new Arena(new SharedFile(files[0]), 80 * MiB);
  const other = new SharedFile(files[1]);
  for (let round = 1; round < 4; round++) {
    const offsets: number[] = [];
    // The third of these reaches over 32 MiB.
    for (const length of [5, 20 * MiB + 1, 20 * MiB, 3 * MiB]) {
      const sent = drawn(length, round);
      const offset = arena.put(sent)!;
      const received = new Uint8Array(length);
      other.read(received, offset);
      expect(Buffer.compare(received, sent)).toBe(0);
      offsets.push(offset);
    }
    expect(arena.put(new Uint8Array(50 * MiB))).toBeUndefined();
    for (const offset of offsets) arena.free(offset);
  }
  for (const file of files) closeSync(file);
  rmSync(folder, { recursive: true });
});
