/** Messages longer than a count of MPI are cut. Pieces of 1000 bytes show it as those of a gigabyte do. */
import { describe, expect, it } from "vitest";
import { runJob } from "../../parallel/testing/job";
import { launchers } from "../testing/launchers";

const from = (file: string) => `from "${new URL(file, import.meta.url).pathname}";`;
const imports = `
import { loadAddon, RECEIVE, REDUCE, SEND } ${from("addon.ts")}
import { launcher } ${from("launcher.ts")}
import { openLibrary } ${from("library.ts")}
import { UnderWay } ${from("under-way.ts")}`;
const connect = `
const addon = loadAddon();
openLibrary(addon, launcher);
const underWay = new UnderWay(addon);
await new Promise((begun) => addon.start(1000, (id, ...rest) => (id === 0 ? begun() : underWay.ended(id, ...rest))));
const { rank } = addon.place();
const communicator = { rank, close: () => underWay.close() };
process.on("exit", () => addon.join(30));
const move = (kind, tag, bytes) =>
  underWay.start({ where: "move", peer: 1 - rank, length: bytes.length, post: (id) => addon.post(id, kind, 1 - rank, tag, bytes) })
    .then(() => "moved", ({ code, message }) => code + " " + message);`;
const LENGTHS = [0, 1, 999, 1000, 1001, 2000, 5500];

describe.each(launchers)("$name", ({ missing, launcher }) => {
  it.skipIf(missing)(`moves pieces${missing ?? ""}`, async () => {
    const body = `
      const whole = await Promise.all(${JSON.stringify(LENGTHS)}.map(async (length, tag) => {
        const bytes = new Uint8Array(length).map((_, i) => (rank === 0 ? i * 7 : 0));
        await move(rank === 0 ? SEND : RECEIVE, tag, bytes);
        return bytes.every((byte, i) => byte === (i * 7) % 256);
      }));
      // Of what comes to rank 1, too little, too much, and a piece that ends it.
      const ends = await Promise.all([[1000, 3000], [3000, 1000], [2000, 2500]].map(([sent, awaited], i) =>
        move(rank === 0 ? SEND : RECEIVE, 100 + i, new Uint8Array(rank === 0 ? sent : awaited))));
      const sums = new Uint8Array(2500).fill(rank + 1);
      await underWay.start({ where: "sum", length: 2500, post: (id) => addon.post(id, REDUCE, 3, 0, sums) });
      tell([whole, ends, sums.every((sum) => sum === 3)]);
      await new Promise((resolve) => setTimeout(resolve, 100));`;
    const { told, error } = await runJob(2, body, { imports, connect, launcher });
    expect(error).toBe("");
    const [, [whole, ends, sums]] = told as [unknown, [boolean[], string[], boolean]];
    expect([whole, sums]).toEqual([LENGTHS.map(() => true), true]);
    expect(ends).toEqual([
      expect.stringMatching(/^BAD_SHAPE .*rank 0 sent 1000 bytes where this rank waits for 3000/),
      expect.stringMatching(/^BAD_SHAPE .*rank 0 sent more than 1000 bytes where this rank waits for 1000/),
      expect.stringMatching(/^BAD_SHAPE .*rank 0 sent 2000 bytes where this rank waits for 2500/),
    ]);
  });
});
